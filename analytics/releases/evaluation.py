"""What a release says of a run in one measure, with the part that could not be judged."""

from dataclasses import asdict, dataclass
from typing import Any

from analytics.estimation.estimate import Estimate, Refusal


@dataclass(frozen=True)
class ValueAlone:
    """A number of the sample as it is, and why it has no interval."""

    value: float
    no_interval: str


Result = Estimate | Refusal


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
    """What a release says of a run in one measure."""

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

    def as_json(self) -> dict[str, Any]:
        """Return what can be written as JSON."""
        fields = {name: asdict(self)[name] for name in ("measure", "ir_measures", "qrels", "estimator")}
        for name in ("estimate", "corrected", "estimate_over_topics", "corrected_over_topics"):
            fields[name] = _as_json(getattr(self, name))
        return fields | {"outside": asdict(self.outside), "by_topic": self.by_topic}


def _as_json(result: Result | ValueAlone) -> dict[str, Any]:
    if isinstance(result, ValueAlone):
        return asdict(result)
    if isinstance(result, Refusal):
        return {"refusal": result.reason, "needed": result.needed}
    return {**asdict(result), "components": dict(result.components)}
