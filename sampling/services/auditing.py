"""Audits: which judged items the gold tier judges again, at random and on schedule."""

import secrets
from datetime import timedelta
from typing import Any

import numpy as np
import polars as pl
from django.db import connection, transaction
from django.db.models import Count, Exists, OuterRef, Q
from django.utils import timezone

from judging.models import Campaign, Item, Slot
from judging.services.campaigns import open_slots
from sampling.audits import audit_probabilities, simple_audit_probabilities
from sampling.designs import (
    inclusion_probabilities,
)
from sampling.draws import permanent_random_numbers
from sampling.frames import (
    item_probabilities,
    newest_draw,
    ranks_in_frame,
    weights_of_runs,
)
from sampling.models import Audit, AuditEntry, AuditSchedule, Draw, DrawEntry
from sampling.services.layout import BATCH
from sampling.services.population import DrawRefused
from touchstone import jobs
from touchstone.models import User, record

AUDIT_FLOOR_SHARE = 0.2  # of an audit is spread evenly, so that every judged item can be audited
NO_FLOOR = 1e-9
NOT_DRAWN = "the campaign has no draw: nothing can be audited"


def audit(
    *,
    campaign: Campaign,
    items_each_time: int,
    items_in_total: int,
    seed: int | None = None,
    user: User | None = None,
) -> Audit | None:
    """Select judged items at random for the gold tier; None when the wanted number has been reached.

    Poisson with one permanent random number an item, so a later audit contains the earlier ones; probabilities follow
    the item's influence on the differences between runs, with a floor. The gold tier sees no earlier grade. `seed` is
    of the first audit; later ones keep it.
    """
    with transaction.atomic():
        with connection.cursor() as cursor:  # one audit of a campaign at a time
            cursor.execute("SELECT 1 FROM judging_campaign WHERE id = %s FOR UPDATE", [campaign.pk])
        drawn = _judged_items(campaign)
        # The total is spent in step with the judging: what is judged last must be open to an audit too.
        n_drawn = sum(campaign.draws.values_list("n_drawn", flat=True))
        affordable = items_in_total * len(drawn) / n_drawn
        already = (
            campaign.audits.order_by("-sequence").values_list("expected_in_total", flat=True).first() or 0.0
        )
        wanted = min(already + items_each_time, affordable, float(len(drawn)))
        # Less than one more item is not worth an audit, unless it completes the total.
        if not drawn or wanted <= already or wanted < min(already + 1, items_in_total):
            return None
        seed = _audit_seed(campaign, seed)
        pi, numbers = _audit_probabilities(campaign, drawn, wanted, seed)
        made = Audit.objects.create(
            campaign=campaign,
            sequence=campaign.audits.count() + 1,
            seed=seed,
            expected_in_total=wanted,
            n_eligible=int(np.count_nonzero(pi)),
            n_selected=int(np.count_nonzero(numbers < pi)),
        )
        AuditEntry.objects.bulk_create(
            (
                AuditEntry(
                    audit=made,
                    item=item,
                    inclusion_probability=float(probability),
                    selected=bool(number < probability),
                )
                for item, probability, number in zip(drawn, pi, numbers, strict=True)
                if probability > 0
            ),
            batch_size=BATCH,
        )
        _open_audit_slots(made)
        record("audited", campaign, actor=user, sequence=made.sequence, n_selected=made.n_selected)
    return made


def _judged_items(campaign: Campaign) -> list[Item]:
    """Return the drawn items all of whose wanted judgments are in, in frame order.

    A check that a later batch drew has slots of a check that count.
    """
    wanted = Q(slots__purpose__in=["judge", "check"], slots__state="done")
    return list(
        campaign.items.filter(Exists(DrawEntry.objects.filter(item=OuterRef("pk"))))
        .annotate(n_done=Count("slots", filter=wanted))
        .filter(n_done__gte=campaign.judgments_per_item)
        .select_related("topic", "document")
        .order_by("topic__topic_id", "document__doc_id")
    )


