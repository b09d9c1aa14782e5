"""The estimates of one measure: every run and every pair of runs, by every method, or the reason for none."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from analytics.estimation.confusion import shrink
from analytics.estimation.correction import GREG_SOURCES, Corrected, corrected
from analytics.estimation.estimate import estimates as made
from analytics.estimation.estimate import in_columns
from analytics.estimation.estimators import Estimate as Value
from analytics.estimation.estimators import Estimates, Refusal, all_refused
from analytics.estimation.labels import Ints, item_means
from analytics.estimation.more_gold import advice
from analytics.estimation.targets import TargetWeights
from analytics.estimation.topics import over_topics_of
from analytics.frames import CampaignArrays
from analytics.models import Method
from analytics.papers.inverse import matrix_inverse
from analytics.services.confusions import ConfusionCounts
from analytics.services.estimate_rows import AUDITS_PLANNED, EstimateColumns, Settled, columns
from analytics.services.label_classes import bronze_classes
from analytics.services.predictions import Predictions
from analytics.services.ratio_estimates import ratio_results
from analytics.services.raw_estimates import as_judged, importance
from judging.models import Campaign
from sampling.frames import weights_of_runs
from sampling.measures.families import grade_gains, run_weights
from sampling.measures.kinds import Ratio
from sampling.measures.registry import parse_linear, parse_measure, parse_ratio

ASK = "“May I score my run?” on the page of results says "
MATRICES_UNUSABLE = "matrices cannot be used"  # of matrix_inverse's refusal


class Basis:
    """What all measures of a campaign are estimated from. What does not depend on the measure is computed once."""

    def __init__(
        self, campaign: Campaign, arrays: CampaignArrays, predictions: Predictions, counts: ConfusionCounts
    ) -> None:
        self.campaign, self.arrays, self.predictions, self.counts = campaign, arrays, predictions, counts

    @cached_property
    def n_planned(self) -> int:
        """Return how many items the audits will take in all."""
        return self.arrays.n_audits_planned or AUDITS_PLANNED

    @cached_property
    def everything(self) -> np.ndarray:
        return np.ones(self.arrays.judged.size, dtype=bool)

    @cached_property
    def open_to_audits(self) -> np.ndarray:
        return np.asarray(self.arrays.audit_probability > 0)

    @cached_property
    def chance_judged(self) -> np.ndarray:
        return self.arrays.draw_probability(self.everything)

    @cached_property
    def not_judged(self) -> Refusal | None:
        return self._missing(self.everything, "judgment")

    @cached_property
    def not_audited(self) -> Refusal | None:
        if not self.open_to_audits.any():
            return Refusal(self.arrays.no_audit())
        return self._missing(self.open_to_audits, "item that an audit could select")

    def _missing(self, members: np.ndarray, what: str) -> Refusal | None:
        refused = self.arrays.not_covered(members, what)
        return Refusal(*refused) if refused else None

    @cached_property
    def audit(self) -> dict[str, Any]:
        """Return GREG-label's arguments that no measure changes: the items that were open to the completed audits."""
        arrays, eligible = self.arrays, self.open_to_audits
        return {
            "draw_probability": arrays.draw_probability(eligible)[eligible],
            "bronze_class": bronze_classes(arrays, self.campaign)[eligible],
            "audited": arrays.audited[eligible],
            "gold_grade": arrays.audit_grade[eligible],
            "audit_probability": arrays.audit_probability[eligible],
        }


@dataclass(frozen=True)
class Targets:
    """The weights of one measure: every run, then every pair of runs (w_a - w_b)."""

    weights: TargetWeights  # [target, frame]
    judged: TargetWeights  # [target, judged]
    gains: np.ndarray  # [grade]
    binary: bool
    relevant_grade: int
    prediction: np.ndarray  # [frame], f in gains
    predicted: np.ndarray  # [run, topic], sum of f w: known before anything is judged
    utility: np.ndarray  # [judged], mean gain of the grades given
    settled: Settled  # what no judgment can change: equal runs, runs outside the frame

    @cached_property
    def prior_total(self) -> np.ndarray:
        return self.weights.of_targets(self.predicted.sum(axis=1))


def targets_of(basis: Basis, measure: str) -> Targets:
    parsed, arrays, scale = parse_linear(measure), basis.arrays, basis.campaign.scale
    relevant = parsed.relevant_grade or scale.relevant_grade
    weights = TargetWeights(weights_of_runs(arrays.returned, measure, arrays.n_topics))
    outside = [float(run_weights(parsed, ranks, arrays.n_topics).sum()) for ranks in arrays.ranks_outside]
    gains = grade_gains(parsed, scale.gains(), relevant)
    prediction = basis.predictions.of_gains(gains, relevant)
    unsupported = weights.unsupported_share(arrays.frame["inclusion_probability"].to_numpy())
    return Targets(
        weights=weights,
        judged=weights.over(arrays.judged),
        gains=gains,
        binary=parsed.binary,
        relevant_grade=relevant,
        prediction=prediction,
        predicted=weights.run_totals(prediction, arrays.topic_index, arrays.n_topics),
        utility=item_means(arrays.label_item, gains[arrays.label_grade], arrays.judged.size),
        settled=_settled(arrays, measure, np.array(outside), weights.pairs, weights.is_zero(), unsupported),
    )


