"""Where the errors of a campaign's assessors are known from; the corrected number that a new run is to expect."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import polars as pl
from django.db.models import OuterRef, Subquery

from analytics.estimation.confusion import GOLD_FOR_A_ROW
from analytics.methods import REPORTED
from analytics.models import Computation, ConfusionEstimate
from analytics.services.claim_intervals import spread_of_topics, topic_values
from judging.kinds import ITEM_COLUMNS
from judging.models import Assessor, Campaign
from sampling.arrays import FloatArray
from sampling.campaign_plan import TopicSpread
from sampling.frames import returned_in_frame, runs_learned_from, tags_of_then
from sampling.judged import question_influence
from sampling.measures.families import grade_gains, weights_of_runs
from sampling.measures.registry import parse_linear, parse_measure
from sampling.measures.sparse import SparseRuns, from_dense
from sampling.models import Draw
from sampling.outlook import USUAL_RATES, LabelErrors, assumed_errors
from sampling.questions import Design, question_rows
from sampling.services.auditable import asked_runs
from sampling.services.outlook import (
    RATIO,
    WITH_REPLACEMENT,
    ExpectedDraw,
    Numbers,
    comparisons_among,
    corrected_outlook,
    no_outlook,
)

NOTHING_DRAWN = "No corrected number can be expected: no document is drawn"
Scope = ConfusionEstimate.Scope


def label_errors(
    campaign: Campaign, relevant_grade: int, rates: tuple[float, float] = USUAL_RATES
) -> LabelErrors:
    """Return how a label errs here: as gold shows in this campaign, else in others with its assessors, else as assumed.

    `rates` are the misses and false alarms to assume. Measured counts if gold has shown ten labels or more of documents
    on either side of relevance; of a grade without gold the row is the assumed one. Elsewhere are campaigns of the same
    collection, or of one open to all, with a scale of as many grades and the same relevant one.
    """
    n_grades = len(campaign.scale.values())
    assumed = assumed_errors(n_grades, relevant_grade, rates)
    here = _rows_here(campaign)
    counts = _sum_of(here, n_grades)
    if _says_enough(counts, relevant_grade):
        words = f"measured in this campaign on {_labels_known(here)}"
        return LabelErrors(_rows(counts, assumed.matrix), words, False)
    there = _elsewhere(campaign)
    counts = _sum_of(there, n_grades)
    if _says_enough(counts, relevant_grade):
        n_campaigns = len({row.computation_id for row in there})
        where = "1 earlier campaign" if n_campaigns == 1 else f"{n_campaigns} earlier campaigns"
        words = f"measured in {where} with the same assessors on {_labels_known(there)}"
        return LabelErrors(_rows(counts, assumed.matrix), words, False)
    return assumed


def errors_for(campaign: Campaign, design: Design, rates: tuple[float, float] = USUAL_RATES) -> LabelErrors:
    """Return `label_errors` for the measure of a design."""
    return label_errors(
        campaign, design.parse_measure().relevant_grade or campaign.scale.relevant_grade, rates
    )


def _rows_here(campaign: Campaign) -> list[ConfusionEstimate]:
    newest = Computation.objects.filter(campaign=campaign).order_by("-id").values("pk")[:1]
    return list(ConfusionEstimate.objects.filter(computation__in=Subquery(newest), scope=Scope.POOLED))


def _elsewhere(campaign: Campaign) -> list[ConfusionEstimate]:
    """Return the newest counts of the campaign's assessors in other campaigns that everybody here may know of."""
    judges = campaign.assessors.exclude(tier=Assessor.Tier.GOLD).values("user")
    others = Campaign.objects.filter(deleted_at=None, collection__deleted_at=None).exclude(pk=campaign.pk)
    others = others.filter(collection=campaign.collection) | others.filter(collection__is_restricted=False)
    newest = Computation.objects.filter(campaign=OuterRef("computation__campaign")).order_by("-id")
    rows = ConfusionEstimate.objects.filter(
        scope=Scope.ASSESSOR,
        assessor__user__in=judges,
        computation__campaign__in=others,
        computation=Subquery(newest.values("pk")[:1]),
    ).select_related("computation__campaign__scale")
    own = campaign.scale
    return [
        row
        for row in rows
        if (scale := row.computation.campaign.scale).relevant_grade == own.relevant_grade
        and len(scale.values()) == len(own.values())
    ]


def _sum_of(rows: Iterable[ConfusionEstimate], n_grades: int) -> FloatArray:
    """Return the effective counts: an audited label counts by its chance of an audit."""
    total = np.zeros((n_grades, n_grades))
    for row in rows:
        total += np.asarray(row.counts, dtype=np.float64)
    return total


def _labels_known(rows: Iterable[ConfusionEstimate]) -> str:
    """Return on how many labels the counts rest, in words: each is one assessor's of a document with a gold grade."""
    return f"{sum(row.n_labels for row in rows):,} labels of documents with a gold grade"


def _says_enough(counts: FloatArray, relevant: int) -> bool:
    return bool(min(counts[:relevant].sum(), counts[relevant:].sum()) >= GOLD_FOR_A_ROW)


def _rows(counts: FloatArray, assumed: FloatArray) -> FloatArray:
    """Return P(given | true), with half a label more in every cell; of a grade without gold the assumed row."""
    smoothed = counts + 0.5
    measured = smoothed / smoothed.sum(axis=1, keepdims=True)
    return np.where(counts.sum(axis=1, keepdims=True) > 0, measured, assumed)


