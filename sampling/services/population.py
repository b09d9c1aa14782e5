"""The population of a draw: the pooled pairs of a collection, their importance for the question, and their sizes."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from judging.kinds import ITEM_COLUMNS
from judging.models import Campaign, Run
from sampling.contrasts import Importance, default_sizes, importance, single_draw_probability
from sampling.expert_pools import prior_of_experts
from sampling.frames import FrameRefused, collection_pool, newest_draw, pooled_runs
from sampling.measures.design_weights import DesignWeights, PriorGrades, design_weights
from sampling.measures.families import FloatArray, Measure, grade_gains
from sampling.pooling import Pool, prior_utility
from sampling.prediction import posterior_prior
from sampling.questions import Design, prior_of_runs, question_rows
from sampling.score_calibration import Calibration, log_popularity
from sampling.services.calibrating import calibration_of, stored_scores


class DrawRefused(FrameRefused):
    """The design cannot be carried out."""

    title = "The design cannot be carried out"


@dataclass(frozen=True)
class PooledPairs:
    """The pooled pairs with what every design looks at; nothing here is random.

    `prior` is the prior probability of relevance from the ranks of all runs, `design_prior` the one that the design
    names: from these ranks, from the consensus of the runs, with imported scores; both in (0, 1). Where scores were
    calibrated elsewhere they are the same: measured, it is also what predictions start from. `score` is NaN where there
    is none.
    """

    campaign: Campaign
    design: Design
    runs: list[Run]
    rows: list[int]  # the question's runs
    topics: list[str]  # all topics of the collection, sorted
    measure: Measure[Any]
    pooled: Pool
    prior: FloatArray
    score: FloatArray | None
    calibration: Calibration | None
    design_prior: FloatArray
    gains: FloatArray  # of the measure, by grade
    relevant_grade: int
    relevant_gain: float  # mean gain of a relevant document: what a prior of 1 is worth in the measure

    @property
    def n_items(self) -> int:
        return int(self.prior.size)

    @cached_property
    def pairs(self) -> pl.DataFrame:
        return pooled_pairs(self.pooled)


@dataclass(frozen=True)
class Population(PooledPairs):
    """The pooled pairs of a design that draws documents, with what each says about the question."""

    weights: DesignWeights  # of all known runs
    says: Importance

    @property
    def n_silent_topics(self) -> int | None:
        """Return how many pooled topics have no document that says anything of the question; None of a sum."""
        if self.measure.kind.is_sum:
            return None
        speaks = np.bincount(self.pooled.topic_index, self.says.variance(self.design_prior))
        return int(np.count_nonzero(speaks == 0))


def population_of(campaign: Campaign, design: Design) -> Population:
    """Return the population of the design, or refuse it by name."""
    common = pairs_of_design(campaign, design)
    pooled, gains = common["pooled"], common["gains"][common["relevant_grade"] :]
    try:
        weights = design_weights(
            common["measure"],
            pooled.returned,
            len(common["topics"]),
            PriorGrades(pooled.topic_index, common["design_prior"], gains),
        )
        says = importance(design.question, weights, common["rows"])
    except ValueError as error:
        raise DrawRefused(str(error)) from error
    return Population(weights=weights, says=says, **common)


def _runs_to_pool(campaign: Campaign) -> tuple[list[Run], list[Run]]:
    """Return the collection's runs, and those set aside that the batches so far have pooled: their pairs stay."""
    newest = newest_draw(campaign)
    pooled = [] if newest is None else pooled_runs(newest)
    return list(campaign.collection.runs.all()), [run for run in pooled if run.set_aside_at is not None]


