"""From the facts to numbers: confusion matrices, estimates and comparisons of a campaign, and when they are due."""

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.db.models import CharField, Exists, F, OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Cast, Concat
from django.utils import timezone

from analytics.frames import HARMLESS, CampaignArrays, current_arrays
from analytics.models import Computation
from analytics.numbers.columns import EstimateColumns
from analytics.numbers.estimates import estimate_columns
from analytics.numbers.predictions import Predictions
from analytics.services import confusions
from analytics.services.activity import activity_before, counted_activity
from analytics.services.audit_forecast import store_forecasts
from analytics.services.basis import Basis
from analytics.services.careless_work import store_chance_flags
from analytics.services.confusions import assessor_confusion_counts
from analytics.services.digests import digests_until, store_digests
from analytics.services.disputed import store_disputed
from analytics.services.label_classes import used_score
from analytics.services.persistence import store_estimates
from analytics.services.shares import shares, store_shares
from judging.models import Assessor, Campaign, Judgment, Run, Slot
from sampling.frames import FrameRefused, newest_draw
from sampling.measures.registry import measures_of_samples, reported_measures, usual_measures
from sampling.models import Audit, AuditEntry, AuditTier, Draw
from sampling.selections import COMPLETE
from touchstone import jobs
from touchstone.models import Event, Job

COMMIT_MAY_TAKE = timedelta(seconds=5)
SHORTEST_PAUSE, PAUSE_FACTOR = timedelta(seconds=10), 60
LONGEST_PAUSE = timedelta(hours=6)  # the time of parts holds what they waited for a worker
PART, MERGE = "estimate-part", "estimate-merge"  # jobs
Progress = Callable[[int, int, str], None]


def measures_of(campaign: Campaign) -> list[str]:
    """Return the measures that fit the campaign's pool: none may look deeper than was pooled."""
    draw = newest_draw(campaign)
    if draw is None:
        raise FrameRefused(f"campaign {campaign.pk} was never drawn")
    if draw.selection_kind.is_foreign:
        return measures_of_samples()
    if draw.selection_kind.is_complete:
        return usual_measures()
    parameters = draw.parameters
    return reported_measures(parameters["measure"], parameters["depth"])


def recompute(
    *,
    campaign: Campaign,
    progress: Progress = lambda *_: None,
    measures: Sequence[str] | None = None,
    arrays: CampaignArrays | None = None,
) -> Computation:
    """Estimate everything (or these measures) from the rows of this moment, and store it as one new computation.

    What this process read before is completed, not read again; a release gives the arrays of its own moment. Safe to
    run twice: a computation is a new row. In the transaction of a job all of it is stored or nothing. `progress` may
    raise to cancel, between any two steps. Of a large campaign several jobs do the same: analytics/services/parts.py.
    """
    started = time.monotonic()
    wanted = measures_of(campaign) if measures is None else list(measures)
    n_steps = len(wanted) + 3
    progress(0, n_steps, "reading judgments")
    is_of_now = arrays is None
    if arrays is None:
        arrays = current_arrays(campaign)
    basis = basis_of(campaign, arrays)
    tables: list[EstimateColumns] = []
    for step, measure in enumerate(estimated_measures(arrays, wanted), start=1):
        progress(step, n_steps, f"estimating {measure}")
        tables += estimate_columns(basis, measure)
    progress(n_steps - 2, n_steps, "storing")
    computation = store(basis, tables, lambda: time.monotonic() - started, is_of_now)
    progress(n_steps - 1, n_steps, "forecasting the next audit")
    store_forecasts(computation, arrays, campaign, basis.predictions)
    progress(n_steps, n_steps, "done")
    return computation


def basis_of(campaign: Campaign, arrays: CampaignArrays) -> Basis:
    return Basis(campaign, arrays, Predictions(arrays), assessor_confusion_counts(arrays))


def estimated_measures(arrays: CampaignArrays, wanted: Sequence[str]) -> list[str]:
    """Return the measures to estimate: of a file that is all there is none, its shares need no runs."""
    return list(wanted) if arrays.runs else []


def store(
    basis: Basis, tables: Sequence[EstimateColumns], seconds: Callable[[], float], is_of_now: bool = True
) -> Computation:
    """Store the tables as one new computation, with all that is computed once for all measures.

    `seconds`: how long it has taken until now. What is of an earlier moment writes no digests of items.
    """
    campaign, arrays, counts = basis.campaign, basis.arrays, basis.counts
    found_shares = shares(basis) if arrays.is_complete else []
    with transaction.atomic():
        before = activity_before(campaign)
        activity = counted_activity(campaign, arrays, before)
        digests = before.get("digests") or {}
        activity["digests"] = digests_until(activity) if is_of_now else digests
        computation = Computation.objects.create(
            campaign=campaign,
            last_judgment_id=arrays.last_judgment_id,
            n_batches=arrays.draw.batch,
            n_audits=arrays.n_audits,
            bronze_score=used_score(arrays, campaign),
            assumption=confusions.assumption(arrays, campaign),
            n_judgments=arrays.n_judgments,
            n_items=arrays.judged.size,
            n_audited=int(arrays.audited.sum()),
            n_gold_checks=arrays.check_true.size,
            activity=activity,
            is_by_gold_judges=arrays.is_by_gold_judges,
            **basis.look,
            seconds=seconds(),
        )
        store_estimates(computation, arrays, tables)
        confusions.store(computation, arrays, counts)
        store_chance_flags(computation, arrays)
        store_disputed(computation, arrays, campaign, counts)
        if is_of_now:
            store_digests(computation, arrays, counts, digests)
        store_shares(computation, found_shares)
    return computation