def _settled(
    arrays: CampaignArrays,
    measure: str,
    outside: np.ndarray,
    pairs: tuple[Ints, Ints],
    is_zero: np.ndarray,
    unsupported: np.ndarray,
) -> Settled:
    """Return the answers that do not depend on judgments, by target.

    A run that came after the draw may return documents that could never be drawn: its number would be too low, with a
    small interval. So would be that of a run which a design without a floor leaves out in part. Two runs that rank
    alike inside the cutoff differ by exactly 0.
    """
    first = np.concatenate([np.arange(outside.size), pairs[0]])
    second = np.concatenate([np.arange(outside.size), pairs[1]])
    settled: dict[int, Value | Refusal] = {}
    for target in np.flatnonzero(unsupported > 0).tolist():
        settled[target] = Refusal(
            f"{unsupported[target]:.1%} of the weight in {measure} lies on documents that this design can never draw: "
            f"judgments drawn for one question do not answer every other. {ASK}how many more items it takes"
        )
    same = Value(0.0, 0.0, 0.0, 0.0, None, 0, (), (), "the two runs are the same inside the cutoff")
    settled |= dict.fromkeys(np.flatnonzero(is_zero & (first != second)).tolist(), same)
    for target in np.flatnonzero((outside[first] > 0) | (outside[second] > 0)).tolist():
        run = first[target] if outside[first[target]] > 0 else second[target]
        settled[target] = Refusal(
            f"{arrays.runs[run].run_id} returns documents that could not be drawn, inside the cutoff of {measure} "
            f"(it was imported after the draw). {ASK}which judgments it lacks"
        )
    return settled


def estimate_columns(basis: Basis, measure: str) -> list[EstimateColumns]:
    """Return the estimates of the measure: naive, corrected, matrix inverse and, if known, the true values."""
    if isinstance(parse_measure(measure).kind, Ratio):
        return _ratio_columns(basis, measure)
    targets = targets_of(basis, measure)
    found, over_topics, n_items = corrected_estimates(basis, targets)
    methods = {
        Method.NAIVE: naive_estimates(basis, targets),
        Method.CORRECTED: (found, over_topics),
        Method.MATRIX_INVERSE: (_matrix_inverse(basis, targets), None),
    }
    if basis.arrays.draw.selection_kind.with_replacement:
        methods[Method.IMPORTANCE] = importance(basis.arrays, targets.judged, targets.utility), None
    if (basis.arrays.gold_grade >= 0).all():  # the demo
        methods[Method.TRUE] = _truth(basis, targets), None
    return _tables(basis, measure, targets.weights.pairs, methods, targets.settled, n_items)


def _ratio_columns(basis: Basis, measure: str) -> list[EstimateColumns]:
    arrays = basis.arrays
    cutoff = parse_ratio(measure).last_rank
    outside = np.array([float(np.count_nonzero(ranks <= cutoff)) for ranks in arrays.ranks_outside])
    pairs = np.triu_indices(len(arrays.runs), 1)
    n_targets = outside.size + pairs[0].size
    # What a ratio divides by counts the whole pool.
    never = np.full(n_targets, float((arrays.frame["inclusion_probability"].to_numpy() == 0).mean()))
    settled = _settled(arrays, measure, outside, pairs, np.zeros(n_targets, dtype=bool), never)
    results = ratio_results(basis.campaign, arrays, basis.predictions, measure)
    methods = {method: (in_columns(found), None) for method, found in results.items()}
    return _tables(basis, measure, pairs, methods, settled)


def _tables(
    basis: Basis,
    measure: str,
    pairs: tuple[Ints, Ints],
    methods: Mapping[Method, tuple[Estimates, Estimates | None]],
    settled: Settled,
    n_items: Ints | None = None,
) -> list[EstimateColumns]:
    """Only the corrected difference is tested: grades as given say nothing of how judges err, and the inverse of
    confusion matrices has no valid p on real judges.
    """
    return [
        columns(
            measure,
            method,
            pairs,
            found,
            settled=settled,
            over_topics=over_topics,
            tested=method == Method.CORRECTED,
            planned=basis.n_planned if method == Method.CORRECTED else None,
            n_items=n_items,
        )
        for method, (found, over_topics) in methods.items()
    ]


