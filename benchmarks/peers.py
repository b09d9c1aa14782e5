"""Our corrected comparison of two runs beside truescore, ppi-python and GLIDE: coverage, width, verdicts; JSON.

    uv venv --python 3.12 peers
    uv pip install --python peers/bin/python truescore==0.7.4 ppi-python==0.2.3 glide-py==0.11.0
    python benchmarks/peers.py --peers peers/bin/python > peers.json      (--repetitions 600 --seed 1)

Each repetition takes 50 of the 2,000 topics that parts/coverage_collection.py makes, two of its 24 systems, and one
label of a judge for every document that either returns within 10, with errors by popularity. Every method then gets
about the same number of human labels, taken at random in the way that it asks for (parts/peer_samples.py), and gives a
95 % interval of the difference in P@10: ours by `touchstone_ir.compare` after `touchstone_ir.audit`, the peers' by
their own calls (parts/peer_intervals.py), which run in one process of the interpreter that --peers names. Without it,
and where a package is lacking, peers are named as not run.

There are two truths: of the 50 topics, and of all 2,000, for which the 50 stand. Our comparison has an interval for
either; a peer has one, held against both. `share_right` counts intervals on the true side of 0, `share_wrong` those on
the other. Seconds are of the call that makes the interval, from tables or arrays in memory.

There are two judges. To the first both systems are alike. The second favours one of them: of the documents that are not
relevant, that only this system returns, and that the first judge would know, it takes a part for relevant.

Control: `labels alone`, the interval over topics of the judge's labels as they are. By the judge that favours a system
its coverage has to fail.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import polars as pl
from parts.coverage_collection import CUTOFF, N_TOPICS
from parts.peer_samples import Population, Sample, World, peer_samples

import touchstone_ir as ts

THESE, LIKE_THESE = "these-topics", "topics-like-these"
SIZES = (60, 100, 300)
CONTROL = "labels alone"
OURS = {"Touchstone, uniform audit": "simple", "Touchstone, weighted audit": "influence"}
COVERS, COVERS_AT_MOST = 0.93, 0.98
FAILS = 0.80  # coverage of the control, at most
JUDGES = {"impartial": 0.0, "partial": 0.3}
CHILD = Path(__file__).resolve().parent / "parts" / "peer_intervals.py"

Bounds = tuple[float, float]


@dataclass(frozen=True)
class Answer:
    """What one method says with so many labels: an interval for either truth, None where it refuses."""

    method: str
    n: int
    bounds: dict[str, Bounds | None]
    truth: dict[str, float]
    n_labels: int
    seconds: float


# -- ours ---------------------------------------------------------------------------------------------------


def our_bounds(
    labels: pl.DataFrame, runs: pl.DataFrame, gold: pl.DataFrame | None
) -> dict[str, Bounds | None]:
    """Return the intervals of our comparison for both claims."""
    row = ts.compare(runs, f"P@{CUTOFF}", labels=labels, gold=gold, of="0", against="1").frame.row(
        0, named=True
    )
    found = {LIKE_THESE: (row["low"], row["high"]), THESE: (row["low_other"], row["high_other"])}
    return {claim: None if None in pair or math.isnan(pair[0]) else pair for claim, pair in found.items()}


class Repetition:
    """One world, with what each method says of it."""

    def __init__(self, world: World, rng: np.random.Generator) -> None:
        self.world, self.rng = world, rng
        self.runs = pl.concat([ts.read_run(world.run(number), name=str(number)) for number in (0, 1)])
        self.labels, self.truth = world.table(world.given), world.table(world.grade)
        self.truths = {THESE: world.truth, LIKE_THESE: world.true_of_all_topics}

    def audit(self, strategy: str, n: int) -> pl.DataFrame:
        seed = int(self.rng.integers(2**63))
        return ts.audit(self.runs, f"P@{CUTOFF}", labels=self.labels, n=n, seed=seed, strategy=strategy)

    def ours(self, method: str, n: int, audit: pl.DataFrame | None) -> Answer:
        gold = None if audit is None else audit.join(self.truth, on=["topic", "doc"])
        began = time.perf_counter()
        bounds = our_bounds(self.labels, self.runs, gold)
        seconds = time.perf_counter() - began
        if audit is None:  # the only interval that there is, for either truth
            bounds[THESE] = bounds[LIKE_THESE]
        return Answer(method, n, bounds, self.truths, 0 if audit is None else audit.height, seconds)

    def answers(self, sizes: Iterable[int], peers: "Peers | None") -> list[Answer]:
        found = [self.ours(CONTROL, 0, None)]
        for n in sizes:
            audits = {method: self.audit(strategy, n) for method, strategy in OURS.items()}
            found += [self.ours(method, n, audit) for method, audit in audits.items()]
            if peers is not None:
                samples = peer_samples(self.world, n, audits["Touchstone, weighted audit"], self.rng)
                found += [
                    peer_answer(method, n, told, self.truths) for method, told in peers.ask(samples).items()
                ]
        return found


# -- theirs -------------------------------------------------------------------------------------------------


@dataclass
class Peers:
    """The process in which the peers run."""

    process: "subprocess.Popen[str]"
    python: str = field(init=False)
    packages: dict[str, str | None] = field(init=False)

    def __post_init__(self) -> None:
        told = json.loads(self._line())
        self.python, self.packages = told["python"], told["packages"]

    @classmethod
    def start(cls, python: str) -> "Peers":
        """Start the interpreter, which looks for modules neither here nor where ours are."""
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        command = [python, "-P", str(CHILD)]
        return cls(
            subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
            )
        )

    def ask(self, samples: dict[str, Sample]) -> dict[str, dict[str, Any]]:
        """Return what every method says of its sample."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(samples) + "\n")
        self.process.stdin.flush()
        told: dict[str, dict[str, Any]] = json.loads(self._line())
        return told

    def end(self) -> None:
        self.process.communicate()

    def _line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the peers' process ended with {self.process.wait()}")
        return line


