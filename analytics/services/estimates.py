"""The estimates of one measure: every run and every pair of runs, by every method, or the reason for none."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from analytics.comparison import Comparison, compare
from analytics.confusion import shrink
from analytics.correction import GREG_SOURCES, greg_label, item_corrections, labels_needed
from analytics.estimators import Estimate as Value
from analytics.estimators import Refusal, quantile95
from analytics.frames import CampaignArrays
from analytics.inverse import matrix_inverse
from analytics.labels import item_means, vote_classes
from analytics.models import Estimate, Method
from analytics.services.predictions import Predictions
from analytics.services.ratio_estimates import ratio_results
from analytics.services.raw_estimates import importance, naive
from analytics.targets import TargetWeights
from analytics.topics import over_topics
from judging.models import Campaign
from sampling.frames import weights_of_runs
from sampling.measures import grade_gains, measure_kind, parse_measure, parse_ratio, run_weights
from sampling.models import Draw

ROUNDING = 1e-12
ASK = "“May I score my run?” on the page of results says "
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

    weights: TargetWeights
    gains: np.ndarray  # [grade]
    binary: bool
    relevant_grade: int
    prediction: np.ndarray  # [frame], f in gains
    prediction_by_topic: np.ndarray  # [target, topic], sum of f w: known before anything is judged
    settled: list[Value | Refusal | None]  # what no judgment can change: equal runs, runs outside the frame


def _targets(campaign: Campaign, arrays: CampaignArrays, predictions: Predictions, measure: str) -> Targets:
    parsed = parse_measure(measure)
    relevant = parsed.relevant_grade or campaign.scale.relevant_grade
    weights = TargetWeights(weights_of_runs(arrays.returned, measure, arrays.n_topics))
    outside = [float(run_weights(parsed, ranks, arrays.n_topics).sum()) for ranks in arrays.ranks_outside]
    gains = grade_gains(parsed, campaign.scale.gains(), relevant)
    prediction = predictions.of_gains(gains, relevant)
    probability = arrays.frame["inclusion_probability"].to_numpy()
    return Targets(
        weights=weights,
        gains=gains,
        binary=parsed.binary,
        relevant_grade=relevant,
        prediction=prediction,
        prediction_by_topic=weights.totals_by_topic(prediction, arrays.topic_index, arrays.n_topics),
        settled=[
            _settled(arrays, measure, target, outside, bool(is_zero), float(share))
            for target, is_zero, share in zip(
                weights.targets, weights.is_zero(), weights.unsupported_share(probability), strict=True
            )
        ],
    )


def _settled(
    arrays: CampaignArrays,
    measure: str,
    target: tuple[int, int | None],
    outside: Sequence[float],
    is_zero: bool,
    unsupported: float,
) -> Value | Refusal | None:
    """Return the answer that does not depend on judgments, or None.

    A run that came after the draw may return documents that could never be drawn: its number would be too low, with a
    small interval. So would be that of a run which a design without a floor leaves out in part. Two runs that rank
    alike inside the cutoff differ by exactly 0.
    """
    for run in target:
        if run is not None and outside[run] > 0:
            return Refusal(
                f"{arrays.runs[run].run_id} returns documents that could not be drawn, inside the cutoff of {measure} "
                f"(it was imported after the draw). {ASK}which judgments it lacks"
            )
    if target[1] is not None and is_zero:
        return Value(0.0, 0.0, 0.0, 0.0, None, 0, (), (), "the two runs are the same inside the cutoff")
    if unsupported > 0:
        return Refusal(
            f"{unsupported:.1%} of the weight in {measure} lies on documents that this design can never draw: "
            f"judgments drawn for one question do not answer every other. {ASK}how many more items it takes"
        )
    return None


def _ratio_targets(
    arrays: CampaignArrays, measure: str
) -> list[tuple[tuple[int, int | None], Value | Refusal | None]]:
    """Return every run and pair with what is settled about it."""
    cutoff = parse_ratio(measure).cutoff or np.iinfo(np.int64).max
    outside = [float(np.count_nonzero(ranks <= cutoff)) for ranks in arrays.ranks_outside]
    n_runs = len(arrays.runs)
    pairs = [(int(a), int(b)) for a, b in zip(*np.triu_indices(n_runs, 1), strict=True)]
    targets: list[tuple[int, int | None]] = [*((run, None) for run in range(n_runs)), *pairs]
    # What a ratio divides by counts the whole pool.
    never = float((arrays.frame["inclusion_probability"].to_numpy() == 0).mean())
    return [(target, _settled(arrays, measure, target, outside, False, never)) for target in targets]


def estimates(
    campaign: Campaign,
    arrays: CampaignArrays,
    predictions: Predictions,
    counts: ConfusionCounts,
    measure: str,
) -> list[Estimate]:
    """Return the unsaved estimates of the measure: naive, corrected, matrix inverse and, if known, the true values."""
    if measure_kind(measure) == "ratio":
        return _rows(
            arrays,
            measure,
            _ratio_targets(arrays, measure),
            ratio_results(campaign, arrays, predictions, measure),
            {},
        )
    targets = _targets(campaign, arrays, predictions, measure)
    methods = {
        Method.NAIVE: _naive(arrays, targets),
        Method.CORRECTED: _corrected(arrays, targets),
        Method.MATRIX_INVERSE: _matrix_inverse(arrays, targets, counts),
    }
    if arrays.draw.selection == Draw.Selection.REPLACEMENT:
        methods[Method.IMPORTANCE] = importance(arrays, targets.weights, targets.gains)
    over_topics = {
        Method.NAIVE: _naive_over_topics(arrays, targets),
        Method.CORRECTED: _corrected_over_topics(arrays, targets),
    }
    truth = _truth(arrays, targets)
    if truth is not None:
        methods[Method.TRUE] = truth
    asked = list(zip(targets.weights.targets, targets.settled, strict=True))
    return _rows(arrays, measure, asked, methods, over_topics)


def _rows(
    arrays: CampaignArrays,
    measure: str,
    asked: Sequence[tuple[tuple[int, int | None], Value | Refusal | None]],
    methods: Mapping[Method, Sequence[Value | Refusal]],
    over_topics: Mapping[Method, Sequence[Value | Refusal]],
) -> list[Estimate]:
    """Return unsaved rows: a settled answer goes before a method's; the interval over topics comes beside."""
    rows = []
    for method, results in methods.items():
        # Only the corrected difference is tested: grades as given say nothing of how judges err, and the inverse of
        # confusion matrices has no valid p on real judges.
        is_reported = method == Method.CORRECTED
        wider = over_topics.get(method, [None] * len(results))
        for ((run, run_b), settled), result, topics in zip(asked, results, wider, strict=True):
            columns = _columns(settled or result, tested=is_reported and run_b is not None)
            if settled is None and topics is not None and "value" in columns:
                columns |= topics_columns(topics, columns["standard_error"])
            rows.append(
                Estimate(
                    run=arrays.runs[run],
                    run_b=None if run_b is None else arrays.runs[run_b],
                    measure=measure,
                    method=method,
                    **columns,
                )
            )
    return rows


