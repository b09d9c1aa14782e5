"""What a draw can select from: the pooled pairs of a collection, what the runs say of them, and their sizes."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from judging.models import Campaign, Run
from judging.rankings import rankings_frame, read_rankings
from sampling.designs import mixture, normalised, uniform_design
from sampling.frames import FrameRefused, collection_pool
from sampling.measures import FloatArray, Measure, grade_gains, parse_measure
from sampling.pooling import Pool, prior_utility
from sampling.prediction import posterior_prior
from sampling.questions import Design, Importance, importance, prior_of_runs, question_rows
from sampling.sizes import IdenticalSystemsError


class DrawRefused(FrameRefused):
    """The design cannot be carried out."""


@dataclass(frozen=True)
class Population:
    """The pooled pairs with everything a design looks at; nothing here is random.

    `prior` is the guess from the ranks of all runs, `guess` the same with imported scores where the design names some,
    both in (0, 1); `score` is NaN where there is none.
    """

    campaign: Campaign
    design: Design
    runs: list[Run]
    rows: list[int]  # the question's runs
    topics: list[str]  # all topics of the collection, sorted
    measure: Measure
    pooled: Pool
    says: Importance
    prior: FloatArray
    score: FloatArray | None
    guess: FloatArray
    gains: FloatArray  # of the measure, by grade
    relevant_gain: (
        float  # mean gain of a relevant document: what the guess of relevance is worth in the measure
    )

    @property
    def n_items(self) -> int:
        return int(self.prior.size)

    @property
    def topic_ids(self) -> np.ndarray:
        return np.asarray(self.pooled.topic_ids[self.pooled.topic_index])


def population(campaign: Campaign, design: Design) -> Population:
    """Return the population of the design, or refuse it by name."""
    runs = list(campaign.collection.runs.all())
    if not runs:
        raise DrawRefused("the collection has no runs: there is nothing to pool")
    topics = sorted(campaign.collection.topics.values_list("topic_id", flat=True))
    try:
        rows = question_rows(design, [run.run_id for run in runs])
        measure = parse_measure(design.measure)
        if measure.cutoff > design.depth:
            raise DrawRefused(
                f"the pool depth must be at least {measure.cutoff}, the cutoff of {measure.name}: "
                "deeper ranks would never be judged"
            )
        relevant = measure.relevant_grade or campaign.scale.relevant_grade
        gains = grade_gains(measure, campaign.scale.gains(), relevant)
        pooled = collection_pool(campaign.collection, runs, design.depth)
        says = importance(design.question, measure, pooled.returned, rows, len(topics))
    except IdenticalSystemsError as error:
        raise DrawRefused(str(error)) from error
    except FrameRefused:
        raise
    except ValueError as error:
        raise DrawRefused(str(error)) from error
    prior = prior_of_runs(pooled.returned, design.depth)
    score = imported_scores(campaign, design, pooled)
    guess = prior
    if score is not None and design.prior == "scores":
        known = ~np.isnan(score)
        guess = prior.copy()
        guess[known] = posterior_prior(
            prior[known], score[known], sensitivity=design.sensitivity, specificity=design.specificity
        )
    return Population(
        campaign=campaign,
        design=design,
        runs=runs,
        rows=rows,
        topics=topics,
        measure=measure,
        pooled=pooled,
        says=says,
        prior=prior,
        score=score,
        guess=guess,
        gains=gains,
        relevant_gain=float(gains[relevant:].mean()),
    )


def imported_scores(campaign: Campaign, design: Design, pooled: Pool) -> FloatArray | None:
    """Return the scores that the design names, per pooled pair, NaN where there is none."""
    if not design.scores:
        return None
    found = campaign.collection.score_lists.filter(name=design.scores).first()
    if found is None:
        raise DrawRefused(f"the collection has no scores named {design.scores!r}")
    scores = rankings_frame(read_rankings(Path(found.scores.path))).select("topic_id", "doc_id", "score")
    pairs = pl.DataFrame(
        {"topic_id": pooled.topic_ids[pooled.topic_index].astype(str), "doc_id": pooled.doc_ids.astype(str)}
    )
    joined = pairs.join(scores, on=["topic_id", "doc_id"], how="left", maintain_order="left")
    column = joined["score"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    if np.isnan(column).all():
        raise DrawRefused(f"the scores {design.scores!r} are of none of the {column.size} pooled documents")
    return np.asarray(column, dtype=np.float64)


# -- sizes --------------------------------------------------------------------------------------------------


def doubt(guess: FloatArray) -> FloatArray:
    """Return sqrt(p (1 - p)): the standard deviation of what is not known about an item."""
    return np.asarray(np.sqrt(guess * (1 - guess)))


def sizes(population: Population, guess: FloatArray) -> FloatArray:
    """Return the sizes of the default design, summing to 1: question, other runs and floor mixed.

    `guess` is the prior, or what earlier judgments predict.
    """
    design, n_items = population.design, population.n_items
    if design.question == "pool":
        return uniform_design(n_items)
    question = normalised(np.sqrt(population.says.squared_contrast) * doubt(guess))
    return mixture(
        question,
        [population.says.average_run, uniform_design(n_items)],
        [design.other_runs_share, design.uniform_share],
    )


def utility_of_the_questions_runs(population: Population) -> FloatArray:
    """Return u~ as the paper has it: guessed from the ranks in the question's runs alone."""
    if population.design.prior == "scores":
        return population.guess
    return prior_utility(population.pooled.returned.rows(population.rows), population.design.depth)


def single_draw_probability(population: Population, method: str) -> FloatArray:
    """Return Q of one draw with replacement: the paper's Q*, or the naive design."""
    utility = utility_of_the_questions_runs(population)
    if method == "paper" and population.design.question != "pool":
        return normalised(utility * np.sqrt(population.says.squared_contrast))
    return normalised(utility * population.says.summed_weights)
