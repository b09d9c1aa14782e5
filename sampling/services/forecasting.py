"""Forecasts of a budget under several designs, before any judgment."""

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from judging.models import Campaign
from sampling.arrays import run_table
from sampling.campaign_plan import TopicSpread
from sampling.contrasts import (
    contrast_among,
    default_sizes,
    mean_square_total,
    run_totals,
    variances_of_runs,
)
from sampling.designs import inclusion_probabilities, normalise
from sampling.forecasts import NORMAL_97_5, draws_for_distinct, question_half_width
from sampling.frames import newest_draw
from sampling.judged import Judged, question_influence
from sampling.measures.families import FloatArray
from sampling.outlook import LabelErrors, assumed_errors
from sampling.questions import Design, nested_probabilities
from sampling.services.corrected_forecasting import CorrectedWidths, corrected_widths
from sampling.services.drawing import earlier_columns
from sampling.services.outlook import WHOLE_TOPICS, design_outlook, no_outlook
from sampling.services.population import (
    DrawRefused,
    Population,
    population_of,
    single_draws,
    sizes,
)
from sampling.services.topic_forecasting import TopicCurve
from sampling.services.topic_population import TopicPopulation, topic_population_of
from sampling.strategies import DEFAULT_STRATEGY, strategy_probabilities

N_BUDGETS = 12
Progress = Callable[[int, int, str], None]
FEWEST_ITEMS = 10  # below, no interval is given


@dataclass(frozen=True)
class Mixture:
    """What the shares for other runs, and evenly over the pool, cost the question, and what they buy.

    They cost items: without them `n_items_without` would give the same half-width, or as many items the half-width
    `half_width_without`. They buy the values of single runs from the same judgments, of the question or not: the median
    half-width with and without the shares (None: of half of the runs there would be none), and of how many of the
    `n_runs` there is one. Under the prior of relevance, as the preview.
    """

    n_items_without: float | None
    half_width_without: float | None
    n_runs: int
    n_estimable: int
    n_estimable_without: int
    run_half_width: float | None
    run_half_width_without: float | None


@dataclass(frozen=True)
class Preview:
    """Expected half-widths of the 95 % confidence intervals at several budgets, under the prior of relevance.

    For a question with several comparisons the root of their mean square. `widths[design][budget]` is None where the
    design cannot reach the budget. "default" is the design as asked for; "paper" and "naive" are drawn with
    replacement and compared at the same number of different items; "pool" is every pooled pair alike.
    """

    n_frame: int
    # Pairs that say anything about the question; of whole topics, all that are judged where every topic is drawn.
    n_question: int
    n_comparisons: int
    already: float  # expected number of items that earlier batches draw
    budgets: list[int]
    widths: dict[str, list[float | None]]
    same_width: dict[
        str, float | None
    ]  # judgments that each design needs for the default's width at the budget
    # Where scores are the prior: the half-width if a machine's judgments of the whole pool said the same as the scores,
    # and an audit took as many gold labels as the budget.
    audit_half_width: float | None = None
    mixture: dict[str, Any] | None = None  # a `Mixture`; None for designs without one
    n_topics: float | None = None  # judged at the budget, where whole topics are drawn
    n_silent_topics: int | None = (
        None  # of a ratio: pooled topics of which no document says anything of the question
    )
    limit: str = ""  # of a ratio: why so few judgments give no interval of the corrected number
    # The corrected number at the budget, assessors' errors included: `sampling.services.outlook`. `widths` are the
    # drawing alone, judgments taken as free of error.
    corrected: dict[str, Any] = field(default_factory=dict)
    # The same at every budget, in closed form and for these topics; empty where there will be none.
    corrected_widths: list[float | None] = field(default_factory=list)
    # The same by design at the budget, of the designs of which it is forecast; and the least that any number of items
    # from the budget up to the whole pool reaches with the planned audit.
    corrected_by_design: dict[str, float | None] = field(default_factory=dict)
    corrected_floor: float | None = None

    @property
    def n_drawable(self) -> int:
        """Return how many pairs a draw can reach at most: of whole topics, those that the measure needs."""
        return self.n_frame if self.n_topics is None else self.n_question

    @property
    def floor(self) -> tuple[float | None, float | None, float | None]:
        """Return the gold labels of the planned audit, the half-width at the budget, and the least there is."""
        return self.corrected.get("n_gold"), self.corrected_by_design.get("default"), self.corrected_floor

    def as_json(self) -> dict[str, Any]:
        return {**self.__dict__}