def topics_columns(result: Value | Refusal, least: float = 0.0) -> dict:
    """Return the second interval: the topics as a sample. Its standard error is at least that for these topics.

    The spread over topics holds the errors of judging as well, but a few topics may happen to lie close together.
    """
    if isinstance(result, Refusal):
        return {"topics_refusal": result.reason}
    if result.standard_error < ROUNDING:
        return {"topics_refusal": "all topics have the same value, so their spread cannot be estimated"}
    error = max(result.standard_error, least)
    half_width = quantile95(result.degrees_of_freedom) * error
    return {
        "topics_standard_error": error,
        "topics_low": result.value - half_width,
        "topics_high": result.value + half_width,
    }


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
    """Return f per judged item and sum f w over the frame."""
    return targets.prediction[arrays.judged], targets.prediction_by_topic.sum(axis=1)


def _covered(arrays: CampaignArrays, members: np.ndarray, what: str) -> Refusal | None:
    refused = arrays.not_covered(members, what)
    return Refusal(*refused) if refused else None


def _naive(arrays: CampaignArrays, targets: Targets) -> Sequence[Value | Refusal]:
    everything = np.ones(arrays.judged.size, dtype=bool)
    refused = _covered(arrays, everything, "judgment")
    if refused is not None:
        return [refused] * len(targets.weights.targets)
    return naive(arrays, targets.weights, targets.gains, *_prior(arrays, targets))


