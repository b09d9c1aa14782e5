"""Designs, draws and audits: which items a campaign judges, and which of them the gold tier judges again."""

import secrets
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np
from django.db import connection, transaction
from django.db.models import Count, Q
from django.utils import timezone

from judging.models import Campaign, Document, Item, Slot, Topic
from judging.services.campaigns import add_check_slots
from sampling.audits import audit_probabilities, simple_audit_probabilities
from sampling.designs import (
    average_run_design,
    forecast_half_width,
    forecast_naive_half_width,
    inclusion_probabilities,
    mixture,
    naive_design,
    normalised,
    pair_design,
    uniform_design,
)
from sampling.draws import permanent_random_numbers, poisson_draw
from sampling.frames import (
    FrameRefused,
    collection_pool,
    load_frame,
    ranks_in_frame,
    save_frame,
    weights_of_runs,
)
from sampling.measures import grade_gains, parse_measure
from sampling.models import Audit, AuditEntry, AuditSchedule, Draw, DrawEntry
from sampling.pooling import Pool, prior_utility
from sampling.sizes import IdenticalSystemsError, pair_sizes
from touchstone import jobs
from touchstone.models import User, record

UNIFORM_SHARE = 0.05  # of the expected judgments, so that every pooled pair can be drawn
OTHER_RUNS_SHARE = 0.15  # so that runs other than the pair can be scored too
AUDIT_FLOOR_SHARE = 0.2  # of an audit is spread evenly, so that every judged item can be audited
NO_FLOOR = 1e-9
BATCH = 2000


class DrawRefused(FrameRefused):
    """The design cannot be carried out."""


@dataclass(frozen=True)
class Design:
    """What to draw for: `kind` is "pair" (two runs, Schnabel et al. Eq 9 with a mixture floor) or "pool" (evenly)."""

    kind: str
    run_a: str
    run_b: str
    measure: str
    depth: int
    budget: int

    def parameters(self) -> dict[str, Any]:
        return {
            "run_a": self.run_a,
            "run_b": self.run_b,
            "measure": self.measure,
            "depth": self.depth,
            "budget": self.budget,
            "uniform_share": UNIFORM_SHARE,
            "other_runs_share": OTHER_RUNS_SHARE,
        }


@dataclass(frozen=True)
class Preview:
    """Expected half-widths of the difference's 95 % interval at several budgets, before a judgment is spent."""

    n_frame: int
    n_pair: int
    budgets: list[int]
    designs: dict[str, list[float]]


def preview(*, campaign: Campaign, design: Design) -> Preview:
    """Return what a budget buys under the pair design, the even pool design and naive draws with replacement."""
    _, weights, prior = _population(campaign, design)
    a, b = _pair_rows(campaign, design)
    parsed = parse_measure(design.measure)
    gains = grade_gains(
        parsed, campaign.scale.gains(), parsed.relevant_grade or campaign.scale.relevant_grade
    )
    # A document is guessed to be relevant with probability `prior`, and then to have the mean gain of a relevant one.
    relevant_gain = float(np.mean(gains[gains > 0])) if (gains > 0).any() else 0.0
    contrast = (weights[a] - weights[b]) * relevant_gain
    spread = prior * (1 - prior)
    n_frame = prior.size
    budgets = sorted({int(n) for n in np.linspace(0.05, 1, 12) * n_frame} | {min(design.budget, n_frame)})
    budgets = [n for n in budgets if n >= 10]
    widths: dict[str, list[float]] = {"pair": [], "pool": [], "naive": []}
    for budget in budgets:
        for kind in ("pair", "pool"):
            pi = _probabilities(kind, weights, prior, a, b, budget)
            widths[kind].append(float(forecast_half_width(pi, contrast, spread)))
        q = naive_design(weights[[a, b]], np.ones(n_frame))
        reachable = min(budget, int(np.count_nonzero(q)) - 1)
        widths["naive"].append(float(forecast_naive_half_width(q, contrast, prior, prior, reachable)))
    return Preview(n_frame, int(np.count_nonzero(contrast)), budgets, widths)


