"""From the facts to numbers: confusion matrices, estimates and comparisons of a campaign, recomputed as a whole."""

import time
from collections.abc import Callable
from datetime import timedelta

import numpy as np
from django.db import transaction
from django.db.models import Exists, Max, OuterRef, Subquery
from django.utils import timezone

from analytics.confusion import (
    ConfusionEstimate as Confusion,
)
from analytics.confusion import (
    assessor_counts,
    audit_counts,
    confusion_from_counts,
)
from analytics.frames import CampaignArrays, campaign_arrays
from analytics.models import Computation, ConfusionEstimate, Estimate, Flag
from analytics.services.estimates import ConfusionCounts, estimates
from analytics.services.predictions import Predictions
from judging.models import Campaign, Judgment
from sampling.frames import newest_draw
from sampling.measures import parse_measure
from sampling.models import Draw
from touchstone import jobs

MEASURES = ["P@10", "DCG@10", "RBP@20"]
FLAG_BELOW_CHANCE_OF = 0.5  # flagged: surely less often right than wrong
COMMIT_MAY_TAKE = timedelta(seconds=5)
SHORTEST_PAUSE, PAUSE_FACTOR = timedelta(seconds=10), 60
Progress = Callable[[int, int, str], None]


def measures_of(campaign: Campaign) -> list[str]:
    """Return the measures that fit the campaign's pool: none may look deeper than was pooled."""
    parameters = newest_draw(campaign).parameters
    depth = parameters["depth"]
    asked = [parameters["measure"], *MEASURES]
    names = list(dict.fromkeys(parse_measure(name).name for name in asked))
    linear = [name for name in names if parse_measure(name).cutoff <= depth]
    # AP looks as deep as was pooled: deeper ranks are not judged, and count as not relevant.
    return [*linear, *(["nDCG@10"] if depth >= 10 else []), f"AP@{depth}"]


def recompute(*, campaign: Campaign, progress: Progress = lambda *_: None) -> Computation:
    """Compute everything anew from one snapshot and store it as one new computation. Safe to run twice."""
    started = time.monotonic()
    progress(0, 3, "reading judgments")
    arrays = campaign_arrays(campaign)
    measures = measures_of(campaign)
    progress(1, 3, "estimating")
    counts = assessor_confusion_counts(arrays)
    predictions = Predictions(arrays)
    rows: list[Estimate] = []
    for number, measure in enumerate(measures):
        rows += estimates(campaign, arrays, predictions, counts, measure)
        progress(1 + number, 1 + len(measures), f"estimating {measure}")
    with transaction.atomic():
        computation = Computation.objects.create(
            campaign=campaign,
            last_judgment_id=arrays.last_judgment_id,
            n_judgments=arrays.n_judgments,
            n_items=arrays.judged.size,
            n_audited=int(arrays.audited.sum()),
            n_gold_checks=arrays.check_true.size,
            seconds=time.monotonic() - started,
        )
        for row in rows:
            row.computation = computation
        Estimate.objects.bulk_create(rows, batch_size=1000)
        _store_confusions(computation, arrays, counts)
    return computation


# -- confusion matrices -------------------------------------------------------------------------------------


def assessor_confusion_counts(arrays: CampaignArrays) -> ConfusionCounts:
    """Return what gold checks and audits say about every bronze and silver assessor."""
    n, g = len(arrays.assessors), arrays.n_grades
    checks = assessor_counts(arrays.check_assessor, arrays.check_true, arrays.check_given, n, g)
    audits = np.zeros((n, g, g))
    n_audited = np.zeros(n, dtype=np.int64)
    of_audited = arrays.audited[arrays.label_item]
    for assessor in range(n):
        mine = of_audited & (arrays.label_assessor == assessor)
        n_audited[assessor] = mine.sum()
        if mine.any():
            item = arrays.label_item[mine]
            audits[assessor] = audit_counts(
                arrays.audit_grade[item], arrays.label_grade[mine], arrays.audit_probability[item], g
            )
    return ConfusionCounts(checks, audits, n_audited)


