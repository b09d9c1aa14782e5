"""Figure 4 and Table 6 of Carterette and Allan (2007): few judgments and none, on random subsets of the runs."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from experiments.papers.paired import one_sided_paired_p
from experiments.parts.few_judgments import Study
from experiments.parts.few_judgments_paper import paper_value
from experiments.parts.rows import Row, row
from sampling.arrays import FloatArray
from sampling.reweighting import round_count

PAPER_SIZE = 10  # of Table 6
QUARTER = 4


@dataclass(frozen=True)
class SubsetTaus:
    """Tau with the ranking by MAP, one a subset: EMAP without judgments, reweighted, and MAP of the judged alone."""

    none: FloatArray
    reweighted: FloatArray
    judged_alone: FloatArray


def subset_taus(study: Study, size: int, n_subsets: int, seed: int) -> SubsetTaus:
    """Return tau on random subsets of so many runs, all rankings on the same subsets."""
    if not 2 <= size < len(study.folder.runs):
        raise ValueError(f"a subset's size must be within [2, {len(study.folder.runs) - 1}], got {size}")
    rng = np.random.default_rng([seed, size])
    taus = []
    for _ in range(n_subsets):
        chosen = study.subset(np.sort(rng.permutation(len(study.folder.runs))[:size]).tolist())
        found, scores = chosen.reweighted
        taus.append([chosen.tau(one) for one in (chosen.expected, scores, chosen.judged_alone(found))])
    return SubsetTaus(*np.array(taus).T)


def figure4_rows(study: Study, by_size: dict[int, SubsetTaus]) -> list[Row]:
    """Figure 4: the mean over subsets of each size, and the whole set."""
    if not by_size:
        return [Row("subsets", None, None, note="left out, or all runs would be in each")]
    rows = []
    for size, taus in by_size.items():
        note = f"{taus.none.size} subsets, {round_count(size)} documents of a topic judged"
        rows += [
            row(f"{size} runs: no judgments", None, float(taus.none.mean())),
            row(f"{size} runs: reweighted", None, float(taus.reweighted.mean()), note=note),
        ]
    return [
        *rows,
        row("all runs: no judgments", None, study.tau(study.expected)),
        row("all runs: reweighted", None, study.tau(study.reweighted[1])),
    ]


def table6_rows(by_size: dict[int, SubsetTaus], collection: str) -> list[Row]:
    """Table 6, of the largest subsets; the paper's have ten runs."""
    if not by_size:
        return [Row("subsets", None, None, note="left out, or all runs would be in each")]
    size = max(by_size)
    taus = by_size[size]
    of_paper = collection if size == PAPER_SIZE else ""
    smaller = "the paper prints the p of the better one"
    return [
        row("(a) no judgments", paper_value(of_paper, "subsets, none"), float(taus.none.mean()),
            note=f"{taus.none.size} subsets of {size} runs"),
        row("(a) reweighted", paper_value(of_paper, "subsets, reweighted"), float(taus.reweighted.mean())),
        *_p_rows("(a) one-sided p, reweighted better", taus.reweighted, taus.none,
                 paper_value(of_paper, "subsets, p of reweighting"), smaller),
        row("(b) reweighted, EMAP", paper_value(of_paper, "subsets, reweighted"), float(taus.reweighted.mean())),
        row("(b) reweighted, MAP of the judged alone", paper_value(of_paper, "subsets, judged alone"),
            float(taus.judged_alone.mean())),
        *_p_rows("(b) one-sided p, EMAP better", taus.reweighted, taus.judged_alone,
                 paper_value(of_paper, "subsets, p of EMAP"), smaller),
    ]  # fmt: skip


def _p_rows(
    name: str, better: FloatArray, other: FloatArray, paper: float | None, note: str
) -> Sequence[Row]:
    """Return p from all subsets, and from their first quarter: it depends on how many overlapping subsets there are."""
    rows = []
    for label, n_subsets, value, words in (
        (name, better.size, paper, note),
        (f"{name}, first quarter", better.size // QUARTER, None, "subsets of the same runs overlap"),
    ):
        p = one_sided_paired_p(better[:n_subsets], other[:n_subsets]) if n_subsets > 1 else None
        rows.append(
            Row(label, value, None, note="not defined: too few subsets, or all differ alike")
            if p is None
            else row(label, value, p, note=words)
        )
    return rows
