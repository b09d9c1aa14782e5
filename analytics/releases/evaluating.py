"""A new run on an old release: what its measures are by the grades, and how surely that is known.

The grades of a release are of a sample. A run that was not there when it was drawn is judged by the same sample: each
judged pair stands for 1/pi pairs, pi the recorded chance to be drawn and judged. That is unbiased as long as the run
returns, within the cutoff, only what could have been drawn; else there are bounds. The audit corrects the grades.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from analytics.estimation.complete import complete_estimates, first_documents
from analytics.estimation.estimate import Estimate, Estimates, Refusal, in_columns
from analytics.estimation.estimators import difference_estimator, hajek_ratio
from analytics.estimation.fixed_size import fixed_size
from analytics.estimation.gold_prediction import GoldPrediction
from analytics.estimation.graded_labels import mean_on_stairs, stairs
from analytics.estimation.importance import distinct_items
from analytics.estimation.labels import JUDGE_BIAS
from analytics.estimation.one_step import stair_phases
from analytics.estimation.pseudolabels import PseudoLabels, corrected_pseudo_labels, pseudo_labels
from analytics.estimation.ratio_words import empty_topics, needs_pool, no_interval
from analytics.estimation.ratios import (
    RatioAnswer,
    ratio_answer,
    ratio_values,
)
from analytics.estimation.samples import Frame
from analytics.estimation.topics import never_narrower, over_topics
from analytics.releases.audit import audit_corrected, audit_of, labels_of, topic_parts
from analytics.releases.evaluation import (
    Evaluation,
    Result,
    UnjudgedPart,
    ValueAlone,
    bounds_of,
    not_in_frame,
    with_outside,
)
from analytics.releases.predictions import Predictions, predictions
from analytics.releases.sampled import PlacedRun, Ranking, SampledRelease
from analytics.releases.verify_facts import Floats, Ints
from judging.rankings import HashedRun
from sampling.measures.families import Measure, largest_value, rank_weights
from sampling.measures.kinds import Complete, Kind, Linear, Ratio
from sampling.measures.registry import parse_complete, parse_linear, parse_ratio
from sampling.measures.scoring import JudgedPairs, ScaledMeasure, evaluate_topics
from sampling.measures.sparse import from_dense

NOTHING = Refusal("Judged@k is known, there is nothing to estimate")


def evaluate(
    sampled: SampledRelease,
    about: Mapping[str, Any],
    measures: Sequence[ScaledMeasure],
    ranking: Ranking,
    run: HashedRun,
    judged: JudgedPairs,
) -> list[Evaluation]:
    """Return what the release says of the run, in each of the measures.

    Parameters
    ----------
    about
        What estimates.json says of each measure by name: which prediction fits which gains.
    ranking, run
        The run's documents by topic, best first; the same as the evaluator takes it.
    judged
        The grades of qrels.txt.
    """
    scores = evaluate_topics(run, judged, measures)
    placed = PlacedRun.of(sampled.facts, ranking)
    return [
        _evaluate(sampled, about, measure, placed, dict(zip(scores.topic_ids, values.tolist(), strict=True)))
        for measure, values in zip(measures, scores.values, strict=True)
    ]


def _evaluate(
    sampled: SampledRelease,
    about: Mapping[str, Any],
    measure: ScaledMeasure,
    placed: PlacedRun,
    values: Mapping[str, float],
) -> Evaluation:
    plain = Evaluation(
        measure=measure.name,
        ir_measures=measure.ir_measures,
        qrels=float(np.mean(list(values.values()))) if values else 0.0,
        estimator="",
        estimate=NOTHING,
        corrected=NOTHING,
        estimate_over_topics=NOTHING,
        corrected_over_topics=NOTHING,
        outside=UnjudgedPart(0.0, None, None),
        by_topic={topic: {"qrels": value} for topic, value in values.items()},
    )
    if measure.measure is None:
        return plain
    judged, gold = placed.shares(sampled.facts, measure.last_rank)
    largest = largest_value(measure.measure, measure.gains)
    plain = replace(plain, largest=largest, judged_share=judged, gold_share=gold)
    estimated = BY_KIND.get(type(measure.measure.kind))
    if estimated is None:
        words = f"{measure.name} is {measure.measure.kind.noun}: no estimator is made for it"
        return _all_refused(plain, Refusal(words))
    return estimated(plain, sampled, measure, placed, predictions(sampled.facts, about, measure))


# -- sums --------------------------------------------------------------------------------------------------------


def _linear(
    plain: Evaluation, sampled: SampledRelease, measure: ScaledMeasure, placed: PlacedRun, known: Predictions
) -> Evaluation:
    facts, n_topics = sampled.facts, len(sampled.facts.topics)
    parsed = parse_linear(measure.name)
    table = rank_weights(parsed, parsed.last_rank) / n_topics
    near = placed.rank <= parsed.last_rank
    weights = np.zeros(facts.topic.size)
    weights[placed.place[near]] = table[placed.rank[near] - 1]
    never = (facts.first_probability == 0).all(axis=0)
    outside = placed.outside[: 0 if sampled.is_foreign else None]
    beyond = float(table[outside[outside <= parsed.last_rank] - 1].sum() + weights[never].sum())
    whole = beyond + float(weights[~never].sum())
    inside = np.where(never, 0.0, weights)
    estimator, estimate, parts_as_given = _as_given(sampled, measure, inside, known.gain)
    audited, parts_audited = audit_corrected(sampled, measure, inside, known.gain, known.gold)
    most = beyond * float(measure.gains.max())
    if beyond > 0:
        best = audited if isinstance(audited, Estimate) else estimate
        part = bounds_of(best, beyond / whole, most, plain.largest)
        plain = replace(plain, outside=part)
        refusal = not_in_frame(part, parsed.name)
        estimate, audited = (with_outside(one, most, refusal) for one in (estimate, audited))
    if not whole and not sampled.is_foreign:
        nothing = "the run returns nothing for the topics of the release: its value is 0"
        return _all_refused(plain, Refusal(nothing))
    topics = (parts_as_given, parts_audited)
    known_parts = [
        parts * n_topics if isinstance(result, Estimate) else None
        for result, parts in zip((estimate, audited), topics, strict=True)
    ]
    return replace(
        plain,
        estimator=estimator,
        estimate=estimate,
        corrected=audited,
        estimate_over_topics=_over_topics(estimate, topics[0], ("drawing", "topics"), most),
        corrected_over_topics=_over_topics(audited, topics[1], (*_sources(audited), "topics"), most),
        by_topic=_with_parts(plain.by_topic, facts.topics, *known_parts),
    )


def _with_parts(
    by_topic: Mapping[str, Mapping[str, float]],
    topics: Sequence[str],
    estimate: Floats | None,
    corrected: Floats | None,
) -> dict[str, dict[str, float]]:
    """Return the values of topics with those whose means are the estimate and the corrected number, where known."""
    found = {topic: dict(values) for topic, values in by_topic.items()}
    for name, parts in (("estimate", estimate), ("corrected", corrected)):
        if parts is not None:
            for topic, part in zip(topics, parts.tolist(), strict=True):
                found.setdefault(topic, {})[name] = part
    return found


def _sources(result: Result) -> tuple[str, ...]:
    return result.sources if isinstance(result, Estimate) else ()


def _all_refused(plain: Evaluation, refusal: Refusal) -> Evaluation:
    return replace(
        plain,
        estimate=refusal,
        corrected=refusal,
        estimate_over_topics=refusal,
        corrected_over_topics=refusal,
    )


def _as_given(
    sampled: SampledRelease, measure: ScaledMeasure, weights: Floats, prediction: Floats
) -> tuple[str, Result, Floats]:
    """Return estimator, estimate with the grades as given, and its part of every topic."""
    facts, refused = sampled.facts, sampled.refused
    if refused is not None:
        return "", refused, np.zeros(len(facts.topics))
    utility = labels_of(facts, measure.gains.size).means(measure.gains[facts.label_grade])
    pi, rows = sampled.chance_judged, weights[facts.item]
    prior, total = prediction[facts.item], np.array([float(weights @ prediction)])
    surprise = (utility - prior) / pi
    if sampled.is_complete and facts.fixed_size:
        strata = facts.topic[facts.item]
        estimates: Estimates | Sequence[Result] = fixed_size(
            rows, utility, pi, strata=strata, join_strata=True, prior=prior, prior_total=total
        )
        name = "difference, a fixed number of every topic"
    elif sampled.is_complete and facts.single.size:
        q, draws = facts.single[:, facts.item], facts.times.sum(axis=1)
        estimates = distinct_items(rows, utility, q, draws, prior=prior, prior_total=total)
        name = "difference, drawn with replacement"
    elif prediction.any() or sampled.is_foreign:
        estimates = difference_estimator(rows, utility, pi, prior=prior, prior_total=total)
        name = "Horvitz and Thompson" if sampled.is_foreign else "difference"
    else:
        estimates = hajek_ratio(rows, utility, pi, weight_total=[float(weights.sum()) or 1.0])
        name = "Hajek"
    result = estimates[0]
    if isinstance(result, Estimate):
        result = replace(result, warning="; ".join(filter(None, [result.warning, JUDGE_BIAS])))
    if name == "Hajek" and isinstance(result, Estimate):  # the mean of the judged predicts all the others
        whole = float(weights.sum())
        prediction = np.full(facts.topic.size, result.value / whole)
        surprise = (utility - result.value / whole) / pi * whole / float((rows / pi).sum())
    return name, result, topic_parts(facts, weights, prediction, surprise)


def _over_topics(estimate: Result, parts: Floats, sources: Sequence[str], most: float) -> Result:
    """Return the interval over topics; it is never narrower than the one for these topics.

    `most`: what documents that could not be judged may add to either.
    """
    if isinstance(estimate, Refusal):
        return estimate
    wide = over_topics(parts, sources)
    if isinstance(wide, Refusal):
        return wide
    these = in_columns([estimate])
    numbers = (these.standard_error, these.low, these.high - most, these.degrees_of_freedom)
    found = never_narrower(in_columns([wide]), *numbers)
    error, low, high, df = (
        float(column[0]) for column in (found.standard_error, found.low, found.high, found.degrees_of_freedom)
    )
    known_df = df if np.isfinite(df) else None
    return replace(wide, standard_error=error, low=low, high=high + most, degrees_of_freedom=known_df)


# -- ratios ------------------------------------------------------------------------------------------------------


def _ratio(
    plain: Evaluation,
    sampled: SampledRelease,
    measure: ScaledMeasure,
    placed: PlacedRun,
    known: Predictions,
) -> Evaluation:
    """nDCG and AP: ratios of estimates, with bootstrap intervals for these topics, and for topics like these."""
    facts, parsed = sampled.facts, parse_ratio(measure.name)
    n_outside = 0 if sampled.is_foreign else int((placed.outside <= measure.last_rank).sum())
    near = int((placed.rank <= measure.last_rank).sum())
    none = Refusal("the values of topics are not known")
    plain = replace(plain, estimator="ratio", estimate_over_topics=none, corrected_over_topics=none)
    if n_outside or (facts.first_probability == 0).all(axis=0).any():
        outside = UnjudgedPart(n_outside / max(1, n_outside + near), None, None)
        words = (
            f"{outside.share:.1%} of the documents that the run returns within the cutoff could not be judged"
            if n_outside
            else "some pooled documents could not be judged, and what a ratio divides by counts the whole pool"
        )
        return replace(plain, outside=outside, estimate=Refusal(words), corrected=Refusal(words))
    ranks = placed.ranks(facts.topic.size)[None]
    refused, audited = sampled.refused, sampled.not_audited
    if not parsed.kind.has_prediction:
        value = refused or _value_alone(sampled, measure, parsed, ranks)
        return replace(plain, estimate=value, corrected=Refusal("it takes the grades as they are given"))
    if sampled.is_foreign:
        refused = needs_pool(parsed)
    elif not measure.gains.any():
        refused = audited = Refusal("no grade of this scale has a gain above 0: nothing to divide by")
    estimate, over, parts = (
        (refused, none, None)
        if refused
        else _of_run(_ratio_as_given(sampled, measure, parsed, ranks, known.gain))
    )
    corrected, audited_over, audited_parts = (
        (audited, none, None) if audited else _of_run(ratio_audited(sampled, measure, parsed, ranks, known))
    )
    return replace(
        plain,
        estimate=estimate,
        estimate_over_topics=over,
        corrected=corrected,
        corrected_over_topics=audited_over,
        by_topic=_with_parts(plain.by_topic, facts.topics, parts, audited_parts),
    )


def _of_run(answer: RatioAnswer) -> tuple[Result, Result, Floats | None]:
    """Return the ratio of the only run, for these topics and with the topics as a sample, and its values of topics."""
    found, values = answer.results[0], answer.topic_values
    if isinstance(found, Refusal):
        return found, found, None
    if values is None:
        return found, Refusal("the values of topics are not known"), None
    return found, _over_topics(found, values[0] / values.shape[1], ("topics",), 0.0), values[0]


def _ratio_as_given(
    sampled: SampledRelease,
    measure: ScaledMeasure,
    parsed: Measure[Ratio],
    ranks: Ints,
    prediction: Floats,
) -> RatioAnswer:
    labels = _labels_as_given(sampled, measure, prediction)
    return ratio_answer(parsed, labels, ranks, seed=sampled.seed)


def _labels_as_given(sampled: SampledRelease, measure: ScaledMeasure, prediction: Floats) -> PseudoLabels:
    facts = sampled.facts
    return pseudo_labels(
        Frame(len(facts.topics), facts.topic, facts.item, sampled.chance_judged),
        prediction=prediction,
        label=mean_on_stairs(measure.gains, labels_of(facts, measure.gains.size)),
        steps=stairs(measure.gains).steps,
    )


def _value_alone(
    sampled: SampledRelease, measure: ScaledMeasure, parsed: Measure[Ratio], ranks: Ints
) -> ValueAlone:
    """Return the ratio with all predictions 0, without an interval, and the number of its empty topics."""
    facts = sampled.facts
    labels = _labels_as_given(sampled, measure, np.zeros(facts.topic.size))
    n_empty = int(np.count_nonzero(labels.stair_total[0] == 0))
    words = no_interval(parsed, is_foreign=sampled.is_foreign) + empty_topics(n_empty)
    return ValueAlone(float(ratio_values(parsed, labels, ranks)[0]), words)


def ratio_audited(
    sampled: SampledRelease,
    measure: ScaledMeasure,
    parsed: Measure[Ratio],
    ranks: Ints,
    known: Predictions,
) -> RatioAnswer:
    """Return the ratios of some runs [run, frame] as the audits correct them."""
    facts, is_open = sampled.facts, sampled.is_open
    audit = audit_of(sampled, measure.gains.size)
    frame = Frame(len(facts.topics), facts.topic, facts.item[is_open], audit.draw_probability)
    prediction, after = known.gain, None  # of an older release; and where gold judges judged
    if known.stairs and audit.labels is None:
        made = [GoldPrediction(one.before, one.after[is_open], one.spread[is_open]) for one in known.stairs]
        items = stair_phases(frame, audit, measure.gains, made)
        prediction, after = items.steps @ items.prediction, items.after
    labels = corrected_pseudo_labels(frame, audit, measure.gains, prediction=prediction, after=after)
    return ratio_answer(parsed, labels, ranks, seed=sampled.seed)


# -- completely judged ranks -------------------------------------------------------------------------------------


def _complete(
    plain: Evaluation, sampled: SampledRelease, measure: ScaledMeasure, placed: PlacedRun, known: Predictions
) -> Evaluation:
    """Known where the first documents of the run are judged in every topic; nothing is predicted, nothing corrected."""
    facts, parsed = sampled.facts, parse_complete(measure.name)
    n_outside = int((placed.outside <= measure.last_rank).sum())
    plain = replace(plain, estimator="complete judgments")
    if n_outside:
        share = n_outside / (n_outside + int((placed.rank <= measure.last_rank).sum()))
        words = f"{share:.1%} of the documents that the run returns within the cutoff could not be judged"
        return _all_refused(replace(plain, outside=UnjudgedPart(share, None, None)), Refusal(words))
    gain, is_judged = np.zeros(facts.topic.size), np.zeros(facts.topic.size, dtype=bool)
    gain[facts.item] = labels_of(facts, measure.gains.size).means(measure.gains[facts.label_grade])
    is_judged[facts.item] = True
    documents = first_documents(parsed, from_dense(placed.ranks(facts.topic.size)[None]))
    these, topics = complete_estimates(parsed, documents, gain, is_judged, facts.topic, len(facts.topics))
    none = Refusal(
        f"{measure.name} is {parsed.kind.noun}: an audit corrects a sum over documents or a ratio alone"
    )
    return replace(
        plain,
        estimate=these.with_warning(JUDGE_BIAS)[0],
        estimate_over_topics=topics[0],
        corrected=none,
        corrected_over_topics=none,
    )


BY_KIND: dict[
    type[Kind], Callable[[Evaluation, SampledRelease, ScaledMeasure, PlacedRun, Predictions], Evaluation]
] = {
    Linear: _linear,
    Ratio: _ratio,
    Complete: _complete,
}