class Curve(Protocol):
    """A design of which the half-width is known at any budget; None where it does not reach it."""

    def half_width(self, budget: float) -> float | None: ...


def designed_population(campaign: Campaign, design: Design) -> Population | TopicPopulation:
    """Return what the design looks at, of documents or of whole topics, or refuse it by name."""
    if design.has_whole_topics:
        return topic_population_of(campaign, design)
    return population_of(campaign, design)


def preview(
    *,
    campaign: Campaign,
    design: Design,
    population: Population | TopicPopulation | None = None,
    errors: LabelErrors | None = None,
    topics: TopicSpread | None = None,
    progress: Progress = lambda *_: None,
) -> Preview:
    """Return the forecast of a budget; a campaign that was drawn already starts from its present probabilities.

    Pass `population` if the design's population is in memory already; `errors` are the assessors', by default the usual
    assumption; `topics` the measured spread between topics; `progress` is told of each design compared.
    """
    earlier = newest_draw(campaign)
    if earlier is not None and earlier.selection_kind.no_top_up:
        raise DrawRefused(earlier.selection_kind.no_top_up)
    population = designed_population(campaign, design) if population is None else population
    before = earlier_columns(earlier, population).probability
    n_frame, already = population.n_items, float(before.sum())
    curves: dict[str, Curve] = {}
    most = n_frame
    n_topics = audit_half_width = mixture = n_silent_topics = None
    corrected = no_outlook(WHOLE_TOPICS)
    if isinstance(population, TopicPopulation):
        most = n_question = int(np.count_nonzero(population.is_needed | (before > 0)))
        curves |= {name: TopicCurve(population, name, before) for name in ("even", "default")}
        n_topics = TopicCurve(population, "default", before).n_topics(min(design.budget, most))
    else:
        n_question = int(np.count_nonzero(population.says.matters))
        n_silent_topics = population.n_silent_topics
        by_document = {
            name: _Curve(population, name, before)
            for name in ("naive", "paper", "pool", "default")
            if not (name == "pool" and design.question == "pool")
            and (name in ("pool", "default") or population.measure.kind.is_sum)
        }
        curves |= by_document
        own = by_document["default"]
        audit_half_width = None if before.any() else _audit_half_width(population, own.variance)
        mixture = _mixture(population, before, own, min(design.budget, n_frame))
        errors = errors or assumed_errors(population.gains.size, population.relevant_grade)
        probability = own.probabilities(min(design.budget, n_frame))
        corrected = design_outlook(population, probability, errors, topics)
    budgets = _budgets(most, n_question, already, min(design.budget, most))
    half_width = curves["default"].half_width(min(design.budget, most))
    widths: dict[str, list[float | None]] = {}
    same_width: dict[str, float | None] = {}
    for place, (name, curve) in enumerate(curves.items()):
        progress(place, len(curves), f"{n_frame} pooled documents, design {place + 1} of {len(curves)}")
        widths[name] = [curve.half_width(n) for n in budgets]
        same_width[name] = budget_for(curve, half_width, most)
    by_budget = CorrectedWidths()
    if isinstance(population, Population) and errors is not None:
        draws: dict[str, Callable[[float], FloatArray]] = {
            name: by_document[name].probabilities for name in ("default", "pool") if name in by_document
        }
        by_budget = corrected_widths(population, draws, budgets, min(design.budget, most), errors)
    return Preview(
        n_frame=n_frame,
        n_question=n_question,
        n_comparisons=_n_comparisons(design.question, len(population.rows)),
        already=already,
        budgets=budgets,
        widths=widths,
        same_width=same_width,
        audit_half_width=audit_half_width,
        mixture=mixture,
        n_topics=n_topics,
        n_silent_topics=n_silent_topics,
        corrected=corrected,
        corrected_widths=by_budget.widths,
        corrected_by_design=by_budget.by_design,
        corrected_floor=by_budget.floor,
    )


