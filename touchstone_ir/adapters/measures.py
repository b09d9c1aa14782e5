"""A corrected number as a measure of ir_measures, and so of PyTerrier's experiments."""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any

from touchstone_ir.adapters.parts import (
    LABELS_ALONE,
    FileParts,
    PartsOfRuns,
    ReleaseParts,
    measure_with_parts,
)
from touchstone_ir.columns import InputRefused
from touchstone_ir.numbers import judgments_of, runs_of
from touchstone_ir.readers import read_run
from touchstone_ir.samples import knowledge_of

RUN_COLUMNS = ["query_id", "doc_id", "score"]
MISSING = "ir_measure needs the package ir_measures, which is not installed: pip install ir_measures"


def ir_measure(
    measure: Any,
    *,
    labels: Any = None,
    gold: Any = None,
    draw: Any = None,
    release: Any = None,
    runs: Any = None,
    gold_chosen: str | None = None,
    gains: Mapping[int, float] | None = None,
    relevant: int = 1,
    name: str | None = None,
) -> Any:
    """Return a measure for ir_measures and PyTerrier whose values of topics are the parts of the corrected number.

    Their mean is what `touchstone_ir.estimate` (with a release `touchstone_ir.evaluate`) says of the run; the paired t
    of two runs, which ``pt.Experiment(..., baseline=0)`` computes, is about topics like these. A part may lie below 0
    or above the measure's range. The qrels given to the tool are read for their topics alone.

    Parameters
    ----------
    measure : str or object
        One, as ir_measures spells it: a sum over documents, or a ratio such as nDCG.
    labels, gold, draw, gold_chosen, gains, relevant
        As `touchstone_ir.estimate` takes them. They are read and checked now.
    release : path, optional
        Its zip or its folder, instead of labels and gold.
    runs : table, path, or list of paths, optional
        All runs of the comparison. Their ranks help to predict the gold, so that numbers are those of
        `touchstone_ir.compare`; by default each run is taken by itself.
    name : str, optional
        How results call it; tools take two measures of one name for the same.

    Raises
    ------
    InputRefused, ValueError
        What was given does not fit together; a measure that has no parts by topic. When it is used: qrels of other
        topics than the labels, a run without a number, or none of `runs`.
    """
    try:
        package = import_module("ir_measures")
    except ImportError as error:
        raise InputRefused(MISSING) from error
    found = measure_with_parts(measure)
    if release is not None:
        others = {"labels": labels, "gold": gold, "draw": draw, "runs": runs, "gains": gains}
        beside = [f"{word}=" for word, one in others.items() if one is not None]
        if beside:
            raise InputRefused(f"a release has judgments and gains of its own: leave out {', '.join(beside)}")
        return _measure(package, ReleaseParts.open(release, found), name)
    checked = judgments_of(gold)
    if checked is None:
        raise InputRefused(LABELS_ALONE)
    judgments = (judgments_of(labels), checked, judgments_of(draw, graded=False), gold_chosen)
    knowledge_of(*judgments)
    table = None if runs is None else runs_of(runs)
    return _measure(package, FileParts(found, judgments, gains, relevant, table), name)


class MeanWithinRange:
    """The aggregate of ir_measures: the mean of the topics' values, cut off at the measure's range as numbers are."""

    def __init__(self, measure: Any) -> None:
        self._measure = measure
        self._values: list[float] = []

    def add(self, value: float) -> None:
        """Take one more topic."""
        self._values.append(value)

    def result(self) -> float:
        """Return the number of the run; NaN without a topic."""
        if not self._values:
            return float("nan")
        mean = sum(self._values) / len(self._values)
        return min(max(mean, 0.0), float(self._measure.largest))


# The class has ir_measures' own as its base, so it is made once it is there.


def _measure(package: Any, parts: PartsOfRuns, name: str | None) -> Any:
    class CorrectedMeasure(package.measures.Measure):  # type: ignore[misc]
        NAME = __name__ = name or f"corrected {parts.name}"
        RUN_INPUTS = RUN_COLUMNS
        QREL_INPUTS = ["query_id"]
        PRETTY_NAME = f"{parts.name}, corrected by gold labels"
        largest = float("inf")

        def runtime_impl(self, qrels: Any, run: Any) -> Iterator[Any]:
            """Yield the value of every topic of the labels; the tool sorts by topic."""
            topics = {str(one): one for one in qrels["query_id"].unique()}
            table = read_run(run[RUN_COLUMNS], name=self.NAME)
            found = parts.of_run(table)
            _require_same_topics(topics, found.by_topic)
            self.largest = found.largest
            for topic, value in found.by_topic.items():
                yield package.Metric(topics[topic], self, value)

        def aggregator(self) -> MeanWithinRange:
            """Return what makes one number of the topics' values."""
            return MeanWithinRange(self)

        def __call__(self, **params: Any) -> Any:
            named = ", ".join(params)
            raise InputRefused(f"{self.NAME} has its {named} already: make another one with ir_measure")

    return CorrectedMeasure()


def _require_same_topics(asked: Mapping[str, Any], known: Mapping[str, float]) -> None:
    """Refuse qrels of other topics: the mean over them would be another number."""
    more, missing = sorted(set(asked) - set(known)), sorted(set(known) - set(asked))
    if more:
        raise InputRefused(
            f"qrels: topic {more[0]} is in the qrels and has no label ({len(more)} such topics): leave it out"
        )
    if missing:
        raise InputRefused(
            f"qrels: topic {missing[0]} has labels and is not in the qrels ({len(missing)} such topics): what is "
            "corrected is the mean over all of them. Leave it out of labels and gold, or do not evaluate in batches"
        )
