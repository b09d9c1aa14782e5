"""The pairs of a gate: from two runs and a judge's labels, and as the file in which the gate keeps them.

The file holds whole numbers and ids alone, so it says the same on every machine. With it a gate that was copied
elsewhere without its runs asks for the same pairs.
"""

import csv
import hashlib
import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from analytics.estimation.estimate import Estimate, Floats, Ints, Refusal
from analytics.estimation.sequences import FEWEST_WATCHED
from analytics.planning.gating import GateBatch
from sampling.draws import permanent_random_numbers
from sampling.measures.families import Measure, run_weights
from sampling.measures.kinds import Linear
from touchstone_ir.columns import InputRefused
from touchstone_ir.gate_difference import corrected_difference, labelled_arrays
from touchstone_ir.samples import FileArrays

PURPOSE = "gate"  # of the permanent random numbers: independent of a draw and an audit with the same seed
SCHEMA = {"topic": pl.String, "doc": pl.String, "rank_a": pl.Int64, "rank_b": pl.Int64, "label": pl.Int64}
KEY = ("topic", "doc")
ANY_CHANCE = 0.5
Pair = tuple[str, str]


@dataclass(frozen=True, eq=False)
class GatePairs:
    """Every labelled pair, by topic and document: both ranks, 0 beyond the cutoff, and the judge's grade.

    The items of the gate are the pairs that the runs weigh differently; the others say how the judge grades.
    """

    table: pl.DataFrame
    measure: Measure[Linear]

    @cached_property
    def n_topics(self) -> int:
        """Return the number of topics: those with a label, as `compare` has it."""
        return self.table["topic"].n_unique()

    @cached_property
    def _differences(self) -> Floats:
        ranks = self.table.select("rank_a", "rank_b").to_numpy()
        of_a, of_b = run_weights(self.measure, ranks.T, self.n_topics)
        return np.asarray(of_b - of_a)

    @cached_property
    def _place(self) -> Ints:
        return np.flatnonzero(self._differences)

    @cached_property
    def _arrays(self) -> FileArrays:
        return labelled_arrays(self.table, self.measure)

    @property
    def weight(self) -> Floats:
        """Return w_b - w_a of every item."""
        return np.asarray(self._differences[self._place])

    @cached_property
    def items(self) -> list[Pair]:
        """Return topic and document of every item."""
        chosen = self.table[self._place]
        return list(zip(chosen["topic"].to_list(), chosen["doc"].to_list(), strict=True))

    def numbers(self, seed: int) -> Floats:
        """Return the permanent random number of every item."""
        chosen = self.table[self._place]
        return permanent_random_numbers(chosen["topic"], chosen["doc"], seed, PURPOSE)

    def difference(self, batch: GateBatch, gold: Sequence[int]) -> Estimate | Refusal:
        """Return B less A, corrected by the gold of all items that were asked for up to a batch, in their order."""
        is_asked, grade = np.zeros(self.table.height, dtype=bool), np.zeros(self.table.height, dtype=np.int64)
        is_asked[self._place[batch.asked]] = True
        grade[self._place[batch.asked]] = gold
        # What has no weight is never asked for. Its chance changes no number, but must not be 0: then nothing would
        # stand for it.
        probability = np.full(self.table.height, ANY_CHANCE)
        probability[self._place] = batch.probability
        return corrected_difference(
            self._arrays, self.measure, is_asked=is_asked, gold=grade, probability=probability
        )

    # -- the file -------------------------------------------------------------------------------------------

    @cached_property
    def content(self) -> bytes:
        """Return the bytes of the file."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(SCHEMA)
        writer.writerows(self.table.iter_rows())
        return text.getvalue().encode()

    def sha256(self) -> str:
        """Return the SHA-256 of the file."""
        return hashlib.sha256(self.content).hexdigest()

    @classmethod
    def of_content(cls, content: bytes, measure: Measure[Linear]) -> "GatePairs":
        """Return the pairs of a file that `content` is: its hash is checked by whoever reads it."""
        rows = list(csv.reader(io.StringIO(content.decode(), newline="")))[1:]
        columns: list[list[Any]] = [list(column) for column in zip(*rows, strict=True)]
        columns[2:] = [[int(number) for number in column] for column in columns[2:]]
        return cls(pl.DataFrame(dict(zip(SCHEMA, columns, strict=True)), schema=SCHEMA), measure)


def gate_pairs(
    run_a: pl.DataFrame, run_b: pl.DataFrame, labels: pl.DataFrame, measure: Measure[Linear], source: Path
) -> GatePairs:
    """Return the labelled pairs of two runs.

    Parameters
    ----------
    run_a, run_b : tables with columns topic, doc, rank
    labels : table with columns topic, doc, grade
        One grade of every pair that the runs weigh differently, at least; topics without any label are left out.
    source : Path
        Of the file that the labels are from, for messages.

    Raises
    ------
    InputRefused
        No common topic, a pair with two labels or with none, fewer than 20 items.
    """
    topics = [set(one["topic"].to_list()) for one in (run_a, run_b, labels)]
    if not set.intersection(*topics):
        names = ", ".join(
            f"{name} {example(found)}" for name, found in zip(("A", "B", "the labels"), topics, strict=True)
        )
        raise InputRefused(f"no topic is common to the runs and the labels; their topics: {names}")
    given = labels.filter(pl.col("grade").is_not_null()).select(*KEY, pl.col("grade").alias("label"))
    twice = given.filter(given.select(KEY).is_duplicated())
    if twice.height:
        raise InputRefused(
            f"{source}: {words_of(twice.row(0)[:2])} has several labels: aggregate them first, to one"
        )
    pairs = given.select(KEY)
    for name, run in (("a", run_a), ("b", run_b)):
        near = run.filter((pl.col("rank") <= measure.last_rank) & pl.col("topic").is_in(topics[2]))
        ranks = near.select(*KEY, pl.col("rank").cast(pl.Int64).alias(f"rank_{name}"))
        pairs = pairs.join(ranks, on=KEY, how="full", coalesce=True)
    table = (
        pairs.with_columns(pl.col("rank_a", "rank_b").fill_null(0)).join(given, on=KEY, how="left").sort(KEY)
    )
    found = GatePairs(table, measure)
    unlabelled = [
        found.items[place] for place in np.flatnonzero(table["label"].is_null().to_numpy()[found._place])
    ]
    if unlabelled:
        more = f" and of {len(unlabelled) - 1} more pairs" if unlabelled[1:] else ""
        raise InputRefused(
            f"{source}: no label of {words_of(unlabelled[0])}{more}, which the runs weigh differently in {measure.name}"
        )
    if len(found.items) < FEWEST_WATCHED:
        raise InputRefused(
            f"the runs differ in {len(found.items)} pairs of topic and document in {measure.name}; a gate needs at "
            f"least {FEWEST_WATCHED}: judge all of them"
        )
    return GatePairs(table.filter(pl.col("label").is_not_null()), measure)


def words_of(pair: Pair) -> str:
    """Return how messages name a pair.

    >>> words_of(("3", "d7"))
    'document d7 of topic 3'
    """
    return f"document {pair[1]} of topic {pair[0]}"


def example(values: set[str]) -> str:
    """Return how many there are, and the first.

    >>> example({"2", "1"})
    "2 ('1', ...)"
    """
    return f"{len(values)} ({min(values)!r}, ...)" if values else "none"