def _naive_over_topics(arrays: CampaignArrays, targets: Targets) -> Sequence[Value | Refusal]:
    everything = np.ones(arrays.judged.size, dtype=bool)
    refused = _covered(arrays, everything, "judgment")
    if refused is not None:
        return [refused] * len(targets.weights.targets)
    utility = item_means(arrays.label_item, targets.gains[arrays.label_grade], arrays.judged.size)
    surprise = (utility - targets.prediction[arrays.judged]) / arrays.draw_probability(everything)
    return _over_topics(arrays, targets, arrays.judged, surprise, ("drawing", "topics"))


def _over_topics(
    arrays: CampaignArrays, targets: Targets, places: np.ndarray, added: np.ndarray, sources: tuple[str, ...]
) -> Sequence[Value | Refusal]:
    """Return the interval over topics, given what the judged items at these places add: parts are sums of w * added."""
    values = np.zeros(arrays.frame.height)
    values[places] = added
    parts = targets.weights.totals_by_topic(values, arrays.topic_index, arrays.n_topics)
    return [over_topics(row, sources) for row in parts + targets.prediction_by_topic]


def _audited(arrays: CampaignArrays, targets: Targets) -> dict | Refusal:
    """Return GREG-label's arguments but weights and totals: the items that were open to the completed audits."""
    eligible = arrays.audit_probability > 0
    if not eligible.any():
        return Refusal(arrays.no_audit())
    refused = _covered(arrays, eligible, "item that an audit could select")
    if refused is not None:
        return refused
    classes = vote_classes(arrays.label_item, arrays.label_grade, arrays.judged.size)
    return {
        "draw_probability": arrays.draw_probability(eligible)[eligible],
        "bronze_class": classes[eligible],
        "audited": arrays.audited[eligible],
        "gold_grade": arrays.audit_grade[eligible],
        "audit_probability": arrays.audit_probability[eligible],
        "gains": targets.gains,
        "prior": targets.prediction[arrays.judged[eligible]],
    }


def _corrected(arrays: CampaignArrays, targets: Targets) -> Sequence[Value | Refusal]:
    """GREG-label over the items that were open to the completed audits."""
    given = _audited(arrays, targets)
    if isinstance(given, Refusal):
        return [given] * len(targets.weights.targets)
    weights = targets.weights.at(arrays.judged[arrays.audit_probability > 0])
    results = greg_label(weights, **given, prior_total=targets.prediction_by_topic.sum(axis=1))
    is_pair = [run_b is not None for _, run_b in targets.weights.targets]
    return [
        _with_advice(result, int(np.count_nonzero(row))) if pair else result
        for result, row, pair in zip(results, weights, is_pair, strict=True)
    ]


def _corrected_over_topics(arrays: CampaignArrays, targets: Targets) -> Sequence[Value | Refusal]:
    given = _audited(arrays, targets)
    if isinstance(given, Refusal):
        return [given] * len(targets.weights.targets)
    places = arrays.judged[arrays.audit_probability > 0]
    return _over_topics(arrays, targets, places, item_corrections(**given), (*GREG_SOURCES, "topics"))


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
        return [refused or Refusal("not estimable")] * len(targets.weights.targets)
    prior, total = _prior(arrays, targets)
    given = partial(
        matrix_inverse,
        targets.weights.at(arrays.judged),
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
    values = targets.weights.totals(targets.gains[arrays.gold_grade])
    return [
        Value(float(value), 0.0, float(value), float(value), None, int(n_weighed), ())
        for value, n_weighed in zip(values, targets.weights.n_weighed(), strict=True)
    ]
