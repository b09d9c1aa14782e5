"""What a measure asks of a campaign: every run and every pair of runs, and what no judgment can change of them."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from analytics.estimation.complete import first_documents
from analytics.estimation.estimate import Estimate, Ints, Refusal
from analytics.estimation.evidence import (
    CompleteTargets,
    LinearTargets,
    RatioTargets,
    Settled,
    Targets,
)
from analytics.estimation.outside import OutsideGain, common_weights, outside_gain, reason_outside
from analytics.estimation.targets import TargetWeights
from analytics.numbers.arrays import Arrays, Floats
from analytics.numbers.basis import Basis
from analytics.numbers.columns import ASK
from sampling.measures.families import Measure, run_weights, weights_of_runs
from sampling.measures.kinds import Complete, Kind, Linear, Ratio
from sampling.measures.sparse import SparseRuns


def targets_of(basis: Basis, measure: Measure[Kind]) -> Targets:
    """Return every run and every pair of runs in the measure."""
    return TARGETS[type(measure.kind)](basis, measure)


def linear_targets(basis: Basis, measure: Measure[Linear]) -> LinearTargets:
    """Return every run and every pair of runs in a sum over documents."""
    arrays = basis.arrays
    gains, relevant = basis.gains(measure)
    everything = weights_of_runs(measure, arrays.returned, arrays.n_topics)
    entries, never = _within_reach(arrays, everything)
    weights = TargetWeights(entries)
    common = common_weights(never, weights.pairs)
    unknown = [float(run_weights(measure, ranks, arrays.n_topics).sum()) for ranks in _beyond_reach(arrays)]
    prediction = basis.predictions.of_gains(gains, relevant)
    unsupported = weights.unsupported_share(arrays.frame["inclusion_probability"].to_numpy())
    # What two runs return beside a foreign sample, or outside the frame, nobody knows: perhaps not the same.
    is_zero = TargetWeights(everything).is_zero() & (not arrays.is_foreign)
    is_zero &= outside_gain(unknown, 1.0, weights.pairs).most == 0
    beyond = never.sum(axis=1) + np.array(unknown)
    return LinearTargets(
        measure=measure,
        gains=gains,
        relevant_grade=relevant,
        weights=weights,
        judged=weights.over(arrays.judged),
        utility=arrays.labels.means(gains[arrays.label_grade]),
        prediction=prediction,
        predicted=weights.run_totals(prediction, arrays.topic_index, arrays.n_topics),
        gold=basis.gold_prediction(gains, relevant),
        settled=_settled_answers(
            arrays, measure.name, np.zeros(beyond.size), weights.pairs, is_zero, unsupported
        ),
        outside=_outside(arrays, measure, beyond, common, gains, weights.pairs, is_zero),
    )


def _outside(
    arrays: Arrays,
    measure: Measure[Linear],
    beyond: Floats,
    common: Floats,
    gains: Floats,
    pairs: tuple[Ints, Ints],
    is_zero: np.ndarray,
) -> OutsideGain | None:
    """Return what the documents that could not be judged may be worth, if a run returns any; `beyond`: their weights.

    `common`: by pair, what of it cancels.
    Two runs that are the same inside the cutoff are so whatever they return.
    """
    if not beyond.any():
        return None
    how = " (the imported file has no judgment of them)" if arrays.is_complete else ""
    why = [f"{reason_outside(run, measure.name)}{how}" for run in arrays.run_ids]
    found = outside_gain(beyond, float(gains.max()), pairs, why, common)
    return replace(found, down=np.where(is_zero, 0.0, found.down), up=np.where(is_zero, 0.0, found.up))


def _within_reach(arrays: Arrays, weights: SparseRuns) -> tuple[SparseRuns, Floats]:
    """Return the weights of what the design can draw, and [run, item] those of all others.

    Where whole topics are drawn they stay: a topic that cannot be drawn is no document less.
    """
    never = arrays.frame["inclusion_probability"].to_numpy() == 0
    if arrays.has_whole_topics or not never.any():
        return weights, np.zeros((weights.n_runs, 0))
    gone = never[weights.item]
    # Only documents that some run returns within the cutoff: a large pool has very many that none does.
    columns = np.unique(weights.item[gone & (weights.value != 0)])
    counts = gone & np.isin(weights.item, columns)
    beyond = np.zeros((weights.n_runs, columns.size))
    beyond[weights.run[counts], np.searchsorted(columns, weights.item[counts])] = weights.value[counts]
    return weights.with_values(np.where(gone, 0.0, weights.value)), beyond


def _ratio_targets(basis: Basis, measure: Measure[Ratio]) -> RatioTargets:
    arrays = basis.arrays
    gains, relevant = basis.gains(measure)
    cutoff = measure.last_rank
    outside = np.array([float(np.count_nonzero(ranks <= cutoff)) for ranks in _beyond_reach(arrays)])
    pairs = np.triu_indices(len(arrays.run_ids), 1)
    n_targets = outside.size + pairs[0].size
    # What a ratio divides by counts the whole pool.
    never = np.full(n_targets, float((arrays.frame["inclusion_probability"].to_numpy() == 0).mean()))
    is_zero = np.zeros(n_targets, dtype=bool)
    if arrays.has_whole_topics:
        near = np.where(arrays.returned.value <= cutoff, arrays.returned.value, 0)
        is_zero = TargetWeights(arrays.returned.with_values(near)).is_zero()
    return RatioTargets(
        measure=measure,
        gains=gains,
        returned=arrays.returned,
        prediction=basis.predictions.of_gains(gains, relevant),
        stairs=basis.stairs_of(measure),
        no_step=basis.no_step(measure),
        settled=_settled_answers(arrays, measure.name, outside, pairs, is_zero, never),
    )


def _complete_targets(basis: Basis, measure: Measure[Complete]) -> CompleteTargets:
    arrays = basis.arrays
    gains, _ = basis.gains(measure)
    documents = first_documents(measure, arrays.returned)
    outside = [float(np.count_nonzero(ranks <= measure.last_rank)) for ranks in arrays.ranks_outside]
    is_zero, never = documents.is_zero(), np.zeros(len(documents))
    if arrays.has_whole_topics:
        never = documents.unsupported_share(arrays.frame["inclusion_probability"].to_numpy())
    return CompleteTargets(
        measure=measure,
        gains=gains,
        documents=documents,
        utility=arrays.labels.means(gains[arrays.label_grade]),
        settled=_settled_answers(arrays, measure.name, np.array(outside), documents.pairs, is_zero, never),
    )


TARGETS: dict[type[Kind], Callable[[Basis, Measure[Any]], Targets]] = {
    Linear: linear_targets,
    Ratio: _ratio_targets,
    Complete: _complete_targets,
}


def _beyond_reach(arrays: Arrays) -> list[Ints]:
    """Return [run] the ranks at which a run returns what could not be drawn.

    What a foreign sample does not hold was not drawn, or not pooled: with predictions of 0 both count alike.
    """
    return [ranks[:0] for ranks in arrays.ranks_outside] if arrays.is_foreign else arrays.ranks_outside


def _settled_answers(
    arrays: Arrays,
    measure: str,
    outside: Floats,
    pairs: tuple[Ints, Ints],
    is_zero: np.ndarray,
    unsupported: Floats,
) -> Settled:
    """Return the answers that do not depend on judgments, by target.

    A run that came after the draw may return documents that could never be drawn: its number would be too low, with a
    small interval. So would be that of a run which a design without a floor leaves out in part. Two runs that rank
    alike inside the cutoff differ by exactly 0.
    """
    first = np.concatenate([np.arange(outside.size), pairs[0]])
    second = np.concatenate([np.arange(outside.size), pairs[1]])
    settled: dict[int, Estimate | Refusal] = {}
    for target in np.flatnonzero(unsupported > 0).tolist():
        settled[target] = Refusal(
            f"{unsupported[target]:.1%} of the weight in {measure} lies on documents that this design can never draw: "
            f"judgments drawn for one question do not answer every other. {ASK}how many more items are needed"
        )
    same = Estimate(0.0, 0.0, 0.0, 0.0, None, 0, (), (), "the two runs are the same inside the cutoff")
    settled |= dict.fromkeys(np.flatnonzero(is_zero & (first != second)).tolist(), same)
    for target in np.flatnonzero((outside[first] > 0) | (outside[second] > 0)).tolist():
        run = first[target] if outside[first[target]] > 0 else second[target]
        words = f"(it was imported after the draw). {ASK}which judgments are missing"
        if arrays.is_foreign:
            words = "as far as the imported sample says"
        elif arrays.is_complete:
            words = "(the imported file has no judgment of them)"
        settled[target] = Refusal(f"{reason_outside(arrays.run_ids[run], measure)} {words}")
    return settled