def peer_answer(method: str, n: int, told: dict[str, Any], truths: dict[str, float]) -> Answer:
    bounds = None if "refusal" in told or math.isnan(told["low"]) else (told["low"], told["high"])
    return Answer(method, n, dict.fromkeys(truths, bounds), truths, told["n_labels"], told["seconds"])


# -- what was found -----------------------------------------------------------------------------------------


def summary(answers: Sequence[Answer], claim: str) -> dict[str, Any]:
    """Return coverage, width and verdicts of one method at one size; of those that answered, refusals beside."""
    answered = [(one.bounds[claim], one.truth[claim]) for one in answers]
    low, high, truth = (
        np.array([(*bounds, truth) for bounds, truth in answered if bounds is not None]).reshape(-1, 3).T
    )
    n = truth.size
    found: dict[str, Any] = {
        "answered": int(n),
        "refused": len(answers) - int(n),
        "labels": round(float(np.mean([one.n_labels for one in answers])), 1),
        "seconds": round(float(np.mean([one.seconds for one in answers])), 5),
    }
    if not n:
        return found
    half = (high - low) / 2
    covered = float(np.mean((low <= truth + 1e-12) & (truth <= high + 1e-12)))
    side = np.where(low > 0, 1, np.where(high < 0, -1, 0))
    true_side = np.where(np.abs(truth) < 1e-12, 0, np.sign(truth))
    shares = {
        "share_right": (side != 0) & (side == true_side),
        "share_wrong": (side != 0) & (side != true_side),
        "share_undecided": side == 0,
    }
    return found | {
        "coverage": round(covered, 4),
        "coverage_se": round(math.sqrt(covered * (1 - covered) / n), 4),
        "half_width": round(float(half.mean()), 4),
        "half_width_median": round(float(np.median(half)), 4),
        "root_mean_square_error": round(float(np.sqrt(np.mean(((low + high) / 2 - truth) ** 2))), 4),
        **{name: round(float(counted.mean()), 4) for name, counted in shares.items()},
    }


def summaries(answers: Sequence[Answer]) -> dict[str, dict[str, dict[str, dict[str, Any]]]]:
    """Return the summaries by claim, method and size."""
    groups: dict[str, dict[int, list[Answer]]] = {}
    for one in answers:
        groups.setdefault(one.method, {}).setdefault(one.n, []).append(one)
    return {
        claim: {
            method: {str(n): summary(found, claim) for n, found in by_size.items()}
            for method, by_size in groups.items()
        }
        for claim in (THESE, LIKE_THESE)
    }


def goals(by_method: dict[str, dict[str, dict[str, Any]]], sizes: Iterable[int]) -> dict[str, Any]:
    """Return for our methods whether they cover, and which peers that cover are as narrow or narrower."""
    told: dict[str, Any] = {}
    for n in map(str, sizes):
        peers = {
            method: found[n]
            for method, found in by_method.items()
            if method not in OURS and method != CONTROL
        }
        valid = {key: one["half_width"] for key, one in peers.items() if one.get("coverage", 0) >= COVERS}
        for method in OURS:
            ours = by_method[method][n]
            covers = COVERS <= ours["coverage"] <= COVERS_AT_MOST
            narrower = {key: width for key, width in valid.items() if width <= ours["half_width"]}
            told[f"{method}, {n}"] = {
                "covers": covers,
                "peers_that_cover": len(valid),
                "narrower_peers": narrower,
                "holds": covers and not narrower,
            }
    return told


def control_goal(by_method: dict[str, dict[str, dict[str, Any]]]) -> dict[str, Any]:
    coverage = by_method[CONTROL]["0"]["coverage"]
    return {"coverage": coverage, "holds": coverage <= FAILS}


def of_judge(
    population: Population, favour: float, options: argparse.Namespace, peers: Peers | None
) -> dict[str, Any]:
    """Return what all methods say by the labels of one judge; topics, systems and chances are the same for both."""
    answers: list[Answer] = []
    for number in range(options.repetitions):
        rng = np.random.default_rng([options.seed, number])
        world = population.world(N_TOPICS, favour, rng)
        answers += Repetition(world, rng).answers(options.sizes, peers)
        if (number + 1) % 50 == 0:
            print(f"favour {favour}: {number + 1} repetitions", file=sys.stderr, flush=True)
    found = summaries(answers)
    told: dict[str, Any] = {"goals": {claim: goals(found[claim], options.sizes) for claim in found}}
    if favour:
        told["control"] = {claim: control_goal(found[claim]) for claim in found}
    return told | found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--peers", metavar="PYTHON", help="interpreter that has the peers")
    parser.add_argument("--repetitions", type=int, default=600, help="of each judge")
    parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES), help="human labels")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    peers = None if options.peers is None else Peers.start(options.peers)
    began = time.monotonic()
    population = Population.make(options.seed)
    told: dict[str, Any] = {
        "benchmark": "peers",
        "repetitions": options.repetitions,
        "seed": options.seed,
        "peers": peers_there(peers),
        "judges": {name: of_judge(population, favour, options, peers) for name, favour in JUDGES.items()},
        "seconds": round(time.monotonic() - began),
    }
    if peers is not None:
        peers.end()
    print(json.dumps(told, indent=2))


def peers_there(peers: Peers | None) -> Any:
    """Return the versions of the peers, or that they are not run."""
    if peers is None:
        return "not run: --peers names no interpreter"
    versions = {name: found or "not run: not installed" for name, found in peers.packages.items()}
    return {"python": peers.python} | versions


if __name__ == "__main__":
    main()
