"""Two runs over some topics with labels that err and gold with probabilities, as tables; and as other tools' tables."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

import touchstone_ir as ts

N_TOPICS, N_DOCS = 24, 30
GOLD, DRAWN = 0.4, 0.7  # chances of being checked, and of being drawn
PAGE = Path(__file__).parents[1] / "docs" / "pyterrier.md"


@dataclass(frozen=True, eq=False)
class World:
    """Runs a and b return all documents of every topic, a the better one; labels are of all pairs."""

    topics: tuple[str, ...]
    runs: pl.DataFrame
    labels: pl.DataFrame
    gold: pl.DataFrame
    draw: pl.DataFrame

    def run(self, name: str) -> pl.DataFrame:
        return self.runs.filter(pl.col("run") == name)

    def grouped(self) -> Iterable[Any]:
        return self.labels.group_by(["topic"], maintain_order=True)


def make_world() -> World:
    rng = np.random.default_rng(11)
    pairs = [(f"t{topic}", f"t{topic}-{doc}") for topic in range(N_TOPICS) for doc in range(N_DOCS)]
    truth = np.where(rng.random(len(pairs)) < 0.3, rng.integers(1, 3, len(pairs)), 0)
    given = np.where(rng.random(len(pairs)) < 0.2, rng.integers(0, 3, len(pairs)), truth)
    frame = pl.DataFrame(pairs, schema=["topic", "doc"], orient="row")
    runs = [
        ts.read_run(frame.with_columns(score=truth + noise * rng.normal(size=len(pairs))), name=name)
        for name, noise in (("a", 1.0), ("b", 1.6))
    ]
    gold = frame.with_columns(grade=truth, probability=pl.lit(GOLD))
    return World(
        topics=tuple(dict.fromkeys(topic for topic, _ in pairs)),
        runs=pl.concat(runs),
        labels=frame.with_columns(grade=given),
        gold=gold.filter(rng.random(len(pairs)) < GOLD),
        draw=frame.with_columns(probability=pl.lit(DRAWN)).filter(rng.random(len(pairs)) < DRAWN),
    )


def as_pandas(table: pl.DataFrame, **names: str) -> pd.DataFrame:
    """Return some columns as pandas has them, by other names."""
    return pd.DataFrame({other: table[name].to_list() for name, other in names.items()})


def write_files(world: World, folder: Path) -> None:
    """Write the files that docs/pyterrier.md names."""
    labels, gold, run = (
        table.select("topic", "doc", number).iter_rows()
        for table, number in ((world.labels, "grade"), (world.gold, "grade"), (world.run("a"), "score"))
    )
    for name, lines in (
        ("llm.qrels", [f"{topic} 0 {doc} {grade}" for topic, doc, grade in labels]),
        ("checked.prels", [f"{topic} {doc} {grade} 1 {GOLD}" for topic, doc, grade in gold]),
        ("bm25.run", [f"{topic} Q0 {doc} 0 {score} bm25" for topic, doc, score in run]),
    ):
        (folder / name).write_text("".join(f"{line}\n" for line in lines))


def example_of_page(word: str) -> str:
    """Return the code of docs/pyterrier.md that has the word in it."""
    blocks, lines = [], []
    for line in [*PAGE.read_text().splitlines(), "."]:
        if line.startswith("    "):
            lines.append(line.removeprefix("    "))
        elif line.strip() and lines:
            blocks.append("\n".join(lines))
            lines = []
        elif lines:
            lines.append("")
    (found,) = (block for block in blocks if word in block)
    return found
