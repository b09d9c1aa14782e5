"""Questions: what a campaign is to find out.

A question is about some of the known runs. Its *comparisons* are the numbers to estimate; a forecast speaks of their
root mean square half-width. `sampling.contrasts` says how much each item tells about them.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sampling.arrays import numbers, probabilities
from sampling.design_options import LEARNING, METHODS, PRIORS, QUESTIONS, TOPIC_SELECTIONS, WHOLE_TOPICS
from sampling.designs import (
    inclusion_probabilities,
    normalise,
)
from sampling.measures.families import FloatArray, Measure
from sampling.measures.kinds import Linear, Pairs, Ratio
from sampling.measures.registry import WrongKind, parse_measure
from sampling.measures.sparse import SparseRuns
from sampling.pooling import far_rank, prior_utility
from sampling.selections import SELECTIONS, Selection, selection_keys, selection_of


class QuestionRefused(ValueError):
    """The question cannot be asked of these runs, for a reason the user can act on."""


@dataclass(frozen=True)
class Design:
    """What to draw for.

    Attributes
    ----------
    question : str
        "pair" (run A, run B), "system" (one run), "baseline" (the baseline, then its candidates), "ranking" (two or
        more runs; none named means all), "pool" (every run, evenly).
    runs : tuple of str
    measure : str
        A sum over documents or a ratio (nDCG@k, AP@k, R@k); of whole topics any measure that is a mean over topics.
    depth : int
        Depth of the pool.
    budget : int
        Items to be judged in all, earlier batches included, in expectation.
    method : str
        "default" (sizes by contrast and doubt with a mixture), "paper" (Schnabel et al.: Q proportional to utility
        times contrast), "naive" (Q proportional to utility times summed weights).
    selection : str
        "poisson", "pareto" (an exact count in every topic) or "replacement" (the paper's).
    prior : str
        Source of the prior probability of relevance: "runs" (all known runs), "experts" (their consensus), "scores"
        (imported scores as well) or "judgments" (those of earlier batches as well).
    scores : str
        Name of the imported scores.
    calibrated_on : str
        Id of the campaign or collection whose gold says what the scores are worth, in place of the assumed rates.
    sensitivity, specificity : float
        The assumed error rates of the source of the scores. Assume less than you believe: too little costs nothing,
        too much makes the interval wider than without scores (docs/benchmarks.md). Neither moves its centre.
    topic_selection : str
        "all" (documents of all topics), or "sample" (whole topics are drawn; then the shares below mean nothing).
    other_runs_share, uniform_share : float
        Parts of the draw that serve other known runs, and a floor under every pooled item: enough that everything can
        be drawn. Another question is better asked in a top-up.
    learning : str
        With `prior` "judgments", what the estimates are predicted from: "refit" (this batch as well, once all of it is
        judged; a bias of second order) or "exact" (the batches before it only; none).
    """

    question: str
    runs: tuple[str, ...]
    measure: str
    depth: int
    budget: int
    method: str = METHODS[0].key
    selection: str = SELECTIONS[0].key
    prior: str = PRIORS[0].key
    scores: str = ""
    calibrated_on: str = ""
    sensitivity: float = 0.65
    specificity: float = 0.85
    other_runs_share: float = 0.05
    uniform_share: float = 0.01
    learning: str = LEARNING[0].key
    topic_selection: str = TOPIC_SELECTIONS[0].key

    def __post_init__(self) -> None:
        object.__setattr__(self, "runs", tuple(self.runs))
        for name, known in (
            ("question", [option.key for option in QUESTIONS]),
            ("method", [option.key for option in METHODS]),
            ("selection", selection_keys()),
            ("prior", [option.key for option in PRIORS]),
            ("learning", [option.key for option in LEARNING]),
            ("topic_selection", [option.key for option in TOPIC_SELECTIONS]),
        ):
            if getattr(self, name) not in known:
                raise QuestionRefused(f"{name} must be one of {list(known)}, got {getattr(self, name)!r}")
        if self.budget < 1:
            raise QuestionRefused(f"the budget must be at least 1, got {self.budget}")
        shares = (self.other_runs_share, self.uniform_share)
        if not (all(0 <= share < 1 for share in shares) and sum(shares) < 1):
            raise QuestionRefused(
                f"shares must be at least 0 and sum to less than 1, got {shares[0]} and {shares[1]}"
            )
        if not 0 < self.sensitivity < 1 or not 0 < self.specificity < 1:
            raise QuestionRefused("sensitivity and specificity must be within (0, 1)")
        if self.sensitivity + self.specificity <= 1:
            raise QuestionRefused(
                "sensitivity + specificity must be above 1; otherwise the scores mean the opposite"
            )
        self._refuse_prior()
        if self.method == "default" and self.selection_kind.with_replacement:
            raise QuestionRefused("the default design is drawn without replacement")
        if self.has_whole_topics:
            self._refuse_whole_topics()
        elif self.method != METHODS[0].key and not self.parse_measure().kind.is_sum:
            raise QuestionRefused(
                f"the paper's and the naive method are for sums over documents, as DCG@10: for {self.measure} choose "
                "the default method"
            )

    def _refuse_prior(self) -> None:
        if self.prior == "scores" and not self.scores:
            raise QuestionRefused("name the imported scores that the prior is to use")
        if self.calibrated_on and self.prior != "scores":
            raise QuestionRefused(
                "scores are calibrated where they are the prior: choose “scores” as the prior"
            )
        if self.prior == "judgments" and not self.selection_kind.may_learn:
            raise QuestionRefused("sizes learned from judgments need a Poisson draw")

    def _refuse_whole_topics(self) -> None:
        if self.method != METHODS[0].key:
            raise QuestionRefused("whole topics are drawn by the default method alone")
        if self.selection != SELECTIONS[0].key:
            raise QuestionRefused("whole topics are drawn each by its own probability (Poisson) alone")
        if self.prior == "judgments":
            raise QuestionRefused(
                "chances of whole topics are not learned from judgments: choose another prior"
            )

    @property
    def selection_kind(self) -> Selection:
        """Return how items are drawn."""
        return selection_of(self.selection)

    @property
    def has_whole_topics(self) -> bool:
        """Return whether topics are drawn, each to be judged completely."""
        return self.topic_selection == WHOLE_TOPICS

    def parse_measure(self) -> Measure[Any]:
        """Return its measure; ValueError where no such design can be made for it."""
        return parse_designed(self.measure, self.topic_selection)

    def parameters(self) -> dict[str, Any]:
        """Return the design as JSON values; ``Design(**parameters)`` is equal to it."""
        return {**asdict(self), "runs": list(self.runs)}


def parse_designed(name: str, topic_selection: str) -> Measure[Any]:
    """Return the measure of a name for which a design can be made; ValueError where none can, `WrongKind` by its kind.

    A design that draws documents needs a sum over documents, or a mean over topics of a ratio; one that draws whole
    topics any mean over topics.

    >>> parse_designed("ERR@10", "sample").kind.key, parse_designed("nDCG@10", "all").kind.key
    ('complete', 'ratio')
    """
    measure = parse_measure(name)
    has_whole_topics = topic_selection == WHOLE_TOPICS
    if not (has_whole_topics or isinstance(measure.kind, Linear | Ratio)):
        raise WrongKind(
            f"measure {measure.name!r} is {measure.kind.noun}, which a sample of documents cannot estimate: draw for a "
            "sum over documents or a ratio, as DCG@10 or nDCG@10, or draw a sample of whole topics"
        )
    if isinstance(measure.kind, Pairs) or measure.averaging == "micro":
        raise WrongKind(
            f"measure {measure.name!r} is no mean over topics, for which designs are made: choose another"
        )
    if isinstance(measure.kind, Ratio) and not measure.kind.has_prediction:
        raise WrongKind(f"{measure.name} predicts nothing, so no design is made for it: choose AP")
    if measure.cutoff is None:
        raise ValueError(f"measure {measure.name!r} needs a cutoff here, as in {measure.family.key}@10")
    return measure


def question_rows(design: Design, run_ids: Sequence[str]) -> list[int]:
    """Return the places in `run_ids` of the runs the question is about, in the question's order.

    Raises
    ------
    QuestionRefused
        A run that is not there, one named twice, or too few for the question.

    Examples
    --------
    >>> question_rows(Design("pair", ("b", "a"), "P@1", 1, 10), ["a", "b", "c"])
    [1, 0]
    """
    for run_id in design.runs:
        if run_id not in run_ids:
            raise QuestionRefused(f"the collection has no run {run_id!r}")
        if design.runs.count(run_id) > 1:
            raise QuestionRefused(f"run {run_id!r} is named twice: choose different runs")
    if design.question == "pool" or (design.question == "ranking" and not design.runs):
        rows = list(range(len(run_ids)))
    else:
        rows = [run_ids.index(run_id) for run_id in design.runs]
    least = {"pair": 2, "system": 1, "baseline": 2, "ranking": 2, "pool": 1}[design.question]
    most = {"pair": 2, "system": 1}.get(design.question, len(run_ids))
    if not least <= len(rows) <= most:
        count = f"{least}" if least == most else f"at least {least}"
        raise QuestionRefused(f"the question {design.question!r} takes {count} run(s), got {len(rows)}")
    return rows


# ---- prior utility and later batches --------------------------------------------------------------


def prior_of_runs(ranks: ArrayLike | SparseRuns, depth: int) -> FloatArray:
    """Return the prior utility from the ranks of all given runs, in (0, 1).

    `prior_utility`, an item that a run does not return counting as far below all that it does.
    """
    return prior_utility(ranks, depth, unreturned_rank=far_rank(ranks, depth))


def nested_probabilities(sizes: ArrayLike, earlier: ArrayLike, expected_count: float) -> FloatArray:
    """Return pi >= earlier, pi = max(earlier, min(1, c * size)), with sum pi = expected_count.

    With one permanent random number an item, a draw of these probabilities contains the earlier one: nothing is judged
    twice. Nothing is added where the earlier draw already has the count; then pi = earlier. With a budget of at least
    all items that have a size these are certain.

    Raises
    ------
    ValueError
        As `sampling.designs.inclusion_probabilities`; probabilities outside [0, 1].

    Examples
    --------
    >>> nested_probabilities([1, 1, 2], [0.5, 0.0, 0.0], 1.5).round(9).tolist()
    [0.5, 0.333333333, 0.666666667]
    """
    before = probabilities("earlier", earlier)
    size = numbers("sizes", sizes, before.size)
    if expected_count <= before.sum():
        return before
    if not before.any():
        return inclusion_probabilities(size, expected_count)
    shares = normalise(size)
    most = np.where(shares > 0, 1.0, before)
    if expected_count >= most.sum():
        return most
    # The sum grows with c. Halving exponents first finds its size, halving the interval then its digits.
    low, high = 0.0, float(1 / shares[shares > 0].min())
    for _ in range(200):
        middle = (low + high) / 2 if high < 4 * low else float(np.sqrt(max(low, 1e-300) * high))
        if np.maximum(before, np.minimum(1.0, middle * shares)).sum() < expected_count:
            low = middle
        else:
            high = middle
        if high <= low * (1 + 1e-15):
            break
    return np.asarray(np.maximum(before, np.minimum(1.0, high * shares)))