def _audit_seed(campaign: Campaign, wanted: int | None) -> int:
    """Return the seed of the campaign's audit numbers: fixed at the first audit, never the draw's."""
    first = campaign.audits.order_by("sequence").first()
    if first is not None:
        return first.seed
    if campaign.draws.filter(
        seed=wanted
    ).exists():  # the numbers of drawn items all lie below their probability there
        raise ValueError(f"the audit's seed must differ from the draw's, got {wanted}")
    return secrets.randbits(62) if wanted is None else wanted


def _audit_probabilities(
    campaign: Campaign, drawn: list[Item], wanted: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    newest = newest_draw(campaign)
    if newest is None:
        raise DrawRefused(NOT_DRAWN)
    parameters = newest.parameters
    runs = list(campaign.collection.runs.all())
    topic_ids = [item.topic.topic_id for item in drawn]
    doc_ids = [item.document.doc_id for item in drawn]
    pairs = pl.DataFrame({"topic_id": topic_ids, "doc_id": doc_ids})
    weights = weights_of_runs(
        ranks_in_frame(pairs, runs, parameters["depth"]), parameters["measure"], len(parameters["topics"])
    )
    asked = [index for index, run in enumerate(runs) if run.run_id in parameters["runs"]]
    is_pool = newest.question == Draw.Question.POOL
    chosen = list(range(len(runs))) if is_pool or not asked else asked
    probability = item_probabilities(campaign)
    drawn_with = np.array([probability[item.pk] for item in drawn])
    # Two Poisson parts, added: influence on the question, and an even part that keeps every judged item auditable.
    influence = weights[chosen]
    sizes = simple_audit_probabilities(len(drawn), AUDIT_FLOOR_SHARE * wanted)
    if np.any(np.ptp(influence, axis=0) > 0):  # else no judged item tells these runs apart yet: evenly
        sizes = sizes + audit_probabilities(influence, drawn_with, (1 - AUDIT_FLOOR_SHARE) * wanted, NO_FLOOR)
    pi = inclusion_probabilities(sizes, wanted)  # what certain items cannot use goes to the others
    pi = np.maximum(pi, _earlier_probabilities(campaign, drawn))
    return pi, permanent_random_numbers(topic_ids, doc_ids, seed)


def _earlier_probabilities(campaign: Campaign, drawn: list[Item]) -> np.ndarray:
    best: dict[Any, float] = {}
    rows = AuditEntry.objects.filter(audit__campaign=campaign).values_list("item_id", "inclusion_probability")
    for item_id, probability in rows:
        best[item_id] = max(best.get(item_id, 0.0), probability)
    return np.array([best.get(item.pk, 0.0) for item in drawn])


def _open_audit_slots(made: Audit) -> None:
    selected = [
        entry.item for entry in made.entries.filter(selected=True).select_related("item").order_by("item_id")
    ]
    open_slots(items=selected, purpose=Slot.Purpose.AUDIT, n_each=1, seed=made.seed + made.sequence)


def start_due_audits() -> None:
    """Queue the audits that are due. Idempotent: one job a campaign and period."""
    now = timezone.now()
    for schedule in AuditSchedule.objects.filter(is_active=True, campaign__state=Campaign.State.OPEN):
        period = int((now - schedule.starts_at) / timedelta(seconds=schedule.every_seconds))
        if period >= 1:
            jobs.enqueue(
                kind="audit",
                payload={"campaign": str(schedule.campaign_id)},
                period_key=f"audit:{schedule.pk}:{period}",
            )


def run_scheduled_audit(*, campaign_id: str) -> Audit | None:
    campaign = Campaign.objects.get(pk=campaign_id)
    if not campaign.draws.exists():
        raise DrawRefused(NOT_DRAWN)
    schedule = campaign.audit_schedule
    return audit(
        campaign=campaign, items_each_time=schedule.items_each_time, items_in_total=schedule.items_in_total
    )
