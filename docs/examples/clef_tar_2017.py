"""Two runs of CLEF TAR 2017 in P@20: what 200 checks of a judge's labels tell, beside the truth.

    python docs/examples/clef_tar_2017.py FOLDER

FOLDER holds `test.abs.qrels.gz` and `runs/` as in https://github.com/CLEF-TAR/tar (2017-TAR/testing/qrels and
2017-TAR/participant-runs, packed with gzip). There every document is judged, so that the truth is known. The judge is
simulated: it misses a fifth of the relevant documents and takes others for relevant with probability .16 where both
runs return them, else with .06. An audit is made a hundred times, each with another seed.
"""

import argparse
import hashlib
from pathlib import Path

import polars as pl

import touchstone_ir as ts

RUNS = {"QUT": "QUT__result_bool_es_test.txt.gz", "Waterloo": "Waterloo__A-rank-normal.txt.gz"}
MEASURE, DEPTH, N_CHECKED = "P@20", 20, 200


def random_number(purpose: str, topic: str, doc: str) -> float:
    """Return a number within [0, 1) that belongs to the pair for ever."""
    digest = hashlib.sha256(f"{purpose} {topic} {doc}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def label(topic: str, doc: str, grade: int, n_runs: int) -> int:
    """Return what the simulated judge says of a pair that `n_runs` return."""
    number = random_number("judge", topic, doc)
    return int(number >= 0.20) if grade else int(number < (0.16 if n_runs > 1 else 0.06))


def difference(runs: pl.DataFrame, claim: str, **known: pl.DataFrame) -> dict[str, float]:
    """Return the row of QUT minus Waterloo."""
    found = ts.compare(runs, MEASURE, of="QUT", claim=claim, **known)
    return found.frame.row(0, named=True)


def main(folder: Path, n_audits: int) -> None:
    """Print the true difference, that of the labels, and those of the audits."""
    runs = pl.concat([ts.read_run(folder / "runs" / file, name=name) for name, file in RUNS.items()])
    runs = runs.filter(pl.col("rank") <= DEPTH)
    pairs = runs.group_by("topic", "doc").len("n_runs").sort("topic", "doc")
    judged = ts.read_qrels(folder / "test.abs.qrels.gz")
    pairs = pairs.join(judged, on=["topic", "doc"], how="inner", maintain_order="left")
    truth = pairs.select("topic", "doc", "grade")
    said = [label(*row) for row in pairs.select("topic", "doc", "grade", "n_runs").iter_rows()]
    labels = truth.with_columns(grade=pl.Series(said))
    print(f"{truth.height:,} pairs, {truth['topic'].n_unique()} topics, {MEASURE} of QUT minus Waterloo")

    like, these = "topics-like-these", "these-topics"
    true = difference(runs, like, labels=truth)["value"]
    print(f"truth            {true:+.4f}")
    print(f"labels alone     {difference(runs, like, labels=labels)['value']:+.4f}")
    found, n_checked = [], 0
    for seed in range(1, n_audits + 1):
        audit = ts.audit(runs, MEASURE, labels=labels, n=N_CHECKED, seed=seed)
        gold = audit.join(truth, on=["topic", "doc"])
        found.append(difference(runs, these, labels=labels, gold=gold))
        n_checked += gold.height
    one = found[0]
    print(f"one audit        {one['value']:+.4f} ({one['low']:+.4f} to {one['high']:+.4f} for these topics)")
    mean = sum(row["value"] for row in found) / n_audits
    covered = sum(row["low"] <= true <= row["high"] for row in found)
    width = sum(row["high"] - row["low"] for row in found) / n_audits / 2
    print(f"{n_audits} audits       {mean:+.4f} on average, of {n_checked / n_audits:.0f} checks each")
    print(f"                 {covered} of {n_audits} intervals hold the truth; half-width {width:.4f}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="folder with test.abs.qrels.gz and runs/")
    parser.add_argument("--audits", type=int, default=100, help="how many (100)")
    options = parser.parse_args()
    main(options.folder, options.audits)
