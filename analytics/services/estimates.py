"""The estimates of one measure: every run and every pair of runs, by every method, or the reason for none."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from analytics.comparison import Comparison, compare, pairs_of_runs
from analytics.confusion import shrink
from analytics.correction import greg_label, labels_needed
from analytics.estimators import Estimate as Value
from analytics.estimators import Refusal
from analytics.frames import CampaignArrays
from analytics.inverse import matrix_inverse
from analytics.labels import naive, vote_classes
from analytics.models import Estimate, Method
from judging.models import Campaign
from sampling.frames import weights_of_runs
from sampling.measures import grade_gains, parse_measure, run_weights

ROUNDING = 1e-12
MATRICES_UNUSABLE = "matrices cannot be used"  # of matrix_inverse's refusal


@dataclass(frozen=True)
class ConfusionCounts:
    """counts[assessor, true, given] from gold checks and, weighted, from audits."""

    checks: np.ndarray
    audits: np.ndarray
    n_audited: np.ndarray

    @property
    def together(self) -> np.ndarray:
        return self.checks + self.audits


@dataclass(frozen=True)
class Targets:
    """The weight vectors of one measure: every run, then every pair of runs (w_a - w_b)."""

    runs: list[tuple[int, int | None]]  # run, and run_b for a pair
    frame_weights: np.ndarray  # [target, frame]
    gains: np.ndarray  # [grade]
    binary: bool
    relevant_grade: int
    settled: list[Value | Refusal | None]  # what no judgment can change: equal runs, runs outside the frame


def _targets(campaign: Campaign, arrays: CampaignArrays, measure: str) -> Targets:
    parsed = parse_measure(measure)
    relevant = parsed.relevant_grade or campaign.scale.relevant_grade
    weights = weights_of_runs(arrays.ranks, measure, arrays.n_topics)
    pairs, pair_weights = pairs_of_runs(weights)
    runs: list[tuple[int, int | None]] = [*((index, None) for index in range(len(arrays.runs))), *pairs]
    frame_weights = np.concatenate([weights, pair_weights])
    outside = [float(run_weights(parsed, ranks, arrays.n_topics).sum()) for ranks in arrays.ranks_outside]
    return Targets(
        runs=runs,
        frame_weights=frame_weights,
        gains=grade_gains(parsed, campaign.scale.gains(), relevant),
        binary=parsed.binary,
        relevant_grade=relevant,
        settled=[
            _settled(arrays, measure, target, row, outside)
            for target, row in zip(runs, frame_weights, strict=True)
        ],
    )


def _settled(
    arrays: CampaignArrays,
    measure: str,
    target: tuple[int, int | None],
    weights: np.ndarray,
    outside: list[float],
) -> Value | Refusal | None:
    """Return the answer that does not depend on judgments, or None.

    A run that came after the draw may return documents that could never be drawn: its number would be too low, with a
    small interval. Two runs that rank alike inside the cutoff differ by exactly 0.
    """
    for run in target:
        if run is not None and outside[run] > 0:
            return Refusal(
                f"{arrays.runs[run].run_id} returns documents that could not be drawn, inside the cutoff of {measure} "
                "(it was imported after the draw)"
            )
    if target[1] is not None and not weights.any():
        return Value(0.0, 0.0, 0.0, 0.0, None, 0, (), (), "the two runs are the same inside the cutoff")
    return None


def estimates(
    campaign: Campaign, arrays: CampaignArrays, counts: ConfusionCounts, measure: str
) -> list[Estimate]:
    """Return the unsaved estimates of the measure: naive, corrected, matrix inverse and, if known, the true values."""
    targets = _targets(campaign, arrays, measure)
    methods = {
        Method.NAIVE: _naive(arrays, targets),
        Method.CORRECTED: _corrected(arrays, targets),
        Method.MATRIX_INVERSE: _matrix_inverse(arrays, targets, counts),
    }
    truth = _truth(arrays, targets)
    if truth is not None:
        methods[Method.TRUE] = truth
    rows = []
    for method, results in methods.items():
        # Only the corrected difference is tested: grades as given say nothing of how judges err, and the inverse of
        # confusion matrices has no valid p on real judges.
        is_reported = method == Method.CORRECTED
        for (run, run_b), settled, result in zip(targets.runs, targets.settled, results, strict=True):
            rows.append(
                Estimate(
                    run=arrays.runs[run],
                    run_b=None if run_b is None else arrays.runs[run_b],
                    measure=measure,
                    method=method,
                    **_columns(settled or result, tested=is_reported and run_b is not None),
                )
            )
    return rows


def _columns(result: Value | Refusal, *, tested: bool) -> dict:
    if isinstance(result, Refusal):
        needed = f" (about {result.needed} more needed)" if result.needed else ""
        return {"n": 0, "refusal": result.reason + needed}
    value = result.value if abs(result.value) > ROUNDING else 0.0
    return {
        "value": value,
        "standard_error": result.standard_error,
        "low": result.low if result.standard_error else value,
        "high": result.high if result.standard_error else value,
        "p_value": _p_value(result, value) if tested else None,
        "degrees_of_freedom": result.degrees_of_freedom,
        "n": result.n,
        "sources": list(result.sources),
        "warning": result.warning,
    }


def _p_value(result: Value, value: float) -> float | None:
    """Return the two-sided p. Where no error is left (all drawn, all audited) a difference is certain: 0, or 1."""
    if result.standard_error == 0:
        return 1.0 if value == 0 else 0.0
    compared = compare(result)
    return compared.p_value if isinstance(compared, Comparison) else None


def _prior(arrays: CampaignArrays, targets: Targets) -> tuple[np.ndarray, np.ndarray]:
    """Return f per judged item and sum f w over the frame: the recorded guess of relevance times a relevant gain."""
    relevant_gain = float(np.mean(targets.gains[targets.relevant_grade :]))
    f = arrays.frame["prior"].to_numpy() * relevant_gain
    return f[arrays.judged], targets.frame_weights @ f


def _covered(arrays: CampaignArrays, members: np.ndarray, what: str) -> Refusal | None:
    missing = arrays.topics_without(members)
    if missing:
        return Refusal(f"{missing} of {arrays.n_topics} topics have no {what} yet", missing)
    partly = 0 if arrays.order_is_random else arrays.topics_in_part(members)
    if partly:
        return Refusal(
            f"{partly} topics are judged in part, and judgments were imported: what a file holds is not a random part"
        )
    return None


def _naive(arrays: CampaignArrays, targets: Targets) -> Sequence[Value | Refusal]:
    everything = np.ones(arrays.judged.size, dtype=bool)
    refused = _covered(arrays, everything, "judgment")
    if refused is not None:
        return [refused] * len(targets.runs)
    prior, total = _prior(arrays, targets)
    return naive(
        targets.frame_weights[:, arrays.judged],
        draw_probability=arrays.draw_probability(everything),
        label_item=arrays.label_item,
        label_grade=arrays.label_grade,
        gains=targets.gains,
        prior=prior,
        prior_total=total,
    )


def _corrected(arrays: CampaignArrays, targets: Targets) -> Sequence[Value | Refusal]:
    """GREG-label over the items that were open to the completed audits."""
    eligible = arrays.audit_probability > 0
    if not eligible.any():
        waiting = (
            f"; {arrays.n_audit_pending} selected items wait for the gold tier"
            if arrays.n_audit_pending
            else ""
        )
        return [Refusal(f"no audit is complete yet{waiting}", None)] * len(targets.runs)
    refused = _covered(arrays, eligible, "item that an audit could select")
    if refused is not None:
        return [refused] * len(targets.runs)
    prior, total = _prior(arrays, targets)
    classes = vote_classes(arrays.label_item, arrays.label_grade, arrays.judged.size)
    weights = targets.frame_weights[:, arrays.judged[eligible]]
    results = greg_label(
        weights,
        draw_probability=arrays.draw_probability(eligible)[eligible],
        bronze_class=classes[eligible],
        audited=arrays.audited[eligible],
        gold_grade=arrays.audit_grade[eligible],
        audit_probability=arrays.audit_probability[eligible],
        gains=targets.gains,
        prior=prior[eligible],
        prior_total=total,
    )
    is_pair = [run_b is not None for _, run_b in targets.runs]
    return [
        _with_advice(result, int(np.count_nonzero(row))) if pair else result
        for result, row, pair in zip(results, weights, is_pair, strict=True)
    ]


def _with_advice(result: Value | Refusal, n_items: int) -> Value | Refusal:
    """Return a difference that is not resolved with what would resolve it: more gold labels, or more items."""
    if isinstance(result, Refusal) or result.standard_error == 0:
        return result
    more = labels_needed(result, n_items)
    if more is None:
        return result
    return replace(result, warning="; ".join(filter(None, [result.warning, more.reason])))


def _matrix_inverse(
    arrays: CampaignArrays, targets: Targets, counts: ConfusionCounts
) -> Sequence[Value | Refusal]:
    """The papers' correction: every assessor's own (shrunk) matrix, or one pooled matrix where some cannot be used."""
    everything = np.ones(arrays.judged.size, dtype=bool)
    refused = _covered(arrays, everything, "judgment")
    table, grades, gains = counts.together, arrays.label_grade, targets.gains
    if targets.binary:  # the papers' binary form: relevant or not
        relevant = targets.relevant_grade
        table, grades, gains = _binary(table, relevant), grades >= relevant, np.array([0.0, 1.0])
    shrunk = shrink(table) if table.size else Refusal("nobody has judged yet")
    if isinstance(shrunk, Refusal):
        refused = refused or shrunk
    if refused is not None or isinstance(shrunk, Refusal):
        return [refused or Refusal("not estimable")] * len(targets.runs)
    prior, total = _prior(arrays, targets)
    given = partial(
        matrix_inverse,
        targets.frame_weights[:, arrays.judged],
        draw_probability=arrays.draw_probability(everything),
        label_item=arrays.label_item,
        label_grade=grades.astype(np.int64),
        gains=gains,
        prior=prior,
        prior_total=total,
        rng=np.random.default_rng(arrays.last_judgment_id),
    )
    own = given(
        label_assessor=arrays.label_assessor, matrices=shrunk.matrices, gold_per_grade=shrunk.n_per_grade
    )
    unusable = own[0].reason if isinstance(own[0], Refusal) and MATRICES_UNUSABLE in own[0].reason else ""
    if not unusable:
        return own
    joined = table.sum(axis=0)
    pooled = given(
        label_assessor=np.zeros_like(arrays.label_assessor),
        matrices=((joined + 0.5) / (joined + 0.5).sum(axis=1, keepdims=True))[None],
        gold_per_grade=joined.sum(axis=1)[None],
    )
    note = f"one matrix for all assessors: {unusable}"
    return [
        replace(r, reason=f"{note}; pooled: {r.reason}")
        if isinstance(r, Refusal)
        else replace(r, warning="; ".join(filter(None, [note, r.warning])))
        for r in pooled
    ]


def _binary(counts: np.ndarray, relevant_grade: int) -> np.ndarray:
    """Return counts[assessor, true, given] with the grades joined to not relevant and relevant."""
    edges = [0, relevant_grade]
    return np.add.reduceat(np.add.reduceat(counts, edges, axis=1), edges, axis=2)


def _truth(arrays: CampaignArrays, targets: Targets) -> list[Value | Refusal] | None:
    """Return the true values when the gold answers of the whole frame are known (the demo), else None."""
    if (arrays.gold_grade < 0).any():
        return None
    values = targets.frame_weights @ targets.gains[arrays.gold_grade]
    return [
        Value(float(value), 0.0, float(value), float(value), None, int(np.count_nonzero(weights)), ())
        for value, weights in zip(values, targets.frame_weights, strict=True)
    ]