def draw(*, campaign: Campaign, design: Design, seed: int | None = None, user: User | None = None) -> Draw:
    """Draw the campaign's items, record every probability, and make their slots. Once a campaign."""
    seed = secrets.randbits(62) if seed is None else seed
    pooled, weights, prior = _population(campaign, design)
    a, b = _pair_rows(campaign, design)
    pi = _probabilities(design.kind, weights, prior, a, b, design.budget)
    topic_ids = pooled.topic_ids[pooled.topic_index]
    numbers = permanent_random_numbers(list(topic_ids), list(pooled.doc_ids), seed)
    selected = poisson_draw(pi, numbers)
    if selected.size == 0:
        raise DrawRefused("nothing was drawn: the budget is too small for this pool")
    with transaction.atomic():
        if Draw.objects.filter(campaign=campaign).exists():
            raise DrawRefused("this campaign has been drawn already")
        columns = {"inclusion_probability": pi, "prior": prior, "random_number": numbers}
        name, digest = save_frame(campaign, pooled, columns)
        made = Draw.objects.create(
            campaign=campaign,
            design=design.kind,
            parameters=design.parameters(),
            seed=seed,
            frame=name,
            frame_sha256=digest,
            n_frame=pi.size,
            n_drawn=selected.size,
            drawn_by=user,
        )
        items = _make_items(campaign, topic_ids[selected], pooled.doc_ids[selected])
        DrawEntry.objects.bulk_create(
            (
                DrawEntry(draw=made, item=item, inclusion_probability=float(pi[index]))
                for item, index in zip(items, selected, strict=True)
            ),
            batch_size=BATCH,
        )
        _make_slots(campaign, items, np.random.default_rng(seed))
        add_check_slots(campaign=campaign, seed=seed)
        record("drawn", campaign, actor=user, n_drawn=int(selected.size), design=design.kind)
    return made


def _population(campaign: Campaign, design: Design) -> tuple[Pool, np.ndarray, np.ndarray]:
    runs = list(campaign.collection.runs.all())
    if len(runs) < 2:
        raise DrawRefused("the collection needs at least two runs")
    if design.budget < 1:
        raise DrawRefused(f"the budget must be at least 1, got {design.budget}")
    pooled = collection_pool(campaign.collection, runs, design.depth)
    try:
        weights = weights_of_runs(pooled.ranks, design.measure, campaign.collection.topics.count())
        prior = prior_utility(pooled.ranks, design.depth)
    except ValueError as error:
        raise DrawRefused(str(error)) from error
    return pooled, weights, prior


def _pair_rows(campaign: Campaign, design: Design) -> tuple[int, int]:
    run_ids = list(campaign.collection.runs.values_list("run_id", flat=True))
    for run_id in (design.run_a, design.run_b):
        if run_id not in run_ids:
            raise DrawRefused(f"the collection has no run {run_id!r}")
    if design.run_a == design.run_b:
        raise DrawRefused("choose two different runs")
    return run_ids.index(design.run_a), run_ids.index(design.run_b)


def _probabilities(
    kind: str, weights: np.ndarray, prior: np.ndarray, a: int, b: int, budget: int
) -> np.ndarray:
    n_items = prior.size
    if kind == "pool":
        return inclusion_probabilities(np.ones(n_items), min(budget, n_items))
    if kind != "pair":
        raise DrawRefused(f"unknown design {kind!r}")
    try:
        pair_design(weights[a], weights[b], prior)  # refuses identical systems by name
        question = normalised(pair_sizes(weights[a], weights[b], prior))
    except IdenticalSystemsError as error:
        raise DrawRefused(
            "the two runs rank alike: their difference is exactly 0, there is nothing to judge"
        ) from error
    sizes = mixture(
        question, [average_run_design(weights), uniform_design(n_items)], [OTHER_RUNS_SHARE, UNIFORM_SHARE]
    )
    return inclusion_probabilities(sizes, min(budget, n_items))


def _make_items(campaign: Campaign, topic_ids: np.ndarray, doc_ids: np.ndarray) -> list[Item]:
    topics = dict(Topic.objects.filter(collection=campaign.collection).values_list("topic_id", "pk"))
    documents = dict(
        Document.objects.filter(collection=campaign.collection, doc_id__in=set(doc_ids)).values_list(
            "doc_id", "pk"
        )
    )
    return Item.objects.bulk_create(
        (
            Item(campaign=campaign, topic_id=topics[topic_id], document_id=documents[doc_id])
            for topic_id, doc_id in zip(topic_ids, doc_ids, strict=True)
        ),
        batch_size=BATCH,
    )


def _make_slots(campaign: Campaign, items: list[Item], rng: np.random.Generator) -> None:
    positions = rng.permutation(len(items))  # the order within a topic tells nothing about the document
    Slot.objects.bulk_create(
        (
            Slot(
                item=item,
                purpose=Slot.Purpose.JUDGE,
                number=number,
                campaign=campaign,
                topic_id=item.topic_id,
                position=int(position),
            )
            for item, position in zip(items, positions, strict=True)
            for number in range(1, campaign.judgments_per_item + 1)
        ),
        batch_size=BATCH,
    )


