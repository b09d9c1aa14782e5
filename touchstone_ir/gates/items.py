"""The items of a gate: from two runs and a judge's labels, and as the file in which the gate keeps them.

The file holds whole numbers and ids alone, so it says the same on every machine. With it a gate that was copied
elsewhere without its runs asks for the same pairs.
"""

import csv
import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from analytics.estimation.estimate import Floats
from analytics.estimation.sequences import FEWEST_WATCHED
from sampling.draws import permanent_random_numbers
from sampling.measures.families import Measure, run_weights
from sampling.measures.kinds import Linear
from sampling.prediction import folds
from touchstone_ir.gates.difference import GateItems
from touchstone_ir.gates.refusal import GateRefused

PURPOSE = "gate"  # of the permanent random numbers: independent of a draw and an audit with the same seed
HEADER = ("topic", "doc", "rank_a", "rank_b", "label")
KEY = ("topic", "doc")
Pair = tuple[str, str]


@dataclass(frozen=True)
class ItemTable:
    """What items.csv holds: pairs that the runs weigh differently, ascending, with both ranks and the judge's grade."""

    pairs: tuple[Pair, ...]
    ranks: tuple[tuple[int, int], ...]
    labels: tuple[int, ...]

    def content(self) -> bytes:
        """Return the bytes of the file."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(HEADER)
        rows = zip(self.pairs, self.ranks, self.labels, strict=True)
        writer.writerows((*pair, *ranks, label) for pair, ranks, label in rows)
        return text.getvalue().encode()

    def sha256(self) -> str:
        """Return the SHA-256 of the file."""
        return hashlib.sha256(self.content()).hexdigest()

    @classmethod
    def of_content(cls, content: bytes) -> "ItemTable":
        """Return the table of a file that `content` wrote: its hash is checked by whoever reads it."""
        rows = list(csv.reader(io.StringIO(content.decode(), newline="")))[1:]
        return cls(
            tuple((row[0], row[1]) for row in rows),
            tuple((int(row[2]), int(row[3])) for row in rows),
            tuple(int(row[4]) for row in rows),
        )

    def items(self, measure: Measure[Linear], n_topics: int, seed: int) -> GateItems:
        """Return the items as arrays."""
        topics, docs = self._ids()
        place = {topic: index for index, topic in enumerate(dict.fromkeys(topics))}
        ranks = np.array(self.ranks, dtype=np.int64).T
        return GateItems(
            measure=measure,
            n_topics=n_topics,
            topic_index=np.array([place[topic] for topic in topics], dtype=np.int64),
            ranks=ranks,
            weights=run_weights(measure, ranks, n_topics),
            label=np.array(self.labels, dtype=np.int64),
            fold=folds(topics, docs, seed),
        )

    def numbers(self, seed: int) -> Floats:
        """Return the permanent random number of every item."""
        return permanent_random_numbers(*self._ids(), seed, PURPOSE)

    def _ids(self) -> tuple[Sequence[str], Sequence[str]]:
        return [topic for topic, _ in self.pairs], [doc for _, doc in self.pairs]


def differing_items(
    runs: tuple[pl.DataFrame, pl.DataFrame],
    grades: Mapping[Pair, int],
    measure: Measure[Linear],
    labels: Path,
) -> tuple[ItemTable, int]:
    """Return the items of two runs with their labels, and the number of topics: those of either run.

    Parameters
    ----------
    runs : two frames with columns topic, doc, rank
        A, then B.
    grades : mapping
        The judge's grade by topic and document; every item needs one that is not negative.
    labels : Path
        Of the file that they are from, for messages.

    Raises
    ------
    GateRefused
        No common topic, fewer than 20 items, an item without a label, a label below 0.
    """
    topics_a, topics_b = (set(run["topic"].to_list()) for run in runs)
    if not topics_a & topics_b:
        raise GateRefused(
            f"the runs have no topic in common: A has {example(topics_a)}, B has {example(topics_b)}"
        )
    n_topics = len(topics_a | topics_b)
    near = [run.filter(pl.col("rank") <= measure.last_rank).select(KEY) for run in runs]
    pairs = pl.concat(near).unique()
    for name, run in zip("ab", runs, strict=True):
        pairs = pairs.join(run.select(*KEY, pl.col("rank").alias(f"rank_{name}")), on=KEY, how="left")
    table = pairs.fill_null(0).sort(KEY)
    ranks = table.select("rank_a", "rank_b").to_numpy().astype(np.int64)
    weights = run_weights(measure, ranks, n_topics)
    table = table.filter(pl.Series(weights[:, 0] != weights[:, 1]))
    rows = table.rows()
    if len(rows) < FEWEST_WATCHED:
        raise GateRefused(
            f"the runs differ in {len(rows)} pairs of topic and document in {measure.name}; a gate needs at least "
            f"{FEWEST_WATCHED}: judge all of them"
        )
    chosen = tuple((topic, doc) for topic, doc, _, _ in rows)
    return ItemTable(
        chosen, tuple((a, b) for _, _, a, b in rows), _labels_of(chosen, grades, measure, labels)
    ), n_topics


def _labels_of(
    pairs: Sequence[Pair], grades: Mapping[Pair, int], measure: Measure[Linear], labels: Path
) -> tuple[int, ...]:
    missing = [pair for pair in pairs if pair not in grades]
    if missing:
        topic, doc = missing[0]
        more = f" and of {len(missing) - 1} more pairs" if missing[1:] else ""
        raise GateRefused(
            f"{labels}: no label of document {doc!r} of topic {topic!r}{more}, "
            f"which the runs weigh differently in {measure.name}"
        )
    for topic, doc in pairs:
        if grades[topic, doc] < 0:
            raise GateRefused(
                f"{labels}: the label of document {doc!r} of topic {topic!r} is {grades[topic, doc]}; "
                "labels are grades from 0"
            )
    return tuple(grades[pair] for pair in pairs)


def example(values: set[str]) -> str:
    """Return how many there are, and the first.

    >>> example({"2", "1"})
    "2 ('1', ...)"
    """
    return f"{len(values)} ({min(values)!r}, ...)" if values else "none"