def _audit_half_width(population: Population, variance: FloatArray) -> float | None:
    """Return the half-width of the other way to use the scores: as judgments of the whole pool, audited by influence.

    A score says as much of a document as the judgment would: `variance`, times the squared contrast, is what either
    leaves open of its gain. None where scores are not the prior, or do not cover the pool.
    """
    design, score, n = population.design, population.score, population.n_items
    if design.prior != "scores" or score is None or np.isnan(score).any() or design.budget > n:
        return None
    contrast = run_table("contrast", contrast_among(population.weights.rows(population.rows))[None])
    everything, nothing = np.ones(n), np.zeros(n, dtype=np.int64)
    judged = Judged(
        influence=question_influence(contrast, everything),
        inclusion_probability=everything,
        topic_index=population.pooled.topic_index,
        bronze_grade=nothing,
        error_variance=variance,
        n_grades=1,
    )
    chance = strategy_probabilities(DEFAULT_STRATEGY, judged, expected_count=design.budget)
    return float(NORMAL_97_5 * np.sqrt(((1 - chance) / chance * variance).sum()))


def _mixture(
    population: Population, before: FloatArray, own: "_Curve", budget: float
) -> dict[str, Any] | None:
    """Return the price of the design's shares, or None where it has none."""
    design = population.design
    has_shares = design.other_runs_share > 0 or design.uniform_share > 0
    is_default = design.method == "default" and not design.selection_kind.with_replacement
    if not (has_shares and is_default) or design.question == "pool":
        return None
    alone = replace(design, other_runs_share=0.0, uniform_share=0.0)
    without = _Curve(replace(population, design=alone), "default", before)
    widths, widths_without = own.run_half_widths(budget), without.run_half_widths(budget)
    return asdict(
        Mixture(
            n_items_without=budget_for(without, own.half_width(budget), population.n_items),
            half_width_without=without.half_width(budget),
            n_runs=widths.size,
            n_estimable=int(np.isfinite(widths).sum()),
            n_estimable_without=int(np.isfinite(widths_without).sum()),
            run_half_width=_median(widths),
            run_half_width_without=_median(widths_without),
        )
    )


def _median(widths: FloatArray) -> float | None:
    """Return the median half-width, None where it is not finite.

    >>> _median(np.array([1.0, 2.0, np.inf])), _median(np.array([1.0, np.inf]))
    (2.0, None)
    """
    middle = float(np.median(widths))
    return middle if np.isfinite(middle) else None


def _budgets(n_frame: int, n_question: int, already: float, budget: int) -> list[int]:
    """Return rising budgets including the given one: from what is drawn already, or few, to where no more
    judging says more about the question.

    >>> _budgets(100_000, 1_000, 0.0, 400)
    [100, 131, 172, 226, 297, 390, 400, 512, 673, 883, 1160, 1523, 2000]
    """
    last = min(n_frame, max(2 * n_question, round(1.5 * budget), FEWEST_ITEMS))
    first = max(FEWEST_ITEMS, already, min(budget / 4, 0.1 * n_question))
    spread = np.geomspace(first, last, N_BUDGETS) if first < last else [last]
    return sorted({n for n in (*(round(n) for n in spread), budget) if n >= FEWEST_ITEMS})


def _n_comparisons(question: str, n_runs: int) -> int:
    return {"pair": 1, "system": 1, "baseline": n_runs - 1, "ranking": n_runs * (n_runs - 1) // 2}.get(
        question, n_runs
    )