# -- the spread between topics ------------------------------------------------------------------------------


def measured_topics(campaign: Campaign, design: Design) -> TopicSpread | None:
    """Return the spread between topics of what the design asks, as the campaign's estimates have it; None without."""
    run_ids = [run.run_id for run in campaign.collection.runs.all()]
    rows = question_rows(design, run_ids)
    asked = comparisons_among(design.question, len(rows))
    pairs = [(run_ids[rows[a]], None if b is None else run_ids[rows[b]]) for a, b in asked]
    return topics_of(campaign, design.measure, pairs)


def topics_of(
    campaign: Campaign, measure: str, comparisons: Iterable[tuple[str, str | None]]
) -> TopicSpread | None:
    """Return the mean spread between topics of these runs or pairs in the newest estimates; None where none has one."""
    newest = Computation.objects.filter(campaign=campaign).order_by("-id").first()
    if newest is None:
        return None
    known = newest.estimates.filter(
        measure=measure, method=REPORTED.key, value__isnull=False, topics_degrees_of_freedom__isnull=False
    )
    values = topic_values(newest, measure)
    wanted = {frozenset(filter(None, pair)) for pair in comparisons}
    names = {name for pair in wanted for name in pair}
    rows: Iterable[tuple[Any, ...]] = known.filter(run__run_id__in=names).values_list(
        "run", "run_b", "run__run_id", "run_b__run_id", "standard_error"
    )
    spreads = [
        spread_of_topics(values, run, run_b, error)
        for run, run_b, name, name_b, error in rows
        if frozenset(filter(None, (name, name_b))) in wanted
    ]
    found = [spread for spread in spreads if spread is not None]
    return TopicSpread(float(np.mean(found)), "measured in this campaign", False) if found else None


# -- a run that is asked about ----------------------------------------------------------------------------------


def reuse_outlook(
    campaign: Campaign,
    draw: Draw,
    frame: pl.DataFrame,
    *,
    weights: FloatArray,
    prior: FloatArray,
    gains: FloatArray,
    relevant: int,
    topics: TopicSpread | None,
) -> dict[str, Any]:
    """Return what is expected of the corrected number of a run, or pair, with these weights in the frame, as JSON.

    What is drawn is known; the audit is the planned one of the campaign's own question. `topics` is the spread between
    topics where it is measured.
    """
    drawn = frame["drawn_in"].to_numpy() > 0
    if not drawn.any():
        return no_outlook(NOTHING_DRAWN)
    if draw.selection_kind.with_replacement:
        return no_outlook(WITH_REPLACEMENT)
    if not parse_measure(draw.parameters["measure"]).kind.is_sum:
        return no_outlook(RATIO)
    measure = parse_linear(draw.parameters["measure"])
    own_relevant = measure.relevant_grade or campaign.scale.relevant_grade
    pooled, asked_about = _ranks(campaign, draw, frame, drawn)
    expected = ExpectedDraw(
        frame["inclusion_probability"].to_numpy(),
        _contrast(asked_about, draw, drawn),
        frame["topic_id"].rank("dense").to_numpy().astype(np.int64) - 1,
        prior,
        frame["prior"].to_numpy(),
        pooled,
        draw.parameters["depth"],
        frame["score"].fill_null(float("nan")).to_numpy() if "score" in frame.columns else None,
        drawn,
    )
    numbers = Numbers(
        np.square(weights),
        from_dense(weights[None]),
        ((0, None),),
        gains,
        relevant,
        len(draw.parameters["topics"]),
        topics,
    )
    asked = grade_gains(measure, campaign.scale.gains(), own_relevant)
    return corrected_outlook(campaign, expected, numbers, asked, label_errors(campaign, relevant))


def _ranks(
    campaign: Campaign, draw: Draw, frame: pl.DataFrame, drawn: np.ndarray
) -> tuple[SparseRuns, SparseRuns]:
    """Return where runs rank the drawn documents, [run, frame]: the pooled ones, which the reported estimator learns
    from, and those of the question of the draw, which its audits go by."""
    known = list(campaign.collection.runs.all())
    learned_from, keys = runs_learned_from(draw), {run.pk for run in known}
    runs = [*known, *(run for run in learned_from if run.pk not in keys)]
    place_of = {run.pk: place for place, run in enumerate(runs)}
    pooled = [place_of[run.pk] for run in learned_from]
    asked = asked_runs(draw, tags_of_then(draw, known))
    read = sorted({*pooled, *asked})
    pairs = frame.filter(pl.Series(drawn)).select(ITEM_COLUMNS)
    ranks = returned_in_frame(pairs, [runs[place] for place in read], draw.parameters["depth"])
    place = np.flatnonzero(drawn).astype(ranks.item.dtype)
    table = SparseRuns(ranks.n_runs, frame.height, ranks.run, place[ranks.item], ranks.value)
    return table.rows(np.searchsorted(read, pooled)), table.rows(np.searchsorted(read, asked))


def _contrast(ranks: SparseRuns, draw: Draw, drawn: np.ndarray) -> FloatArray:
    """Return how much a drawn document says about the question of the draw."""
    weights = weights_of_runs(parse_linear(draw.parameters["measure"]), ranks, len(draw.parameters["topics"]))
    return np.where(drawn, question_influence(weights, np.ones(drawn.size)), 0.0)