def _store_confusions(computation: Computation, arrays: CampaignArrays, counts: ConfusionCounts) -> None:
    stored, flags = [], []
    for index, assessor in enumerate(arrays.assessors):
        together = counts.together[index]
        estimate: Confusion = confusion_from_counts(together)
        accuracy = _accuracy(together)
        stored.append(
            ConfusionEstimate(
                computation=computation,
                assessor=assessor,
                key=str(assessor.pk),
                label=str(assessor),
                counts=together.round(6).tolist(),
                matrix=estimate.matrix,
                low=estimate.low,
                high=estimate.high,
                n_gold_checks=int(counts.checks[index].sum()),
                n_audited=int(counts.n_audited[index]),
                **dict(zip(("accuracy", "accuracy_low", "accuracy_high"), accuracy, strict=True)),
            )
        )
        if accuracy[2] is not None and accuracy[2] < FLAG_BELOW_CHANCE_OF:
            evidence = (
                f"right in {accuracy[0]:.0%} of {together.sum():.0f} gold labels; with 95 % confidence in at most "
                f"{accuracy[2]:.0%}"
            )
            flags.append(Flag(assessor=assessor, computation=computation, evidence=evidence))
    ConfusionEstimate.objects.bulk_create(stored)
    Flag.objects.bulk_create(flags)


def _accuracy(counts: np.ndarray) -> tuple[float | None, float | None, float | None]:
    """Return the share of exactly right grades with its Jeffreys interval: a two-cell confusion row."""
    total, right = float(counts.sum()), float(np.trace(counts))
    if total == 0:
        return None, None, None
    row = confusion_from_counts([[right, max(0.0, total - right)], [0.0, 0.0]])  # weighted sums round
    return right / total, row.low[0][0], row.high[0][0]


# -- when ---------------------------------------------------------------------------------------------------


def queue_recomputation(*, campaign: Campaign) -> None:
    """Queue a recomputation; one that already waits or runs is enough, the next tick sees what it missed."""
    jobs.enqueue(kind="estimate", payload={"campaign": str(campaign.pk)}, active_key=str(campaign.pk))


def start_due_recomputations() -> None:
    """Queue a recomputation of every drawn campaign with judgments or audits its newest computation may have missed.

    Rows become visible in the order of their commits, not of their ids: what was written in the last seconds before
    a computation is therefore looked at once more.
    """
    newest = Judgment.objects.filter(item__campaign=OuterRef("pk"), slot__isnull=False).order_by("-id")
    latest = Computation.objects.filter(campaign=OuterRef("pk")).order_by("-id")
    campaigns = Campaign.objects.filter(Exists(Draw.objects.filter(campaign=OuterRef("pk")))).annotate(
        newest=Subquery(newest.values("id")[:1]),
        newest_at=Subquery(newest.values("created_at")[:1]),
        seen=Subquery(latest.values("last_judgment_id")[:1]),
        computed_at=Subquery(latest.values("created_at")[:1]),
        computed_in=Subquery(latest.values("seconds")[:1]),
        audited_at=Max("audits__created_at"),
    )
    for campaign in campaigns:
        if campaign.newest is None or _computed_just_now(campaign):
            continue
        late = campaign.computed_at is None or campaign.newest_at > campaign.computed_at - COMMIT_MAY_TAKE
        audited = not late and campaign.audited_at is not None and campaign.audited_at > campaign.computed_at
        if late or audited or campaign.newest > campaign.seen:
            queue_recomputation(campaign=campaign)


def _computed_just_now(campaign: Campaign) -> bool:
    """Computations are kept for ever: a long one is made more rarely, so that they neither fill disk nor worker."""
    if campaign.computed_at is None:
        return False
    pause = max(SHORTEST_PAUSE, PAUSE_FACTOR * timedelta(seconds=campaign.computed_in))
    return timezone.now() - campaign.computed_at < pause


def latest_computation(*, campaign: Campaign) -> Computation | None:
    return campaign.computations.order_by("-id").first()