def pairs_of_design(campaign: Campaign, design: Design) -> dict[str, Any]:
    """Return the fields of `PooledPairs`, or refuse the design by name."""
    known, aside = _runs_to_pool(campaign)
    runs = [*known, *aside]
    if not known:
        raise DrawRefused("the collection has no runs: there is nothing to pool")
    topics = sorted(campaign.collection.topics.values_list("topic_id", flat=True))
    try:
        rows = question_rows(design, [run.run_id for run in known])
        measure = design.parse_measure()
        if measure.last_rank > design.depth:
            raise DrawRefused(
                f"the pool depth must be at least {measure.last_rank}, the cutoff of {measure.name}: "
                "deeper ranks would never be judged"
            )
        relevant = measure.relevant_grade or campaign.scale.relevant_grade
        gains = grade_gains(measure, campaign.scale.gains(), relevant)
        if not gains.any():
            raise DrawRefused(
                f"no grade of this scale has a gain above 0 in {measure.name}: every value is 0, nothing to judge"
            )
        pooled = collection_pool(campaign.collection, runs, design.depth)
    except ValueError as error:
        raise DrawRefused(str(error)) from error
    prior = prior_of_runs(pooled.returned, design.depth)
    score = imported_scores(campaign, design, pooled)
    calibration = calibration_of(campaign, design, measure)
    known_prior = _prior_of_experts(pooled, prior) if design.prior == "experts" else prior
    design_prior = known_prior
    if score is not None and design.prior != "runs":
        design_prior = _prior_with_scores(design, pooled, known_prior, score, calibration)
    return {
        "campaign": campaign,
        "design": design,
        "runs": runs,
        "rows": rows,
        "topics": topics,
        "measure": measure,
        "pooled": pooled,
        "prior": prior if calibration is None else design_prior,
        "score": score,
        "calibration": calibration,
        "design_prior": design_prior,
        "gains": gains,
        "relevant_grade": relevant,
        "relevant_gain": float(gains[relevant:].mean()),
    }


def _prior_with_scores(
    design: Design, pooled: Pool, prior: FloatArray, score: FloatArray, calibration: Calibration | None
) -> FloatArray:
    """Return the prior with the scores where there are some, as gold elsewhere reads them or as is assumed."""
    known, found = ~np.isnan(score), prior.copy()
    if calibration is not None:
        popularity = log_popularity(pooled.returned, design.depth)
        found[known] = calibration.prior(prior[known], score[known], popularity[known])
    else:
        rates = {"sensitivity": design.sensitivity, "specificity": design.specificity}
        found[known] = posterior_prior(prior[known], score[known], **rates)
    return found


def _prior_of_experts(pooled: Pool, prior: FloatArray) -> FloatArray:
    try:
        return prior_of_experts(pooled.returned, pooled.topic_index, prior)
    except ValueError as error:
        raise DrawRefused(f"{error}; choose the ranks of all runs as the prior") from error


def pooled_pairs(pooled: Pool) -> pl.DataFrame:
    """Return topic_id and doc_id of every pooled pair, in frame order."""
    topic_ids = pl.Series("topic_id", list(pooled.topic_ids), dtype=pl.String).gather(pooled.topic_index)
    return pl.DataFrame([topic_ids, pl.Series("doc_id", list(pooled.doc_ids), dtype=pl.String)])


def imported_scores(campaign: Campaign, design: Design, pooled: Pool) -> FloatArray | None:
    """Return the scores that the design names, per pooled pair, NaN where there is none."""
    if not design.scores:
        return None
    score_list = campaign.collection.score_lists.filter(name=design.scores).first()
    if score_list is None:
        raise DrawRefused(f"the collection has no scores named {design.scores!r}")
    joined = pooled_pairs(pooled).join(
        stored_scores(score_list), on=ITEM_COLUMNS, how="left", maintain_order="left"
    )
    column = joined["score"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    if np.isnan(column).all():
        raise DrawRefused(f"the scores {design.scores!r} are of none of the {column.size} pooled documents")
    return np.asarray(column, dtype=np.float64)


# -- sizes --------------------------------------------------------------------------------------------------


def prior_spread(prior: FloatArray) -> FloatArray:
    """Return sqrt(p (1 - p)): the prior standard deviation of an item's relevance."""
    return np.asarray(np.sqrt(prior * (1 - prior)))


def sizes(population: Population) -> FloatArray:
    """Return the sizes of the design that follow from the frame alone; of the paper's methods Q itself."""
    if population.design.method != "default":
        return single_draws(population, population.design.method)
    return default_sizes(population.design, population.says, population.design_prior)


def utility_of_the_questions_runs(population: Population) -> FloatArray:
    """Return u~ as the paper has it: the prior utility from the ranks in the question's runs alone."""
    if population.design.prior != "runs":
        return population.design_prior
    return prior_utility(population.pooled.returned.rows(population.rows), population.design.depth)


def single_draws(population: Population, method: str) -> FloatArray:
    """Return Q of one draw with replacement: the paper's Q*, or the naive design."""
    utility = utility_of_the_questions_runs(population)
    return single_draw_probability(population.design.question, method, population.says, utility)
