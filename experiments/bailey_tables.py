"""Print the tables of Bailey et al. (2008) beside what the product computes from the same numbers.

    python experiments/bailey_tables.py             # the tables as text, about half a minute
    python experiments/bailey_tables.py --json      # one object: table1 ... table4, figure2, tests, forms
    python experiments/bailey_tables.py --quick     # 2 samples instead of 10 for Table 3

Paper: P. Bailey, N. Craswell, I. Soboroff, P. Thomas, A. P. de Vries, E. Yilmaz: Relevance Assessment: Are Judges
Exchangeable and Does it Matter? SIGIR 2008. Its judgments and runs are not public. So Tables 1, 2 and 4 are recomputed
from their own margins (docs/methods/derivations/bailey.md, section 3), and Table 3 is repeated on synthetic pools of
the same size, where only the order of magnitude can agree. Samples, kappas, rankings and inferred scores are the
product's functions. The program ends with status 1, and says why, when a number is not what it must be.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
from scipy.stats import hypergeom

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from analytics.agreement.rankings import RankAgreement, rank_agreement
from analytics.agreement.tiers import Kappa, cohen_kappa, scott_pi
from experiments.papers.label_samples import nested_sample
from experiments.parts.bailey import (
    TOPIC_SHARE,
    Agreement,
    agreement,
    draw_pools,
    gold_agreement,
    sample_counts,
    sampled_grades,
    scores,
)
from experiments.parts.rows import Report, Row, as_json, as_text, failures, row
from sampling.label_samples import effort_probabilities, label_counts, label_shares

HEADINGS = {
    "table1": "Table 1: the study's size, and the name of its kappa",
    "table2": "Table 2: topic-based, effort-based and full samples",
    "table3": f"Table 3: inferred scores against all bronze labels; synthetic pools, {TOPIC_SHARE:.0%} of a topic",
    "table4": "Table 4: labels of one tier given another's",
    "figure2": "Figure 2 and section 4.4.2: orders of the 15 runs",
    "tests": "Section 4.4.1: fifteen tests of 5 %",
    "forms": "Beyond the paper: gold labels drawn from Table 4, full sample, by form of the score",
}
EXACT = 1e-9

# ---- what the paper prints ------------------------------------------------------------------------------------
LABELS = ("not", "possibly", "highly")  # grades 0, 1, 2; the paper prints them the other way round
POOL = np.array([[70, 20, 10], [100, 50, 50]])  # Table 2, topics A and B
TOPIC_BASED = np.array([[1, 3, 6], [2, 6, 12]])
EFFORT_BASED, EFFORT_TOTALS, EFFORT_RIGHT = np.array([[2, 1, 10], [1, 8, 8]]), (12, 17), (13, 17)
FULL, FULL_TOTALS = np.array([[2, 3, 10], [2, 8, 12]]), (15, 22)
DOCUMENTS, POOLED, TOPICS = 3004, 22_500, 33
TABLE3 = {  # (tau, RMSe) of the topics' scores, and of the means over topics
    "infAP": {
        "topic": (0.89, 0.053, 0.99, 0.027),
        "effort": (0.86, 0.062, 0.96, 0.012),
        "full": (0.92, 0.037, 0.98, 0.020),
    },
    "infNDCG": {
        "topic": (0.91, 0.037, 0.97, 0.005),
        "effort": (0.80, 0.063, 0.92, 0.011),
        "full": (0.92, 0.029, 0.98, 0.003),
    },
}
# Table 4, P(gold or silver grade | other tier's grade), rows and columns from "not" to "highly"
GOLD_GIVEN_BRONZE = np.array([[0.82, 0.13, 0.05], [0.40, 0.25, 0.35], [0.24, 0.18, 0.58]])
SILVER_GIVEN_BRONZE = np.array([[0.89, 0.09, 0.02], [0.53, 0.30, 0.17], [0.36, 0.28, 0.36]])
SILVER_GIVEN_GOLD = np.array([[0.81, 0.14, 0.05], [0.56, 0.31, 0.13], [0.22, 0.32, 0.46]])
GOLD_OVERALL, SILVER_OVERALL = np.array([0.42, 0.19, 0.39]), np.array([0.53, 0.24, 0.23])
MOST_IN_THE_POOL = (0.134, 0.155)  # shares of "possibly" and "highly" that the effort-based rates allow
TAUS = {
    "gold, silver infAP": 0.96,
    "gold, silver infNDCG": 0.94,
    "gold, bronze infAP": 0.73,
    "gold, bronze infNDCG": 0.66,
}
FLIPS = (2, 3, 14, 18)
# Figure 2, the runs from the lowest to the highest gold score
BY_INFAP = [
    "insu3", "CSIROdsQonly", "QRYBASICRUN", "uiowa07entd1", "FDUBase", "UALR07Ent1", "DUTDST4", "uams07bl",
    "outopiconly", "uwtbase", "RmitQ", "uogedsf", "york07ed1", "THUDSFULLSR", "DocRun01",
]  # fmt: skip
BY_INFNDCG = [
    "insu3", "CSIROdsQonly", "QRYBASICRUN", "FDUBase", "UALR07Ent1", "uiowa07entd1", "outopiconly", "DUTDST4",
    "RmitQ", "uwtbase", "uams07bl", "uogedsf", "york07ed1", "DocRun01", "THUDSFULLSR",
]  # fmt: skip


# ---- the tables -----------------------------------------------------------------------------------------------


def table1() -> list[Row]:
    """The study's row, and that its "Cohen's kappa" is Siegel and Castellan's."""
    example = [[30, 20], [5, 45]]
    return [
        row("documents a topic", 91, DOCUMENTS / TOPICS, expected=91.03, tolerance=0.005, paper_tolerance=0.5),
        row("share of the pool judged again", None, DOCUMENTS / POOLED, expected=0.1335, tolerance=5e-5),
        row("kappa as computed there", None, _kappa(scott_pi(example)).value, expected=0.488491, tolerance=5e-7,
            note="Siegel and Castellan, which is Scott's pi; of the table 30 20 / 5 45"),
        row("kappa as named there", None, _kappa(cohen_kappa(example)).value, expected=0.5, tolerance=5e-7,
            note="Cohen; of the same table"),
    ]  # fmt: skip