class _Curve:
    """Half-width against budget of one design; what does not depend on the budget is computed once."""

    def __init__(self, population: Population, name: str, before: FloatArray) -> None:
        self.population, self.name, self.before = population, name, before
        says, prior, gain = population.says, population.design_prior, population.relevant_gain
        self.variance = gain**2 * says.variance(prior)
        if name in ("naive", "paper"):
            self.q = single_draws(population, name)
            reached = self.q > 0
            squares = says.squared_contrast * gain**2
            self.is_unbiased = not np.any(squares[~reached] > 0)
            self.second_moment = float((squares[reached] * prior[reached] / self.q[reached]).sum())
            totals = run_totals(
                population.measure,
                population.pooled.returned,
                population.rows,
                len(population.topics),
                prior * gain,
            )
            self.squared_mean = mean_square_total(population.design.question, totals)
        else:
            design = population.design
            if name == "pool":
                own = np.ones(population.n_items)
            elif design.selection_kind.with_replacement:  # beside it, what the default would give
                own = default_sizes(design, population.says, prior)
            else:
                own = sizes(population)
            self.sizes = normalise(own)

    def half_width(self, budget: float) -> float | None:
        if self.name in ("naive", "paper"):
            n_reachable = int(np.count_nonzero(self.q))
            if budget >= n_reachable or not self.is_unbiased:
                return None
            n_draws = draws_for_distinct(self.q, budget)
            return float(NORMAL_97_5 * np.sqrt(max(self.second_moment - self.squared_mean, 0.0) / n_draws))
        return question_half_width(self.probabilities(budget), self.variance)

    def probabilities(self, budget: float) -> FloatArray:
        if self.before.any():
            return nested_probabilities(self.sizes, self.before, budget)
        return inclusion_probabilities(self.sizes, min(budget, float(self.population.n_items)))

    def run_half_widths(self, budget: float) -> FloatArray:
        """Return the half-width of every known run's own value; infinite where a document has no chance."""
        population, pi = self.population, self.probabilities(budget)
        factor = np.divide(1 - pi, pi, out=np.full(pi.size, np.inf), where=pi > 0)
        variance = variances_of_runs(population.weights, population.design_prior, factor)
        return np.asarray(NORMAL_97_5 * population.relevant_gain * np.sqrt(variance))


def budget_for(curve: Curve, half_width: float | None, n_items: int) -> float | None:
    """Return the judgments for the half-width, or None where the design never reaches it."""
    if half_width is None or half_width <= 0:
        return None
    low, high = float(FEWEST_ITEMS), float(n_items)
    for _ in range(30):
        middle = float(np.sqrt(low * high))
        reached = curve.half_width(middle)
        if reached is not None and reached > half_width:
            low = middle
        else:
            high = middle
    reached = curve.half_width(high)
    return None if reached is None or reached > half_width * 1.01 else float(np.ceil(high))


def mixture_sentence(mixture: Mapping[str, Any], budget: int) -> str:
    """Return what the shares cost and buy, in words, from a `Mixture` as JSON; assessors' errors are not in it.

    >>> about = {"n_runs": 20, "n_estimable": 20, "run_half_width": 0.0512}
    >>> without = {"n_items_without": 386.2, "n_estimable_without": 0, "run_half_width_without": None}
    >>> print(mixture_sentence(about | without, 400).replace(". ", ".\\n"))
    The shares for other questions cost 13 of the 400 items.
    With them 20 of 20 runs can be estimated alone, the median one to ± 0.0512; without them 0 of 20.
    """
    needed = mixture["n_items_without"]
    cost = 0 if needed is None else max(0, budget - math.ceil(needed))
    price = f"{cost:,} of the {budget:,} items" if cost else "nothing here"
    n_runs = mixture["n_runs"]
    reached = [
        f"{mixture[f'n_estimable{which}']:,} of {n_runs:,}" + ("" if width is None else f"{to} ± {width:.3g}")
        for which, width, to in (
            ("", mixture["run_half_width"], " runs can be estimated alone, the median one to"),
            ("_without", mixture["run_half_width_without"], ", to"),
        )
    ]
    if mixture["run_half_width"] is None:
        reached[0] += " runs can be estimated alone"
    shares = f"By the drawing alone, the shares for other questions cost {price}."
    return f"{shares} With them {reached[0]}; without them {reached[1]}."
