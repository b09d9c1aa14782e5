"""Runs on a file of judgments that somebody else sampled: prels, or a pool in strata; a value, and no interval."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from analytics.estimation.estimate import Refusal
from analytics.lowcost.evaluating import (
    RunScores,
    SampleMeasure,
    evaluate_sample,
    prel_measure,
    stratified_measure,
)
from analytics.lowcost.samples import PrelTopic, StratifiedTopic, prel_topics, stratified_topics
from analytics.lowcost.statap import EmptyTopics
from judging.samples import METHOD_CODES, MethodCodes
from judging.trec import read_prels, read_stratified
from touchstone_ir.columns import InputRefused
from touchstone_ir.readers import read_run
from touchstone_ir.releases import rankings_of
from touchstone_ir.results import Result, rows_frame

NO_INTERVAL = "the numbers of a sample as it is have none"
NOT_KNOWN = (
    *("against", "low", "high", "standard_error", "degrees_of_freedom", "p"),
    *("low_other", "high_other", "p_other", "as_given"),
)
Scores = list[RunScores | Refusal]  # of the measures
Topics = Sequence[PrelTopic | StratifiedTopic]


def _read_prels(path: Path, method_codes: MethodCodes) -> tuple[Topics, int]:
    return prel_topics(read_prels(path, str(path)), method_codes)


def _read_strata(path: Path, method_codes: MethodCodes) -> tuple[Topics, int]:
    if method_codes != METHOD_CODES[0]:
        raise InputRefused("method codes are for prels: a pool in strata has none")
    return stratified_topics(read_stratified(path, str(path))), 0


@dataclass(frozen=True)
class SampleFormat:
    """A format of samples: how its topics are read, its measures by name, and some of them as examples.

    `read` also says how many topics were left out.
    """

    key: str
    read: Callable[[Path, MethodCodes], tuple[Topics, int]]
    measure: Callable[[str], SampleMeasure[Any]]
    examples: tuple[str, ...]


SAMPLE_FORMATS = (
    SampleFormat("prels", _read_prels, prel_measure, ("statAP", "P@10", "DCG@10")),
    SampleFormat("stratified", _read_strata, stratified_measure, ("infAP", "infNDCG")),
)


@dataclass(frozen=True)
class _ScoredRuns:
    """The topics of a file, and what their sample says of runs by name."""

    file: str
    topics: Topics
    n_left_out: int
    runs: tuple[str, ...]
    measures: Sequence[SampleMeasure[Any]]
    scores: Scores

    @property
    def n_documents(self) -> int:
        return sum(len(topic.doc_ids) for topic in self.topics)


def evaluate_on_sample(
    path: str | Path,
    runs: Sequence[str],
    measures: Sequence[str],
    *,
    format: str,  # noqa: A002 (the field's word)
    method_codes: MethodCodes = METHOD_CODES[0],
    empty_topics: EmptyTopics = "zero",
    by_topic: bool = False,
) -> Result:
    """Return what somebody else's sample of judgments says of runs: a row a run and measure, without intervals.

    Parameters
    ----------
    path : path
        Prels, or qrels with strata.
    runs : list of paths
        Files of any format that `read_run` reads.
    measures : list of str
        Of prels statAP and sums over documents, of strata infAP and infNDCG.
    format : "prels" or "stratified"
        Both have five columns, so none is guessed.
    method_codes : "recorded" or "track"
        Probabilities as they stand, or as the Million Query track's program has them.
    empty_topics : "zero" or "skip"
        Topics without a sampled relevant document count 0 in the mean, or are left out.
    by_topic : bool
        The values of topics as well: `Result.topics`, and in the JSON with the variances that are known by name.

    Raises
    ------
    InputRefused, ValueError
        ``file:line:column: reason`` of a file, a measure that the format has not, a run without any of its topics.
    """
    how, path = sample_format(format), Path(path)
    asked = _measures_of(measures, how)
    if not runs or not asked:
        missing = "a measure after the run files" if runs else "a run file before the measures"
        raise InputRefused(f"{how.key} needs {missing}, as in: my.run {' '.join(how.examples)}")
    try:
        topics, n_left_out = how.read(path, method_codes)
    except OSError as error:
        raise InputRefused(f"{path}: {error.strerror}") from error
    if not topics:
        left_out = f": {n_left_out} topics have method 0 alone" if n_left_out else ""
        raise InputRefused(f"{path}: no judgments in the file{left_out}")
    rankings = rankings_of(read_run(*runs))
    topic_ids = {topic.topic_id for topic in topics}
    for run, ranking in rankings.items():
        if not topic_ids & set(ranking):
            raise InputRefused(f"{run}: the run returns nothing for the topics of {path}")
    scores = evaluate_sample(topics, [*rankings.values()], asked, empty_topics)
    return _result(
        _ScoredRuns(path.name, topics, n_left_out, tuple(rankings), asked, scores), by_topic=by_topic
    )


def sample_format(key: str) -> SampleFormat:
    """Return the format of a key."""
    found = next((one for one in SAMPLE_FORMATS if one.key == key), None)
    if found is None:
        raise InputRefused(f"format must be {' or '.join(one.key for one in SAMPLE_FORMATS)}, got {key}")
    return found


def _measures_of(names: Sequence[str], how: SampleFormat) -> list[SampleMeasure[Any]]:
    found: dict[str, SampleMeasure[Any]] = {}
    for name in names:
        try:
            measure = how.measure(name)
        except ValueError as error:
            if found and Path(name).exists():
                raise InputRefused(f"runs stand before the measures, got {name} behind one") from error
            raise InputRefused(f"{name} is neither a file nor a measure: {error}") from error
        found[measure.name] = measure
    return [*found.values()]


# -- what is returned --------------------------------------------------------------------------------------------


def _result(scored: _ScoredRuns, *, by_topic: bool) -> Result:
    head = f"{scored.file}: {len(scored.topics)} topics, {scored.n_documents} documents"
    if scored.n_left_out:
        head += f"; {scored.n_left_out} topics with method 0 alone are left out"
    measured = [*zip(scored.measures, scored.scores, strict=True)]
    return Result(
        "evaluate",
        rows_frame(
            [
                _row(scored, measure.name, one, place)
                for measure, one in measured
                for place in range(len(scored.runs))
            ]
        ),
        n_topics=len(scored.topics),
        topics=_topic_rows(scored) if by_topic else None,
        head=head,
        notes=tuple(
            f"{measure.name}: {words}" for measure, one in measured for words in _notes(measure, one)
        ),
        details={
            "file": scored.file,
            "n_documents": scored.n_documents,
            "n_topics_left_out": scored.n_left_out,
            "runs": [*scored.runs],
            "measures": [
                {"measure": measure.name, **_details(scored, one, by_topic=by_topic)}
                for measure, one in measured
            ],
        },
    )


def _row(scored: _ScoredRuns, measure: str, one: RunScores | Refusal, place: int) -> dict[str, Any]:
    mean = one if isinstance(one, Refusal) else one.mean
    words, value = (
        (mean.reason, None) if isinstance(mean, Refusal) else (NO_INTERVAL, float(mean.value[place]))
    )
    return {
        **dict.fromkeys(NOT_KNOWN),
        "measure": measure,
        "run": scored.runs[place],
        "value": value,
        "n_judged": scored.n_documents,
        "n_gold": 0,
        "warning": "",
        "refusal": words,
        "refusal_other": words,
        "is_same": False,
    }


def _notes(measure: SampleMeasure[Any], one: RunScores | Refusal) -> Iterator[str]:
    """Yield over how many topics the mean is, what is missing, and which values are suspect."""
    if isinstance(one, Refusal):
        yield one.reason
        return
    if isinstance(one.mean, Refusal):
        yield one.mean.reason
        return
    words = f"mean over {one.mean.n_topics} topics, no interval"
    n_empty = int(one.is_empty.sum())
    if n_empty and measure.has_empty_topics:
        done = "count 0" if one.mean.n_topics == one.is_empty.size else "are left out"
        words += f"; {n_empty} without a sampled relevant document {done}"
    yield words
    n_above = int((one.by_topic > 1 + 1e-9).sum())
    if n_above and measure.has_empty_topics:
        yield f"{n_above} of {one.by_topic.size} values of a topic exceed 1, as a ratio of two estimates may"


def _topic_rows(scored: _ScoredRuns) -> pl.DataFrame:
    """Return the values of topics: topic, measure, run, value."""
    rows = [
        (topic.topic_id, one.measure, run, float(one.by_topic[place, index]))
        for one in scored.scores
        if not isinstance(one, Refusal)
        for index, topic in enumerate(scored.topics)
        for place, run in enumerate(scored.runs)
    ]
    types = {"topic": pl.String, "measure": pl.String, "run": pl.String, "value": pl.Float64}
    return pl.DataFrame(rows, schema=types, orient="row")


def _details(scored: _ScoredRuns, one: RunScores | Refusal, *, by_topic: bool) -> dict[str, Any]:
    if isinstance(one, Refusal):
        return {"refusal": one.reason, "needed": one.needed}
    empty = [topic.topic_id for topic, is_empty in zip(scored.topics, one.is_empty, strict=True) if is_empty]
    fields: dict[str, Any] = {"n_empty_topics": len(empty)}
    if isinstance(one.mean, Refusal):
        fields |= {"refusal": one.mean.reason, "needed": one.mean.needed}
    else:
        values = dict(zip(scored.runs, one.mean.value.tolist(), strict=True))
        fields |= {"n_topics": one.mean.n_topics, "values": values}
    if by_topic:
        tables = {"value": one.by_topic, **{f"{name}_variance": v for name, v in one.variances.items()}}
        fields["empty_topics"] = empty
        fields["by_topic"] = {
            topic.topic_id: {
                run: {name: float(table[place, index]) for name, table in tables.items()}
                for place, run in enumerate(scored.runs)
            }
            for index, topic in enumerate(scored.topics)
        }
    return fields