# -- when ---------------------------------------------------------------------------------------------------


def queue_recomputation(*, campaign: Campaign) -> None:
    """Queue a recomputation; one that already waits or runs is enough, the next tick sees what it missed."""
    if is_in_parts(campaign):
        return
    jobs.enqueue(kind="estimate", payload={"campaign": str(campaign.pk)}, active_key=str(campaign.pk))


def is_in_parts(campaign: Campaign) -> bool:
    """Return whether a recomputation goes on in jobs of its own: see analytics/services/parts.py."""
    parts = Job.objects.filter(kind__in=[PART, MERGE], state__in=Job.ACTIVE)
    return parts.filter(payload__campaign=str(campaign.pk)).exists()


def start_due_recomputations() -> None:
    """Queue a recomputation of every drawn and judged campaign whose newest computation may have missed something.

    That is a judgment, an audit, a batch, an import, judgments to be made again. Rows become visible in the order of
    their commits, not of their ids: what was written in the last seconds before a computation is looked at once more.

    How often: at most every ten seconds, and never more than a sixtieth of the time is spent on one campaign. A process
    that has the campaign's rows from the last time needs less time, so it computes more often.
    """
    for campaign in _drawn_campaigns():
        has_subject = campaign.has_runs or campaign.is_complete
        if campaign.newest is None or not has_subject or _computed_just_now(campaign):
            continue
        if campaign.computed_at is None:
            queue_recomputation(campaign=campaign)
            continue
        # It was stored at computed_at; its rows were read when it began.
        seen_for_sure = campaign.computed_at - timedelta(seconds=campaign.computed_in) - COMMIT_MAY_TAKE
        events = (campaign.happened_at, campaign.imported_at, campaign.newest_at)
        may_be_missed = any(at is not None and at > seen_for_sure for at in events)
        if may_be_missed or campaign.newest > campaign.seen:
            queue_recomputation(campaign=campaign)


def _drawn_campaigns() -> QuerySet[Any]:
    """Return the drawn campaigns with their newest counted judgment, newest events and newest computation.

    The newest judgment is the newest of its assessors' newest: an index finds these, however old they are.
    """
    of_assessor = Judgment.objects.filter(assessor=OuterRef("pk"), slot__isnull=False).order_by("-id")
    of_campaign = Assessor.objects.filter(campaign=OuterRef("pk")).annotate(
        newest=Subquery(of_assessor.values("id")[:1])
    )
    latest = Computation.objects.filter(campaign=OuterRef("pk")).order_by("-id")
    return (
        Campaign.objects.filter(
            Exists(Draw.objects.filter(campaign=OuterRef("pk"))), deleted_at=None, collection__deleted_at=None
        )
        .annotate(
            newest=Subquery(of_campaign.order_by(F("newest").desc(nulls_last=True)).values("newest")[:1]),
            seen=Subquery(latest.values("last_judgment_id")[:1]),
            computed_at=Subquery(latest.values("created_at")[:1]),
            computed_in=Subquery(latest.values("seconds")[:1]),
            is_complete=Exists(Draw.objects.filter(campaign=OuterRef("pk"), selection=COMPLETE.key)),
            has_runs=Exists(Run.objects.filter(collection=OuterRef("collection_id"))),
            happened_at=_newest_event("campaign", "pk"),
            imported_at=_newest_event("collection", "collection_id"),
        )
        .annotate(newest_at=Subquery(Judgment.objects.filter(pk=OuterRef("newest")).values("created_at")[:1]))
    )


def _newest_event(kind: str, key: str) -> Subquery:
    """Return when something happened last that changes what is computed, by the log of events."""
    subject = Concat(Value(f"{kind}:"), Cast(OuterRef(key), CharField()))
    events = Event.objects.filter(subject=subject).exclude(verb__in=HARMLESS)
    return Subquery(events.order_by("-id").values("at")[:1])


def _computed_just_now(campaign: Any) -> bool:
    """A long one is made more rarely: all of the last 24 hours are kept, and must fill neither disk nor worker."""
    if campaign.computed_at is None:
        return False
    pause = max(SHORTEST_PAUSE, PAUSE_FACTOR * timedelta(seconds=campaign.computed_in))
    pause = min(pause, LONGEST_PAUSE)
    return bool(timezone.now() - campaign.computed_at < pause)


def latest_computation(*, campaign: Campaign) -> Computation | None:
    return campaign.computations.order_by("-id").first()


def declared_gold(computation: Computation | None) -> Audit | None:
    """Return the imported gold on which the computation's corrected numbers rest; None where an audit was drawn.

    As `analytics.frames` has it: declared gold gives way to the first drawn audit of the gold tier that is complete.
    """
    if computation is None:
        return None
    seen = computation.campaign.audits.filter(tier=AuditTier.GOLD, sequence__lte=computation.n_audits)
    declared = seen.exclude(declaration="").first()
    if declared is None:
        return None
    graded = Judgment.objects.filter(
        item=OuterRef("item"),
        slot__purpose=Slot.Purpose.AUDIT,
        grade__isnull=False,
        pk__lte=computation.last_judgment_id,
    )
    missing = AuditEntry.objects.filter(~Exists(graded), audit=OuterRef("pk"), selected=True)
    is_drawn = seen.filter(~Exists(missing), declaration="").exists()
    return None if is_drawn else declared