# -- audits -------------------------------------------------------------------------------------------------


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
        earlier = campaign.audits.count()
        # The total is spent in step with the judging: what is judged last must be open to an audit too.
        affordable = items_in_total * len(drawn) / campaign.draw.n_drawn
        wanted = min(float((earlier + 1) * items_each_time), affordable, float(len(drawn)))
        already = (
            campaign.audits.order_by("-sequence").values_list("expected_in_total", flat=True).first() or 0.0
        )
        if not drawn or wanted <= already:
            return None
        seed = _audit_seed(campaign, seed)
        pi, numbers = _audit_probabilities(campaign, drawn, wanted, seed)
        made = Audit.objects.create(
            campaign=campaign,
            sequence=earlier + 1,
            seed=seed,
            expected_in_total=wanted,
            n_eligible=int(np.count_nonzero(pi)),
            n_selected=int(np.count_nonzero(numbers < pi)),
        )
        AuditEntry.objects.bulk_create(
            (
                AuditEntry(
                    audit=made,
                    item_id=entry.item_id,
                    inclusion_probability=float(probability),
                    selected=bool(number < probability),
                )
                for entry, probability, number in zip(drawn, pi, numbers, strict=True)
                if probability > 0
            ),
            batch_size=BATCH,
        )
        _open_audit_slots(campaign, made)
        record("audited", campaign, actor=user, sequence=made.sequence, n_selected=made.n_selected)
    return made


def _judged_items(campaign: Campaign) -> list[DrawEntry]:
    """Return the drawn items all of whose wanted judgments are in, in frame order."""
    complete = Count("item__slots", filter=Q(item__slots__purpose="judge", item__slots__state="done"))
    return list(
        DrawEntry.objects.filter(draw__campaign=campaign)
        .annotate(n_done=complete)
        .filter(n_done=campaign.judgments_per_item)
        .select_related("item__topic", "item__document")
        .order_by("item__topic__topic_id", "item__document__doc_id")
    )


def _audit_seed(campaign: Campaign, wanted: int | None) -> int:
    """Return the seed of the campaign's audit numbers: fixed at the first audit, never the draw's."""
    first = campaign.audits.order_by("sequence").first()
    if first is not None:
        return first.seed
    if wanted == campaign.draw.seed:  # the numbers of drawn items all lie below their probability there
        raise ValueError(f"the audit's seed must differ from the draw's, got {wanted}")
    return secrets.randbits(62) if wanted is None else wanted


def _audit_probabilities(
    campaign: Campaign, drawn: list[DrawEntry], wanted: float, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    frame = load_frame(campaign.draw)
    parameters = campaign.draw.parameters
    runs = list(campaign.collection.runs.all())
    weights = weights_of_runs(
        ranks_in_frame(frame, runs, parameters["depth"]),
        parameters["measure"],
        campaign.collection.topics.count(),
    )
    place = {pair: index for index, pair in enumerate(frame.select("topic_id", "doc_id").iter_rows())}
    topic_ids = [entry.item.topic.topic_id for entry in drawn]
    doc_ids = [entry.item.document.doc_id for entry in drawn]
    columns = [place[pair] for pair in zip(topic_ids, doc_ids, strict=True)]
    of_pair = [
        index for index, run in enumerate(runs) if run.run_id in (parameters["run_a"], parameters["run_b"])
    ]
    chosen = of_pair if campaign.draw.design == "pair" else list(range(len(runs)))
    drawn_with = np.array([entry.inclusion_probability for entry in drawn])
    # Two Poisson parts, added: influence on the question, and an even part that keeps every judged item auditable.
    influence = weights[:, columns][chosen]
    sizes = simple_audit_probabilities(len(drawn), AUDIT_FLOOR_SHARE * wanted)
    if np.any(np.ptp(influence, axis=0) > 0):  # else no judged item tells these runs apart yet: evenly
        sizes = sizes + audit_probabilities(influence, drawn_with, (1 - AUDIT_FLOOR_SHARE) * wanted, NO_FLOOR)
    pi = inclusion_probabilities(sizes, wanted)  # what certain items cannot use goes to the others
    pi = np.maximum(pi, _earlier_probabilities(campaign, drawn))
    return pi, permanent_random_numbers(topic_ids, doc_ids, seed)


def _earlier_probabilities(campaign: Campaign, drawn: list[DrawEntry]) -> np.ndarray:
    best: dict[Any, float] = {}
    rows = AuditEntry.objects.filter(audit__campaign=campaign).values_list("item_id", "inclusion_probability")
    for item_id, probability in rows:
        best[item_id] = max(best.get(item_id, 0.0), probability)
    return np.array([best.get(entry.item_id, 0.0) for entry in drawn])


def _open_audit_slots(campaign: Campaign, made: Audit) -> None:
    rng = np.random.default_rng(made.seed + made.sequence)
    selected = list(made.entries.filter(selected=True).select_related("item").order_by("item_id"))
    positions = rng.permutation(len(selected))
    Slot.objects.bulk_create(
        (
            Slot(
                item=entry.item,
                purpose=Slot.Purpose.AUDIT,
                number=1,
                campaign=campaign,
                topic_id=entry.item.topic_id,
                position=int(position),
            )
            for entry, position in zip(selected, positions, strict=True)
        ),
        batch_size=BATCH,
        ignore_conflicts=True,  # selected by an earlier audit: it is being judged, or judged, already
    )


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
    schedule = campaign.audit_schedule
    return audit(
        campaign=campaign, items_each_time=schedule.items_each_time, items_in_total=schedule.items_in_total
    )
