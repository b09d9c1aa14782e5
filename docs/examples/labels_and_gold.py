"""Labels of a fallible judge, 200 of them checked, and the corrected difference of two runs.

    python docs/examples/labels_and_gold.py docs/examples/data /tmp/example

The judge is simulated, by a rule that gives everybody the same labels: a relevant document keeps its grade with
probability .80 and is missed otherwise; one that is not relevant gets grade 1 with probability .16 where both runs
return it, else with .06. So it errs more often on what is popular, as real judges do. The checks are the topics'
author's grades. `llm.qrels` and `checked.prels` of docs/examples/data were written by this program.
"""

import argparse
import hashlib
from pathlib import Path

import polars as pl

import touchstone_ir as ts

RUNS, MEASURE = ("bm25.run", "tf-idf.run"), "P@10"
SEED, N_CHECKED = 7, 200


def random_number(purpose: str, topic: str, doc: str) -> float:
    """Return a number within [0, 1) that belongs to the pair for ever."""
    digest = hashlib.sha256(f"{purpose} {topic} {doc}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def label(topic: str, doc: str, grade: int, n_runs: int) -> int:
    """Return what the simulated judge says of a pair that `n_runs` return."""
    number = random_number("judge", topic, doc)
    if grade:
        return grade if number >= 0.20 else 0
    return int(number < (0.16 if n_runs > 1 else 0.06))


def main(data: Path, out: Path) -> None:
    """Write the labels and the checks of some of them, and print what they say of the runs."""
    out.mkdir(parents=True, exist_ok=True)
    runs = ts.read_run(*(data / name for name in RUNS))
    truth = ts.read_qrels(data / "grades.qrels")

    # A judge labels every pair that a run returns within its first ten ranks.
    popular = runs.filter(pl.col("rank") <= 10).group_by("topic", "doc").len("n_runs")
    pairs = truth.join(popular, on=["topic", "doc"], how="left", maintain_order="left")
    said = [label(*row) for row in pairs.with_columns(pl.col("n_runs").fill_null(0)).iter_rows()]
    labels = truth.with_columns(grade=pl.Series(said))
    lines = [f"{topic} 0 {doc} {grade}\n" for topic, doc, grade in labels.iter_rows()]
    (out / "llm.qrels").write_text("".join(lines), encoding="utf-8")

    # Which labels to check: about 200, chosen by how much an error in each would move the answer.
    audit = ts.audit(runs, MEASURE, labels=labels, n=N_CHECKED, seed=SEED)
    gold = audit.join(truth, on=["topic", "doc"], how="left", maintain_order="left")
    columns = gold.select("topic", "doc", "grade", "probability").iter_rows()
    lines = [f"{topic} {doc} {grade} 1 {probability}\n" for topic, doc, grade, probability in columns]
    (out / "checked.prels").write_text("".join(lines), encoding="utf-8")

    for words, known in (
        ("the author's grades of all pairs", {"labels": truth}),
        ("labels alone", {"labels": labels}),
        (f"labels and {gold.height} checks", {"labels": labels, "gold": gold}),
    ):
        row = ts.compare(runs, MEASURE, of="bm25", **known).frame.row(0, named=True)
        print(f"{words}: {row['value']:+.3f} ({row['low']:+.3f} to {row['high']:+.3f}), {row['verdict']}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path, help="folder with the runs and the grades: docs/examples/data")
    parser.add_argument("out", type=Path, help="folder for llm.qrels and checked.prels")
    options = parser.parse_args()
    main(options.data, options.out)
