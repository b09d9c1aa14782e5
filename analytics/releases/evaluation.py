"""What a release says of a run in one measure, with the part that could not be judged."""

from dataclasses import asdict, dataclass, replace
from typing import Any, TypeVar

import numpy as np

from analytics.estimation.estimate import Estimate, Refusal
from analytics.estimation.outside import OutsideGain, Standing


@dataclass(frozen=True)
class ValueAlone:
    """A number of the sample as it is, and why it has no interval."""

    value: float
    no_interval: str


Result = Estimate | Refusal
AnyResult = TypeVar("AnyResult", Estimate, Refusal, ValueAlone, Result, Result | ValueAlone)
RESULTS = ("estimate", "corrected", "estimate_over_topics", "corrected_over_topics")


@dataclass(frozen=True)
class UnjudgedPart:
    """The part of a run that could not have been judged, and between which limits its value lies nevertheless.

    `share` of the weight within the cutoff. `low`: none of it is relevant; `high`: all of it is, as highly as the scale
    goes. Both at the end of the 95 % confidence interval of the part that could be judged. None where that part
    has no interval.
    """

    share: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Evaluation:
    """What a release says of a run in one measure.

    Estimates are as they are made: a mean is made of values of topics that may lie outside the measure's range.
    `within_range` is what is shown. `judged_share` and `gold_share`: of the run's first documents, those that were
    judged, and those of them with a gold label.
    """

    measure: str
    ir_measures: str  # the name under which ir_measures gives `qrels`
    qrels: float  # mean over the topics of qrels.txt, as trec_eval computes it
    estimator: str
    estimate: Result | ValueAlone  # from the sample, grades as given
    corrected: Result  # with the audit
    estimate_over_topics: Result  # the same, with the topics as a sample
    corrected_over_topics: Result
    outside: UnjudgedPart
    by_topic: dict[str, dict[str, float]]
    largest: float | None = None  # the measure lies between 0 and this; None where it has no estimate
    judged_share: float | None = None
    gold_share: float | None = None

    def within_range(self) -> "Evaluation":
        """Return the same with values, ends of intervals and values of topics cut off at the measure's range."""
        if self.largest is None:
            return self
        results = {name: _cut_off(getattr(self, name), self.largest) for name in RESULTS}
        topics = {
            topic: {name: min(max(value, 0.0), self.largest) for name, value in values.items()}
            for topic, values in self.by_topic.items()
        }
        return replace(self, **results, by_topic=topics)

    def as_json(self) -> dict[str, Any]:
        """Return what can be written as JSON: the numbers within the measure's range, and what they were before."""
        shown = self.within_range()
        fields: dict[str, Any] = {
            name: getattr(self, name) for name in ("measure", "ir_measures", "qrels", "estimator")
        }
        fields["range"] = None if self.largest is None else [0.0, self.largest]
        fields |= {"judged_share": self.judged_share, "gold_share": self.gold_share}
        for name in RESULTS:
            fields[name] = _as_json(getattr(shown, name)) | _before_the_end(getattr(self, name))
        by_topic = {
            topic: values
            | {f"unbounded_{name}": self.by_topic[topic][name] for name in values if name != "qrels"}
            for topic, values in shown.by_topic.items()
        }
        return fields | {"outside": asdict(self.outside), "by_topic": by_topic}


def _cut_off(result: AnyResult, largest: float) -> AnyResult:
    if isinstance(result, Refusal):
        return result
    names = ("value",) if isinstance(result, ValueAlone) else ("value", "low", "high")
    return replace(result, **{name: min(max(getattr(result, name), 0.0), largest) for name in names})


def _before_the_end(result: Result | ValueAlone) -> dict[str, float]:
    """Return what an estimate was before it was cut off."""
    names = ("value", "low", "high") if isinstance(result, Estimate) else ()
    return {f"unbounded_{name}": getattr(result, name) for name in names}


def _as_json(result: Result | ValueAlone) -> dict[str, Any]:
    if isinstance(result, ValueAlone):
        return asdict(result)
    if isinstance(result, Refusal):
        return {"refusal": result.reason, "needed": result.needed}
    return {**asdict(result), "components": dict(result.components)}


def with_outside(inside: Result, most: float, refusal: Refusal) -> Result:
    """Return the estimate with room for what could not be judged, or the refusal where that is too much.

    The rule of the product: beyond half the interval there is no number (`analytics.estimation.outside`).
    """
    if isinstance(inside, Refusal):
        return inside
    bound = OutsideGain(np.zeros(1), np.array([most]))
    (standing,) = bound.standings([inside.high - inside.value])
    if standing == Standing.NOT_YET:
        return refusal
    words = "" if standing == Standing.YES else f"documents that could not be judged may add up to {most:.3g}"
    return replace(inside, high=inside.high + most, warning="; ".join(filter(None, [inside.warning, words])))


def bounds_of(of_inside: Result, share: float, most: float, largest: float | None) -> UnjudgedPart:
    """Return the limits that hold whatever the part outside is worth: at least 0, at most `most`."""
    if isinstance(of_inside, Refusal) or largest is None:
        return UnjudgedPart(share, None, None)
    low, high = np.clip([of_inside.low, of_inside.high + most], 0.0, largest).tolist()
    return UnjudgedPart(share, low, high)


def not_in_frame(outside: UnjudgedPart, measure: str) -> Refusal:
    words = (
        f"{outside.share:.1%} of the run's weight in {measure} lies on documents that could not be judged: the value "
        "would be wrong by an unknown amount"
    )
    if outside.low is None or outside.high is None:
        return Refusal(words)
    return Refusal(
        f"{words}. It lies between {outside.low:.4f} (none of them relevant) and {outside.high:.4f} (all)"
    )
