"""Runs evaluated on foreign samples: statAP and sums over documents on prels, infAP and infNDCG on pools in strata.

All values are of the sample as it is, with predictions 0: none has an interval. Why statAP has none:
docs/methods/sampled-measures.md.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from analytics.agreement.inferred import ApForm, NdcgForm, inferred_ap, inferred_ndcg
from analytics.estimation.estimate import Floats, Ints, Refusal
from analytics.lowcost.samples import PrelTopic, Run, StratifiedTopic, ranks_of
from analytics.lowcost.statap import (
    FORMS,
    EmptyTopics,
    TopicMean,
    linearised_variance,
    mean_over_topics,
    program_variance,
    statap,
)
from sampling.measures.families import RELEVANT, Measure, Parameter, grade_gains, run_weights
from sampling.measures.kinds import Linear
from sampling.measures.registry import keys_of, parse_linear
from sampling.measures.spelling import canonical, split_name
from sampling.rejudging import SampledTopic

_TopicT = TypeVar("_TopicT", PrelTopic, StratifiedTopic)
NO_NUMBERS: Mapping[str, Floats] = {}


@dataclass(frozen=True)
class TopicScores:
    """Values of the runs in one topic; empty: none of its sampled documents is relevant.

    `variances` by name, to compare with: no interval is made of them.
    """

    values: Floats
    is_empty: bool = False
    variances: Mapping[str, Floats] = field(default_factory=lambda: NO_NUMBERS)


@dataclass(frozen=True)
class SampleMeasure(Generic[_TopicT]):
    """A measure of runs from a sample: from a topic and ranks [run, document] to the scores or a refusal.

    `has_empty_topics`: a topic without a sampled relevant document has no value of its own.
    """

    name: str
    of_topic: Callable[[_TopicT, Ints], TopicScores | Refusal]
    has_empty_topics: bool


@dataclass(frozen=True)
class RunScores:
    """What a sample says of the runs in one measure; values, and variances by name, are [run, topic]."""

    measure: str
    by_topic: Floats
    is_empty: NDArray[np.bool_]
    variances: Mapping[str, Floats]
    mean: TopicMean | Refusal


def evaluate_sample(
    topics: Sequence[_TopicT],
    runs: Sequence[Run],
    measures: Sequence[SampleMeasure[_TopicT]],
    empty_topics: EmptyTopics = "zero",
) -> list[RunScores | Refusal]:
    """Return the measures of all runs over the topics of the sample.

    A topic that a run does not return counts 0; topics of a run that the sample does not have count nothing. A measure
    that a topic refuses is refused, by the topic's name.
    """
    ranks = [ranks_of(topic.topic_id, topic.doc_ids, runs) for topic in topics]
    return [_evaluate_measure(topics, ranks, measure, empty_topics) for measure in measures]


def _evaluate_measure(
    topics: Sequence[_TopicT],
    ranks: Sequence[Ints],
    measure: SampleMeasure[_TopicT],
    empty_topics: EmptyTopics,
) -> RunScores | Refusal:
    scores: list[TopicScores] = []
    for topic, rank in zip(topics, ranks, strict=True):
        found = measure.of_topic(topic, rank)
        if isinstance(found, Refusal):
            return Refusal(f"{measure.name} of topic {topic.topic_id}: {found.reason}", found.needed)
        scores.append(found)
    values = np.array([one.values for one in scores]).T
    is_empty = np.array([one.is_empty for one in scores], dtype=bool)
    variances = {name: np.array([one.variances[name] for one in scores]).T for name in scores[0].variances}
    counted = is_empty if measure.has_empty_topics else np.zeros_like(is_empty)
    return RunScores(
        measure.name, values, is_empty, variances, mean_over_topics(values, counted, empty_topics)
    )


# -- the names of measures ------------------------------------------------------------------------------------


def prel_measure(name: str) -> SampleMeasure[PrelTopic]:
    """Return the measure of prels of that name: statAP, or a sum over documents such as P@10 or DCG@10.

    ValueError for any other name.
    """
    if not name.startswith("statAP"):
        return _sum_measure(name)
    full_name, cutoff, values = _name_parts(name, "statAP", FORMS)
    relevant, form = values[RELEVANT.key] or 1, values["form"]

    def of_topic(topic: PrelTopic, rank: Ints) -> TopicScores:
        is_near = (rank > 0) & (rank <= (cutoff or np.iinfo(np.int64).max))
        ranks = np.where(is_near, rank, np.inf)
        labels = (topic.grade >= relevant).astype(np.int64)
        sample = SampledTopic.of(ranks, labels, topic.inclusion_probability)
        variances = {"linearised": linearised_variance(sample), "program": program_variance(sample)}
        return TopicScores(
            statap(sample, form), not labels.any(), variances if form == FORMS[0] else NO_NUMBERS
        )

    return SampleMeasure(full_name, of_topic, has_empty_topics=True)


def _sum_measure(name: str) -> SampleMeasure[PrelTopic]:
    """Return a sum over documents by Horvitz and Thompson: sum of weight * gain / pi; the gain is the grade."""
    try:
        measure: Measure[Linear] = parse_linear(name)
    except ValueError as error:
        raise ValueError(f"{error} (on prels: statAP, {', '.join(keys_of(Linear))})") from error

    def of_topic(topic: PrelTopic, rank: Ints) -> TopicScores:
        grade = np.maximum(topic.grade, 0)
        scale = np.arange(max(int(grade.max(initial=0)), measure.relevant_grade or 1) + 1.0)
        gain = grade_gains(measure, scale, 1)[grade] / topic.inclusion_probability
        return TopicScores(run_weights(measure, rank, 1) @ gain, not (grade > 0).any())

    return SampleMeasure(measure.name, of_topic, has_empty_topics=False)


AP_FORMS: tuple[ApForm, ...] = ("stratified", *(one for one in get_args(ApForm) if one != "stratified"))
NDCG_FORMS: tuple[NdcgForm, ...] = ("printed", *(one for one in get_args(NdcgForm) if one != "printed"))


def stratified_measure(name: str) -> SampleMeasure[StratifiedTopic]:
    """Return the measure of pools in strata of that name, infAP or infNDCG; ValueError for any other.

    Without a form they are infAP(form=stratified), as the program sample_eval computes it, and infNDCG(form=printed).
    """
    parts = split_name(name)
    if parts.family == "infAP":
        full_name, _, values = _name_parts(name, "infAP", AP_FORMS)
        return _inferred_ap(full_name, values["form"], values[RELEVANT.key] or 1)
    if parts.family == "infNDCG":
        full_name, _, values = _name_parts(name, "infNDCG", NDCG_FORMS)
        return _inferred_ndcg(full_name, values["form"])
    raise ValueError(f"measure of a pool in strata must be infAP or infNDCG, got {name!r}")


def _inferred_ap(name: str, form: ApForm, relevant: int) -> SampleMeasure[StratifiedTopic]:
    def of_topic(topic: StratifiedTopic, rank: Ints) -> TopicScores | Refusal:
        if (topic.grade >= 0).any() and not (topic.grade >= relevant).any():
            return TopicScores(np.zeros(len(rank)), is_empty=True)
        try:
            found = inferred_ap(rank, topic.grade, topic.stratum, form=form, relevant_grade=relevant)
        except ValueError as error:  # the printed form is for one stratum
            return Refusal(str(error))
        return found if isinstance(found, Refusal) else TopicScores(found.value)

    return SampleMeasure(name, of_topic, has_empty_topics=True)


def _inferred_ndcg(name: str, form: NdcgForm) -> SampleMeasure[StratifiedTopic]:
    def of_topic(topic: StratifiedTopic, rank: Ints) -> TopicScores | Refusal:
        if (topic.grade >= 0).any() and not (topic.grade > 0).any():
            return TopicScores(np.zeros(len(rank)), is_empty=True)
        found = inferred_ndcg(rank, topic.grade, topic.stratum, form=form)
        return found if isinstance(found, Refusal) else TopicScores(found.value)

    return SampleMeasure(name, of_topic, has_empty_topics=True)


def _name_parts(name: str, family: str, forms: Sequence[str]) -> tuple[str, int | None, dict[str, Any]]:
    """Return the canonical name, the cutoff and the parameters; ValueError for what the measure does not take."""

    def read_form(text: str) -> str:
        if text not in forms:
            raise ValueError(f"form of {family} must be one of {', '.join(forms)}, got {text!r}")
        return text

    parts = split_name(name)
    parameters = {RELEVANT.key: RELEVANT, "form": Parameter("form", forms[0], read_form)}
    if family == "infNDCG":
        del parameters[RELEVANT.key]
    unknown = [key for key in parts.parameters if key not in parameters]
    if parts.family != family or unknown:
        raise ValueError(
            f"{family} takes the parameters {sorted(parameters)}, got {unknown[0] if unknown else name!r}"
        )
    if parts.cutoff is not None and family != "statAP":
        raise ValueError(f"{family} takes no cutoff, got {name!r}")
    values = {
        key: one.read(parts.parameters[key]) if key in parts.parameters else one.default
        for key, one in parameters.items()
    }
    shown = [text for key, one in parameters.items() if (text := one.spelling(values[key]))]
    return canonical(family, shown, parts.cutoff), parts.cutoff, values
