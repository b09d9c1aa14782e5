"""Designs and draws: which items a campaign judges, what a budget buys, and the record of every probability."""

import hashlib
import secrets
from dataclasses import dataclass
from typing import Any

import numpy as np
from django.core.files.base import ContentFile
from django.db import transaction

from judging.models import Campaign, Document, Item, Slot, Topic
from judging.services.campaigns import add_check_slots, open_slots
from judging.services.sources import store
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
    frame_file,
    weights_of_runs,
)
from sampling.measures import grade_gains, parse_measure
from sampling.models import Draw, DrawEntry
from sampling.pooling import Pool, prior_utility
from sampling.sizes import IdenticalSystemsError, pair_sizes
from touchstone.models import User, record

UNIFORM_SHARE = 0.05  # of the expected judgments, so that every pooled pair can be drawn
OTHER_RUNS_SHARE = 0.15  # so that runs other than the pair can be scored too
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
    relevant_gain = _relevant_gain(campaign, design.measure)
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
    all_topics = sorted(campaign.collection.topics.values_list("topic_id", flat=True))
    pooled, weights, prior = _population(campaign, design)
    a, b = _pair_rows(campaign, design)
    pi = _probabilities(design.kind, weights, prior, a, b, design.budget)
    topic_ids = pooled.topic_ids[pooled.topic_index]
    numbers = permanent_random_numbers(list(topic_ids), list(pooled.doc_ids), seed)
    selected = poisson_draw(pi, numbers)
    if selected.size == 0:
        raise DrawRefused("nothing was drawn: the budget is too small for this pool")
    with transaction.atomic():
        Campaign.objects.select_for_update().get(
            pk=campaign.pk
        )  # no import and no second draw beside this one
        if Draw.objects.filter(campaign=campaign).exists():
            raise DrawRefused("this campaign has been drawn already")
        if campaign.items.exists():
            raise DrawRefused("judgments were imported into this campaign; a draw must come first")
        columns = {"inclusion_probability": pi, "prior": prior, "random_number": numbers}
        content = frame_file(pooled, columns)
        made = Draw.objects.create(
            campaign=campaign,
            design=design.kind,
            parameters={**design.parameters(), "topics": all_topics},
            seed=seed,
            frame=store("frames", ContentFile(content), ".parquet"),
            frame_sha256=hashlib.sha256(content).hexdigest(),
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
        open_slots(
            items=items,
            purpose=Slot.Purpose.JUDGE,
            n_each=campaign.judgments_per_item,
            seed=seed,
        )
        is_drawn = np.zeros(pi.size, dtype=np.bool_)
        is_drawn[selected] = True

        def undrawn(topic_id: str) -> list[str]:
            rest = (topic_ids == topic_id) & ~is_drawn
            return [str(doc_id) for doc_id in pooled.doc_ids[rest]]

        add_check_slots(campaign=campaign, seed=seed + 1, undrawn=undrawn)
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
        _relevant_gain(campaign, design.measure)  # refuses a measure whose relevant grade is off the scale
    except ValueError as error:
        raise DrawRefused(str(error)) from error
    return pooled, weights, prior


def _relevant_gain(campaign: Campaign, measure: str) -> float:
    """Return the mean gain of a relevant document: what the prior guess of relevance is worth in the measure."""
    parsed = parse_measure(measure)
    relevant = parsed.relevant_grade or campaign.scale.relevant_grade
    gains = grade_gains(parsed, campaign.scale.gains(), relevant)
    return float(np.mean(gains[relevant:]))


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