def table2(seed: int) -> list[Row]:
    """Cells of the example; the paper's own effort-based cells are one random outcome, only its margins can agree."""
    topic = label_counts(POOL, POOL.sum(axis=1) / 10, label_shares(3))
    made = _cells("topic-based", TOPIC_BASED, topic) + _margin("topic-based", TOPIC_BASED, topic)
    cell = np.repeat(np.arange(6), POOL.ravel())
    expected = np.bincount(cell, effort_probabilities(cell // 3, cell % 3, 3, 30.0)).reshape(2, 3)
    made += _margin("effort-based", EFFORT_BASED, expected)
    for name, printed, right, cells in zip("AB", EFFORT_TOTALS, EFFORT_RIGHT, EFFORT_BASED, strict=True):
        note = "misprint: its cells sum to 13, and 13 + 17 = 30" if printed != right else ""
        made.append(row(f"effort-based {name}, total of its cells", printed, cells.sum(), expected=right,
                        tolerance=EXACT, note=note))  # fmt: skip
    made.append(row("effort-based A, highly: expected", 10, expected[0, 2], expected=3.0, tolerance=EXACT,
                    note="the example's 10 is not typical"))  # fmt: skip
    chance = float(hypergeom.pmf(10, 60, 10, 18))
    made.append(row("its probability, in millionths", None, 1e6 * chance, expected=0.58, tolerance=0.005))
    numbers = np.random.default_rng(seed).random(cell.size)
    union = np.union1d(*(nested_sample(numbers, cell, part.ravel()) for part in (TOPIC_BASED, EFFORT_BASED)))
    full = np.bincount(cell[union], minlength=6).reshape(2, 3)
    made += _cells("full", FULL, full) + _margin("full", FULL, full)
    for name, printed, cells in zip("AB", FULL_TOTALS, full, strict=True):
        made.append(row(f"full {name}, total", printed, cells.sum(), paper_tolerance=EXACT))
    return [
        *made,
        row("full, documents", 37, union.size, paper_tolerance=EXACT, note="union of nested samples"),
    ]


def _cells(name: str, printed: np.ndarray, computed: np.ndarray) -> list[Row]:
    return [
        row(
            f"{name} {topic}, {LABELS[grade]}",
            int(printed[t, grade]),
            computed[t, grade],
            paper_tolerance=EXACT,
        )
        for t, topic in enumerate("AB")
        for grade in (2, 1, 0)
    ]


def _margin(name: str, printed: np.ndarray, computed: np.ndarray) -> list[Row]:
    return [
        row(
            f"{name}, all {LABELS[grade]}",
            int(printed[:, grade].sum()),
            computed[:, grade].sum(),
            paper_tolerance=EXACT,
        )
        for grade in (2, 1, 0)
    ]


def table3(trials: int, seed: int) -> list[Row]:
    """Table 3 on synthetic pools. Samples of a method differ by the random number of each document."""
    pools = draw_pools(np.random.default_rng([seed, 1]))
    made: list[Row] = []
    for measure, form in (("infAP", "stratified"), ("infNDCG", "printed")):
        whole = scores(pools, measure, pools.grade, "ht")
        forms = (
            {"": form, "ht, ": "ht", "literal, ": "literal"}
            if measure == "infNDCG"
            else {"": form, "ht, ": "ht"}
        )
        for method, printed in TABLE3[measure].items():
            for words, one in forms.items():
                results = []
                for trial in range(trials):
                    numbers = np.random.default_rng([seed, 2, trial]).random(pools.grade.size)
                    grade = sampled_grades(pools, sample_counts(pools, numbers)[method], numbers)
                    results.append(agreement(whole, scores(pools, measure, grade, one)))
                made += _table3_rows(f"{measure} {words}{method}", results, printed if not words else None)
    return made


def _table3_rows(name: str, results: list[Agreement], printed: tuple[float, ...] | None) -> list[Row]:
    """Four rows; the paper's form must be near the paper, other forms stand beside it."""
    parts = {
        "tau of topics' scores": ("tau_by_topic", 0.05),
        "RMSe of topics' scores": ("error_by_topic", 0.01),
        "tau of means": ("tau_of_means", 0.05),
        "RMSe of means": ("error_of_means", 0.01),
    }
    made = []
    outside = np.mean([one.outside for one in results])
    for place, (words, (field, near)) in enumerate(parts.items()):
        values = np.array([getattr(one, field) for one in results])
        error = values.std(ddof=1) / np.sqrt(values.size)
        note = f"+- {error:.3f}" + (
            f"; {outside:.1f} of 495 scores above 1" if place == 0 and outside else ""
        )
        paper = None if printed is None else printed[place]
        made.append(row(f"{name}: {words}", paper, float(values.mean()), note=note,
                        paper_tolerance=None if printed is None else near))  # fmt: skip
    return made


def table4() -> list[Row]:
    """Row sums, kappas and shares that the printed probabilities imply."""
    made = []
    tables = {
        "gold given bronze": GOLD_GIVEN_BRONZE,
        "silver given bronze": SILVER_GIVEN_BRONZE,
        "silver given gold": SILVER_GIVEN_GOLD,
        "overall": np.array([GOLD_OVERALL, SILVER_OVERALL]),
    }
    for name, table in tables.items():
        for place in reversed(range(len(table))):
            label = ("gold", "silver")[place] if name == "overall" else LABELS[place]
            made.append(row(f"sum of the row {name} {label}", 1, table[place].sum(), paper_tolerance=EXACT))
    shares = implied_shares()
    for grade, expected in ((2, 0.487), (1, 0.280), (0, 0.233)):
        made.append(row(f"implied share of bronze {LABELS[grade]} in the sample", None, shares[grade],
                        expected=expected, tolerance=5e-4, note="not .6, .3, .1"))  # fmt: skip
    for name, given, printed in (
        ("gold", GOLD_GIVEN_BRONZE, GOLD_OVERALL),
        ("silver", SILVER_GIVEN_BRONZE, SILVER_OVERALL),
    ):
        for grade in (2, 1, 0):
            made.append(row(f"implied overall {name} {LABELS[grade]}", printed[grade], (shares @ given)[grade],
                            paper_tolerance=0.0105))  # fmt: skip
    for name, overall, given, expected in (
        ("gold, silver", GOLD_OVERALL, SILVER_GIVEN_GOLD, 0.333),
        ("bronze, gold", shares, GOLD_GIVEN_BRONZE, 0.293),
    ):
        kappa = _kappa(scott_pi(overall[:, None] * given, n=DOCUMENTS))
        made.append(row(f"pooled kappa {name}", None, kappa.value, expected=expected, tolerance=5e-4,
                        note="the paper has kappas of topics only"))  # fmt: skip
    return made + _relevant_in_the_pool(shares)


def _relevant_in_the_pool(sampled: np.ndarray) -> list[Row]:
    """Who marks more documents relevant: in the sample bronze, by design; in the pool gold."""
    pool = np.array([1 - sum(MOST_IN_THE_POOL), *MOST_IN_THE_POOL])
    made = []
    for words, share, bronze, gold in (("sample", sampled, 0.767, 0.580), ("pool", pool, 0.288, 0.326)):
        for tier, value, expected in (
            ("bronze", 1 - share[0], bronze),
            ("gold", float((share @ GOLD_GIVEN_BRONZE)[1:].sum()), gold),
        ):
            made.append(
                row(f"{tier} relevant in the {words}", None, value, expected=expected, tolerance=1.5e-3)
            )
    return made


def implied_shares() -> np.ndarray:
    """Return the shares of bronze labels, from grade 0 up, that fit both "overall" rows best and sum to 1."""
    rows = np.vstack([GOLD_GIVEN_BRONZE.T, SILVER_GIVEN_BRONZE.T])
    overall = np.concatenate([GOLD_OVERALL, SILVER_OVERALL])
    # The last share is 1 less the others: least squares in two unknowns.
    free = np.linalg.lstsq(rows[:, :2] - rows[:, 2:], overall - rows[:, 2], rcond=None)[0]
    return np.append(free, 1 - free.sum())


def figure2() -> list[Row]:
    """The printed taus as numbers of flipped pairs, and the two printed orders of the runs."""
    made = [
        row(
            f"tau {name}",
            printed,
            1 - 4 * flips / (15 * 14),
            paper_tolerance=0.005,
            note=f"{flips} of 105 pairs flipped",
        )
        for (name, printed), flips in zip(TAUS.items(), FLIPS, strict=True)
    ]
    order = {run: place for place, run in enumerate(BY_INFNDCG)}
    both = rank_agreement(range(15), [order[run] for run in BY_INFAP])
    if not isinstance(both, RankAgreement):
        raise ValueError(both.reason)
    return [
        *made,
        row("tau of gold infAP and infNDCG", None, both.tau, expected=0.847619, tolerance=5e-7),
        row("tau_ap of the same", None, both.tau_ap, note="ours: the top counts more"),
        row("pairs flipped between the two", None, len(both.flipped), expected=8, tolerance=EXACT),
        row(
            "runs shared by both lowest 3", 3, len({*BY_INFAP[:3]} & {*BY_INFNDCG[:3]}), paper_tolerance=EXACT
        ),
        row(
            "runs shared by both top 4", 4, len({*BY_INFAP[-4:]} & {*BY_INFNDCG[-4:]}), paper_tolerance=EXACT
        ),
    ]


def tests() -> list[Row]:
    """What fifteen tests of 5 % find when nothing differs; the paper reports one run for silver and infNDCG."""
    return [
        row("false differences expected", None, 15 * 0.05, expected=0.75, tolerance=EXACT),
        row("chance of at least one", None, 1 - 0.95**15, expected=0.54, tolerance=0.005,
            note="if the tests were independent; the paper reports one"),
    ]  # fmt: skip


def forms(trials: int, seed: int) -> list[Row]:
    """The use that counts: bronze labels are strata, gold grades differ from them as in Table 4."""
    made = []
    for measure, names in (
        ("infNDCG", ("printed", "ht", "difference")),
        ("infAP", ("stratified", "ht", "difference")),
    ):
        for form in names:
            results = []
            for trial in range(trials):
                pools = draw_pools(np.random.default_rng([seed, 3, trial]))
                results.append(gold_agreement(pools, GOLD_GIVEN_BRONZE, measure, form, [seed, 4, trial]))
            for words, field in (
                ("bias of the mean score", "bias"),
                ("RMSe of topics' scores", "error_by_topic"),
                ("RMSe of means", "error_of_means"),
            ):
                values = np.array([getattr(one, field) for one in results])
                error = values.std(ddof=1) / np.sqrt(values.size)
                made.append(
                    row(f"{measure} {form}: {words}", None, float(values.mean()), note=f"+- {error:.4f}")
                )
    return made


def _kappa(kappa: object) -> Kappa:
    if not isinstance(kappa, Kappa):
        raise ValueError(f"a kappa was refused: {kappa}")
    return kappa


def report(trials: int, seed: int) -> Report:
    """Return all rows. The same seed gives the same numbers."""
    return {
        "table1": table1(),
        "table2": table2(seed),
        "table3": table3(trials, seed),
        "table4": table4(),
        "figure2": figure2(),
        "tests": tests(),
        "forms": forms(trials, seed),
    }


def main(arguments: list[str] | None = None) -> int:
    """Return 0 when every number is what it must be, else 1."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, help="samples a method of Table 3 (10, as in the paper)")
    parser.add_argument("--seed", type=int, default=2008)
    parser.add_argument("--quick", action="store_true", help="2 samples")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    trials = given.trials if given.trials is not None else 2 if given.quick else 10
    if trials < 2 or given.seed < 0:
        parser.error(f"trials must be at least 2 and seed at least 0, got {trials} and {given.seed}")

    made = report(trials, given.seed)
    print(json.dumps(as_json(made), indent=1) if given.json else as_text(HEADINGS, made))
    wrong = failures(made)
    for sentence in wrong:
        print(f"not reproduced: {sentence}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