def naive_estimates(basis: Basis, targets: Targets) -> tuple[Estimates, Estimates]:
    """The grades as given, taken as true: for these topics, and with the topics as a sample."""
    arrays = basis.arrays
    if basis.not_judged is not None:
        nothing = all_refused(len(targets.weights), basis.not_judged)
        return nothing, nothing
    prior = targets.prediction[arrays.judged]
    found = as_judged(
        arrays, targets.judged, targets.utility, basis.chance_judged, prior, targets.prior_total
    )
    surprise = (targets.utility - prior) / basis.chance_judged
    return found, _over_topics(arrays, targets, basis.everything, surprise, ("drawing", "topics"))


def _over_topics(
    arrays: CampaignArrays, targets: Targets, members: np.ndarray, added: np.ndarray, sources: tuple[str, ...]
) -> Estimates:
    """Return the interval over topics, given what these judged items add: a topic's part is its sum of w * added."""
    values = np.zeros(arrays.judged.size)
    values[members] = added
    topic = arrays.topic_index[arrays.judged]
    parts = targets.judged.run_totals(values, topic, arrays.n_topics) + targets.predicted
    return over_topics_of(targets.weights, parts, sources)


def corrected_estimates(basis: Basis, targets: Targets) -> tuple[Estimates, Estimates, Ints | None]:
    """GREG-label over the items that were open to the completed audits; unresolved differences with what would help.

    With them the interval over topics, and how many items with weight an audit could take.
    """
    if basis.not_audited is not None:
        nothing = all_refused(len(targets.weights), basis.not_audited)
        return nothing, nothing, None
    arrays, eligible = basis.arrays, basis.open_to_audits
    open_ones = targets.judged if eligible.all() else targets.judged.over(np.flatnonzero(eligible))
    made_of: Corrected = corrected(
        open_ones,
        **basis.audit,
        gains=targets.gains,
        prior=targets.prediction[arrays.judged[eligible]],
        prior_total=targets.prior_total,
    )
    words = advice(made_of.estimates, made_of.n_items)
    words[: len(arrays.runs)] = [""] * len(arrays.runs)
    topics = _over_topics(arrays, targets, eligible, made_of.item_corrections, (*GREG_SOURCES, "topics"))
    return made_of.estimates.warned(words), topics, made_of.n_items


def _matrix_inverse(basis: Basis, targets: Targets) -> Estimates:
    """The papers' correction: every assessor's own (shrunk) matrix, or one pooled matrix where some cannot be used."""
    arrays, refused = basis.arrays, basis.not_judged
    table, grades, gains = basis.counts.together, arrays.label_grade, targets.gains
    if targets.binary:  # the papers' binary form: relevant or not
        relevant = targets.relevant_grade
        table, grades, gains = (
            _binary(table, relevant),
            (grades >= relevant).astype(np.int64),
            np.array([0.0, 1.0]),
        )
    shrunk = shrink(table) if table.size else Refusal("nobody has judged yet")
    if isinstance(shrunk, Refusal):
        refused = refused or shrunk
    if refused is not None or isinstance(shrunk, Refusal):
        return all_refused(len(targets.weights), refused or Refusal("not estimable"))
    shared: dict[str, Any] = {
        "draw_probability": basis.chance_judged,
        "label_item": arrays.label_item,
        "label_grade": grades.astype(np.int64),
        "gains": gains,
        "prior": targets.prediction[arrays.judged],
        "prior_total": targets.prior_total,
        "rng": np.random.default_rng(arrays.last_judgment_id),
    }
    own = matrix_inverse(
        targets.judged,
        **shared,
        label_assessor=arrays.label_assessor,
        matrices=shrunk.matrices,
        gold_per_grade=shrunk.n_per_grade,
    )
    first = own[0]
    if not isinstance(first, Refusal) or MATRICES_UNUSABLE not in first.reason:
        return own
    joined = table.sum(axis=0)
    pooled = matrix_inverse(
        targets.judged,
        **shared,
        label_assessor=np.zeros_like(arrays.label_assessor),
        matrices=((joined + 0.5) / (joined + 0.5).sum(axis=1, keepdims=True))[None],
        gold_per_grade=joined.sum(axis=1)[None],
    )
    note = f"one matrix for all assessors: {first.reason}"
    refusals = {
        place: replace(one, reason=f"{note}; pooled: {one.reason}") for place, one in pooled.refusals.items()
    }
    return replace(pooled, refusals=refusals, warnings=[note] * len(pooled)).warned(pooled.warnings)


def _binary(counts: np.ndarray, relevant_grade: int) -> np.ndarray:
    """Return counts[assessor, true, given] with the grades joined to not relevant and relevant."""
    edges = [0, relevant_grade]
    return np.add.reduceat(np.add.reduceat(counts, edges, axis=1), edges, axis=2)


def _truth(basis: Basis, targets: Targets) -> Estimates:
    """Return the true values, which the gold answers of the whole frame give."""
    return made(
        targets.weights.totals(targets.gains[basis.arrays.gold_grade]),
        {},
        degrees_of_freedom=np.inf,
        n=targets.weights.n_weighed(),
        refusals={},
        warning=lambda _: "",
    )
