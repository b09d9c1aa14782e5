"""A folder of runs with qrels, as the experiments on few judgments take it: pools of the first ranks, ranks, relevance.

Runs are ranked as at import: by score, equal scores by document id, both descending. Files of a track are no imports:
of a document that a run returns twice the first line counts, and the run is named after its file.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from judging.runs import LAYOUT, WIDTH, read_run
from judging.trec import read_fields, read_qrels
from sampling.arrays import FloatArray
from sampling.experts import RankedPool
from sampling.rejudging import SampledTopic, sampled_average_precision

DEPTH = 100


@dataclass(frozen=True)
class FolderTopic:
    """One topic: its pool, the ranks of the whole runs, and the judgments.

    `pool` has the runs' first ranks alone, `ranks` those of the whole runs, both over the documents of `doc_ids`,
    ascending. `relevant_ranks` [run, document] are of all relevant documents of the qrels, in the pool or not.
    """

    topic_id: str
    doc_ids: tuple[str, ...]
    pool: RankedPool
    ranks: FloatArray
    is_relevant: NDArray[np.bool_]
    relevant_ranks: FloatArray

    def average_precision(self) -> FloatArray:
        """Return AP of the whole runs by the qrels."""
        return average_precision(self.relevant_ranks)


@dataclass(frozen=True)
class RunFolder:
    """A collection: its runs by name, and the topics of its qrels that have a pool."""

    runs: tuple[str, ...]
    topics: tuple[FolderTopic, ...]


def average_precision(relevant_ranks: FloatArray) -> FloatArray:
    """Return AP of every run from the ranks [run, document] of the relevant documents; 0 where there are none."""
    ones = np.ones(relevant_ranks.shape[1])
    if not ones.size:
        return np.zeros(len(relevant_ranks))
    return sampled_average_precision(SampledTopic.of(relevant_ranks, ones, ones))


def read_folder(folder: Path, qrels: str, depth: int = DEPTH) -> RunFolder:
    """Return the collection of `folder`/runs and the qrels of that name. ValueError without runs, qrels or a pool."""
    paths = sorted(path for path in (folder / "runs").glob("*") if path.is_file())
    if not paths:
        raise ValueError(f"no run in {folder / 'runs'}")
    names = [path.name.removesuffix(".gz") for path in paths]
    places = [read_places(path, name) for path, name in zip(paths, names, strict=True)]
    relevant: dict[str, list[str]] = {}
    for record in read_qrels(folder / qrels, qrels):
        chosen = relevant.setdefault(record.topic_id, [])
        if record.grade > 0:
            chosen.append(record.doc_id)
    topics = [_topic(topic, relevant[topic], places, depth) for topic in sorted(relevant)]
    pooled = tuple(topic for topic in topics if topic is not None)
    if not pooled:
        raise ValueError(f"no run returns a topic of {qrels}")
    return RunFolder(tuple(names), pooled)


Places = dict[str, dict[str, int]]  # by topic and document the rank


def read_places(path: Path, name: str) -> Places:
    """Return by topic and document the rank, as at import; of a document that stands twice the first line counts."""
    lines: dict[tuple[str, str], str] = {}
    for fields in read_fields(path, path.name, WIDTH, LAYOUT):
        topic, _, document, rank, score, _ = fields.values
        lines.setdefault((topic, document), f"{topic} Q0 {document} {rank} {score} run")
    if not lines:
        raise ValueError(f"no lines in {path.name}")
    frame = read_run(io.BytesIO("\n".join(lines.values()).encode()), name)
    places: Places = {}
    for topic, document, rank in frame.select("topic_id", "doc_id", "rank").iter_rows():
        places.setdefault(topic, {})[document] = rank
    return places


def _topic(topic: str, relevant: Sequence[str], places: Sequence[Places], depth: int) -> FolderTopic | None:
    own = [of_run.get(topic, {}) for of_run in places]
    documents = sorted({document for ranks in own for document, rank in ranks.items() if rank <= depth})
    if not documents:
        return None
    ranks = _ranks(own, documents)
    chosen = set(relevant)
    return FolderTopic(
        topic,
        tuple(documents),
        RankedPool.of(np.where(ranks <= depth, ranks, np.inf)),
        ranks,
        np.array([document in chosen for document in documents]),
        _ranks(own, relevant),
    )


def _ranks(own: Sequence[dict[str, int]], documents: Sequence[str]) -> FloatArray:
    table = [[float(ranks.get(document, np.inf)) for document in documents] for ranks in own]
    return np.array(table).reshape(len(own), len(documents))
