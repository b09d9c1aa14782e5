"""The paper's TREC rows of Tables 2 to 4: three systems of the TREC-8 ad hoc track that it names, in DCG@100.

The runs and qrels are not part of this repository: NIST gives them to those who ask. A folder has `input.<system>` for
each system, and the qrels in one or more files whose names begin with `qrels`; any of them may be gzipped. Runs are
ordered as at import, by score and then by document, and cut at rank 100; what has no judgment is not relevant.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from analytics.estimation.estimate import Estimate
from analytics.estimation.importance import importance_sampling
from experiments.papers.designs import single_design
from experiments.papers.draws import draw_with_replacement
from experiments.papers.forecasts import design_variance
from experiments.parts import paper
from experiments.parts.minimal_pairs import read_lists
from experiments.parts.rows import Row, row
from judging.trec import read_qrels
from sampling.arrays import IndexArray
from sampling.measures.families import FloatArray, run_weights
from sampling.measures.registry import parse_linear

DEPTH, DRAWS_PER_TOPIC = 100, 5
DCG = parse_linear(f"DCG(dcg='ln')@{DEPTH}")
NO_DEMAND = "not demanded"
_TOLERANCE = 0.0006  # of figures that are known to three decimals


@dataclass(frozen=True)
class TrecSystem:
    """What a system returns, pair by pair; `rank` begins at 1, `utility` is 0 or 1.

    `weights` are w = lambda(rank)/topics, so that U is their sum with the utilities; `n_topics` are those of the qrels.
    """

    topic: IndexArray  # [pair], from 0
    rank: IndexArray
    weights: FloatArray
    utility: FloatArray
    n_topics: int

    @property
    def n_draws(self) -> int:
        return DRAWS_PER_TOPIC * self.n_topics

    @property
    def true_score(self) -> float:
        return float(self.weights @ self.utility)

    @property
    def topic_scores(self) -> FloatArray:
        """Return DCG@100 of every topic."""
        gain = self.weights * self.utility * self.n_topics
        return np.asarray(np.bincount(self.topic, gain, self.n_topics), dtype=np.float64)

    def designs(self) -> dict[str, FloatArray]:
        """Return Table 3's designs: with the paper's prior 16/(rank + 34), with a prior of 1, and uniform."""
        ones = np.ones(self.rank.size)
        return {
            "Q*": single_design(self.weights, 16.0 / (self.rank + 34.0)),
            "Q^P": single_design(self.weights, ones),
            "Q^unif": ones / ones.size,
        }

    def sd(self, design: FloatArray) -> float:
        """Return the exact sd of U^ from 5 draws a topic."""
        return float(np.sqrt(design_variance(design, self.utility, self.weights) / self.n_draws))


# -- the folder -----------------------------------------------------------------------------------------------


def read_systems(folder: Path) -> dict[str, TrecSystem]:
    """Return the three systems by name.

    Raises
    ------
    ValueError
        A run or the qrels are not there: by name. A file that is none, by line.
    """
    relevant: dict[str, set[str]] = {}
    for path in _qrels_of(folder):
        for record in read_qrels(path, path.name):
            chosen = relevant.setdefault(record.topic_id, set())
            if record.grade > 0:
                chosen.add(record.doc_id)
    return {name: _system(_run_of(folder, name), relevant) for name in paper.TREC_SYSTEMS}


def _qrels_of(folder: Path) -> list[Path]:
    found = sorted(path for path in folder.glob("qrels*") if path.is_file())
    if not found:
        raise ValueError(f"there is no file qrels* in {folder}")
    return found


def _run_of(folder: Path, name: str) -> Path:
    for path in (folder / f"input.{name}", folder / f"input.{name}.gz"):
        if path.is_file():
            return path
    raise ValueError(f"there is no input.{name} or input.{name}.gz in {folder}")


def _system(path: Path, relevant: Mapping[str, set[str]]) -> TrecSystem:
    lists = read_lists(path, DEPTH)
    pairs = [
        (topic, rank, document in relevant[topic_id])
        for topic, topic_id in enumerate(sorted(relevant))
        for rank, document in enumerate(lists.get(topic_id, ()), start=1)
    ]
    if not pairs:
        raise ValueError(f"{path.name} returns no topic of the qrels")
    topic, rank, utility = np.array(pairs, dtype=np.int64).T
    weights = run_weights(DCG, rank[None], len(relevant))[0]
    return TrecSystem(topic, rank, weights, utility.astype(np.float64), len(relevant))


# -- the rows -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Trials:
    values: FloatArray
    half_widths: FloatArray
    held: FloatArray


def _trials(system: TrecSystem, trials: int, rng: np.random.Generator) -> _Trials:
    """Return repeated samples of 5 draws a topic from Q*, with the interval of Eq 6."""
    q, truth = system.designs()["Q*"], system.true_score
    found = []
    for _ in range(trials):
        drawn = draw_with_replacement(q, system.n_draws, rng)
        one = importance_sampling(system.weights[None, drawn], system.utility[drawn], q[drawn], fewest=0)[0]
        if not isinstance(one, Estimate):
            raise ValueError(f"every sample must give an estimate, got {one}")
        found.append([one.value, (one.high - one.low) / 2, one.low <= truth <= one.high])
    return _Trials(*np.array(found, dtype=np.float64).T)


def trec_rows(systems: Mapping[str, TrecSystem], trials: int, seed: int) -> dict[str, list[Row]]:
    """Return the TREC rows of Tables 2 to 4, by table; `trials` samples with this seed."""
    rows: dict[str, list[Row]] = {"table2": [], "table3": [], "table4": []}
    for place, (name, system) in enumerate(systems.items()):
        made = _trials(system, trials, np.random.default_rng([seed, 8, place]))
        printed = {table: _printed(table, name) for table in rows}
        rows["table2"] += _table2(
            f"TREC {name}", system, made, printed["table2"], paper.EXPECTED_TREC_U[name]
        )
        rows["table3"] += _table3(f"TREC {name}", system, printed["table3"], paper.EXPECTED_TREC_SD[name])
        rows["table4"] += _table4(
            f"TREC {name}", system, made, printed["table4"], paper.EXPECTED_TREC_HALF_WIDTH[name]
        )
    return rows


def _printed(table: str, name: str) -> dict[str, float]:
    """Return what the paper prints of a system, by column."""
    return {
        key.removeprefix(f"{name}: "): value
        for key, value in paper.TREC[table].items()
        if key.startswith(f"{name}: ")
    }


def _table2(
    name: str, system: TrecSystem, made: _Trials, printed: Mapping[str, float], expected: float
) -> list[Row]:
    truth, sd, n = system.true_score, system.sd(system.designs()["Q*"]), made.values.size
    shallow = float((system.weights * system.utility)[system.rank <= DRAWS_PER_TOPIC].sum())
    chosen = system.n_draws // DEPTH  # whole topics
    scores = system.topic_scores
    deep = float(scores.std(ddof=1) * np.sqrt((1 - chosen / system.n_topics) / chosen)) if chosen else 0.0
    return [
        row(f"{name}: true U", printed["true U"], truth, expected=expected, tolerance=_TOLERANCE),
        row(f"{name}: ShallowPool", printed["ShallowPool"], shallow, note=NO_DEMAND),
        row(f"{name}: DeepPool mean", printed["DeepPool mean"], truth, note=f"exact; {NO_DEMAND}"),
        row(
            f"{name}: DeepPool sd",
            printed["DeepPool sd"],
            deep,
            note=f"exact, of {chosen} whole topics; the paper's does not come out",
        ),
        row(
            f"{name}: sampling mean",
            printed["sampling mean"],
            float(made.values.mean()),
            expected=truth,
            tolerance=4 * sd / np.sqrt(n),
        ),
        row(
            f"{name}: sampling sd",
            printed["sampling sd"],
            float(made.values.std(ddof=1)),
            expected=sd,
            tolerance=4 * sd / np.sqrt(2 * n),
            note="exact: Table 3",
        ),
    ]


def _table3(name: str, system: TrecSystem, printed: Mapping[str, float], expected: float) -> list[Row]:
    sds = {design: system.sd(q) for design, q in system.designs().items()}
    return [
        row(f"{name}: sd Q*", printed["sd Q*"], sds["Q*"], expected=expected, tolerance=_TOLERANCE),
        *(
            row(f"{name}: sd {design}", printed[f"sd {design}"], sds[design], note=NO_DEMAND)
            for design in ("Q^P", "Q^unif")
        ),
    ]


def _table4(
    name: str, system: TrecSystem, made: _Trials, printed: Mapping[str, float], expected: float
) -> list[Row]:
    half = 1.96 * system.sd(system.designs()["Q*"])
    return [
        row(
            f"{name}: half-width",
            printed["half-width"],
            half,
            expected=expected,
            tolerance=2 * _TOLERANCE,
            note="without a share of uniform draws",
        ),
        row(
            f"{name}: half-width, mean of trials",
            printed["half-width"],
            float(made.half_widths.mean()),
            note=NO_DEMAND,
        ),
        row(
            f"{name}: coverage",
            printed["coverage"],
            float(made.held.mean()),
            note=f"{made.held.size} trials; {NO_DEMAND}",
        ),
    ]
