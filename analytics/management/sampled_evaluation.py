"""`manage.py evaluate --format`: runs on a file of somebody else's sample, without a database."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

from analytics.estimation.estimate import Refusal
from analytics.lowcost.evaluating import (
    RunScores,
    SampleMeasure,
    evaluate_sample,
    prel_measure,
    stratified_measure,
)
from analytics.lowcost.samples import (
    PrelTopic,
    StratifiedTopic,
    prel_topics,
    stratified_topics,
)
from analytics.lowcost.statap import EmptyTopics
from judging.run_columns import RunColumns
from judging.runs import read_columns
from judging.samples import METHOD_CODES, MethodCodes
from judging.trec import read_prels, read_stratified

Scores = list[RunScores | Refusal]


@dataclass(frozen=True)
class SampleOptions:
    """The options of the command that concern samples, and how its results are written."""

    method_codes: MethodCodes
    empty_topics: EmptyTopics
    by_topic: bool
    summary: bool
    places: int
    output: str


@dataclass(frozen=True)
class _Sample:
    """The topics of a file with their documents, how many were left out, and the evaluation of runs and measures."""

    path: Path
    topics: Sequence[PrelTopic | StratifiedTopic]
    n_left_out: int
    evaluate: Callable[[Sequence[dict[str, list[str]]], Sequence[Any]], Scores]


def _read_prel_sample(path: Path, options: SampleOptions) -> _Sample:
    topics, n_left_out = prel_topics(read_prels(path, str(path)), options.method_codes)

    def evaluate(
        runs: Sequence[dict[str, list[str]]], measures: Sequence[SampleMeasure[PrelTopic]]
    ) -> Scores:
        return evaluate_sample(topics, runs, measures, options.empty_topics)

    return _Sample(path, topics, n_left_out, evaluate)


def _read_strata(path: Path, options: SampleOptions) -> _Sample:
    if options.method_codes != METHOD_CODES[0]:
        raise CommandError("--method-codes is for prels: a pool in strata has none")
    topics = stratified_topics(read_stratified(path, str(path)))

    def evaluate(
        runs: Sequence[dict[str, list[str]]], measures: Sequence[SampleMeasure[StratifiedTopic]]
    ) -> Scores:
        return evaluate_sample(topics, runs, measures, options.empty_topics)

    return _Sample(path, topics, 0, evaluate)


@dataclass(frozen=True)
class SampleFormat:
    """A format of samples: how it is read, its measures by name, and some of them as examples."""

    key: str
    read: Callable[[Path, SampleOptions], _Sample]
    measure: Callable[[str], SampleMeasure[Any]]
    examples: tuple[str, ...]


SAMPLE_FORMATS = (
    SampleFormat("prels", _read_prel_sample, prel_measure, ("statAP", "P@10", "DCG@10")),
    SampleFormat("stratified", _read_strata, stratified_measure, ("infAP", "infNDCG")),
)


def sample_format(key: str) -> SampleFormat:
    return next(one for one in SAMPLE_FORMATS if one.key == key)


def evaluate_runs(path: Path, names: Sequence[str], one: SampleFormat, options: SampleOptions) -> str:
    """Return what is to be written of the runs and measures, which follow one another in `names`.

    CommandError for what cannot be evaluated; TrecFormatError says where a file is wrong.
    """
    run_paths, measures = _split(names, one)
    try:
        sample = one.read(path, options)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from error
    if not sample.topics:
        left_out = f": {sample.n_left_out} topics have method 0 alone" if sample.n_left_out else ""
        raise CommandError(f"{path}: no judgments in the file{left_out}")
    runs = _read_runs(run_paths, sample)
    scores = sample.evaluate(list(runs.values()), measures)
    if options.output == "json":
        return json.dumps(_json(sample, runs, measures, scores, options), ensure_ascii=False, indent=2)
    parts = [_by_topic(sample, runs, scores, options.places)] if options.by_topic else []
    return "\n".join([*parts, *(_table(sample, runs, measures, scores, options) if options.summary else [])])


def _split(names: Sequence[str], one: SampleFormat) -> tuple[list[Path], list[SampleMeasure[Any]]]:
    """Return the runs and the measures: what spells a measure is one, and before it stand runs."""
    measures: dict[str, SampleMeasure[Any]] = {}
    runs: list[Path] = []
    for name in names:
        try:
            measure = one.measure(name)
        except ValueError as error:
            path = Path(name)
            if not path.exists():
                raise CommandError(f"{name} is neither a file nor a measure: {error}") from error
            if measures:
                raise CommandError(f"runs stand before the measures, got {name} behind one") from error
            runs.append(path)
        else:
            measures[measure.name] = measure
    if not runs or not measures:
        missing = "a run file before the measures" if not runs else "a measure after the run files"
        raise CommandError(f"{one.key} needs {missing}, as in: my.run {' '.join(one.examples)}")
    return runs, list(measures.values())


def _read_runs(paths: Sequence[Path], sample: _Sample) -> dict[str, dict[str, list[str]]]:
    """Return by tag and topic the documents of the runs, best first."""
    runs: dict[str, dict[str, list[str]]] = {}
    topic_ids = {topic.topic_id for topic in sample.topics}
    for path in paths:
        try:
            columns = read_columns(path, str(path))
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror}") from error
        if columns.run_tag in runs:
            raise CommandError(f"{path}: a run named {columns.run_tag} was there before")
        ranking = ranking_of(columns)
        if not topic_ids & set(ranking):
            raise CommandError(f"{path}: the run returns nothing for the topics of {sample.path}")
        runs[columns.run_tag] = ranking
    return runs


def ranking_of(columns: RunColumns) -> dict[str, list[str]]:
    """Return by topic the documents of a run, best first."""
    documents, offsets = columns.doc_ids.to_list(), columns.offsets.tolist()
    return {
        topic: documents[start:stop]
        for topic, start, stop in zip(columns.topic_ids, offsets, offsets[1:], strict=False)
    }


# -- what is written ---------------------------------------------------------------------------------------------


def _table(
    sample: _Sample,
    runs: dict[str, dict[str, list[str]]],
    measures: Sequence[SampleMeasure[Any]],
    scores: Scores,
    options: SampleOptions,
) -> list[str]:
    """Return a line a run with a column a measure, and below what is to be known of each measure."""
    rows = [["run", *(measure.name for measure in measures)]]
    for place, tag in enumerate(runs):
        values = [_mean(one, place, options.places) for one in scores]
        rows.append([tag, *values])
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    n_documents = sum(len(topic.doc_ids) for topic in sample.topics)
    head = f"{sample.path.name}: {len(sample.topics)} topics, {n_documents} documents"
    if sample.n_left_out:
        head += f"; {sample.n_left_out} topics with method 0 alone are left out"
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    notes = [
        f"{measure.name}: {words}"
        for measure, one in zip(measures, scores, strict=True)
        for words in _notes(measure, one)
    ]
    return [head, "", *lines, "", *notes]


def _mean(one: RunScores | Refusal, place: int, places: int) -> str:
    if isinstance(one, Refusal) or isinstance(one.mean, Refusal):
        return "-"
    return f"{one.mean.value[place]:.{places}f}"


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


def _by_topic(sample: _Sample, runs: dict[str, dict[str, list[str]]], scores: Scores, places: int) -> str:
    """Return a line a topic, measure and run: topic, measure, run, value."""
    lines = ["\t".join(("topic", "measure", "run", "value"))]
    for one in scores:
        if isinstance(one, Refusal):
            continue
        for index, topic in enumerate(sample.topics):
            for place, tag in enumerate(runs):
                value = f"{one.by_topic[place, index]:.{places}f}"
                lines.append("\t".join((topic.topic_id, one.measure, tag, value)))
    return "\n".join(lines)


def _json(
    sample: _Sample,
    runs: dict[str, dict[str, list[str]]],
    measures: Sequence[SampleMeasure[Any]],
    scores: Scores,
    options: SampleOptions,
) -> dict[str, Any]:
    return {
        "file": sample.path.name,
        "n_topics": len(sample.topics),
        "n_documents": sum(len(topic.doc_ids) for topic in sample.topics),
        "n_topics_left_out": sample.n_left_out,
        "runs": list(runs),
        "measures": [
            {"measure": measure.name, **_json_scores(sample, one, list(runs), options.by_topic)}
            for measure, one in zip(measures, scores, strict=True)
        ],
    }


def _json_scores(
    sample: _Sample, one: RunScores | Refusal, tags: Sequence[str], by_topic: bool
) -> dict[str, Any]:
    if isinstance(one, Refusal):
        return {"refusal": one.reason, "needed": one.needed}
    empty = [topic.topic_id for topic, is_empty in zip(sample.topics, one.is_empty, strict=True) if is_empty]
    fields: dict[str, Any] = {"n_empty_topics": len(empty)}
    if isinstance(one.mean, Refusal):
        fields |= {"refusal": one.mean.reason, "needed": one.mean.needed}
    else:
        values = dict(zip(tags, one.mean.value.tolist(), strict=True))
        fields |= {"n_topics": one.mean.n_topics, "values": values}
    if by_topic:
        tables = {"value": one.by_topic, **{f"{name}_variance": v for name, v in one.variances.items()}}
        fields["empty_topics"] = empty
        fields["by_topic"] = {
            topic.topic_id: {
                tag: {name: float(table[place, index]) for name, table in tables.items()}
                for place, tag in enumerate(tags)
            }
            for index, topic in enumerate(sample.topics)
        }
    return fields
