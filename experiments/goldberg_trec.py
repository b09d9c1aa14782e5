"""Rebuild the TREC example of Goldberg et al. (2017), section 7: 569,154 queries and 23,027,371 gold labels.

    python experiments/goldberg_trec.py            # text
    python experiments/goldberg_trec.py --json     # one object: accuracy ... right

Both totals come out exactly, under assumptions that the paper does not state
(docs/methods/derivations/goldberg.md, section 1.1): the *naive* difference over the *corrected* error, three equal
terms of Eq 7, a power of one half, and two standard deviations that were inferred from the totals. The method is
wrong, and the corrected values are 1.29 and 3.68. What the product gives instead stands below: a refusal with its
reason, and the number of topics of the right test.
"""

import math
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from scipy.stats import fisher_exact

from analytics.papers.goldberg import corrected_value
from analytics.papers.intervals import Interval, corrected_interval
from analytics.papers.refusals import audit_refusal
from experiments.papers.planning import topics_for_test
from experiments.papers.printed import printed_gold_needed, printed_topics_needed
from experiments.papers.refusals import feasibility_z
from experiments.parts.goldberg import (
    DOC_RUN,
    TREC_MEANS,
    TREC_SPREADS,
    TREC_TOPICS,
    YORK,
    Rates,
    refused,
    run,
    six,
)
from experiments.parts.rows import Report, Row, row

HEADINGS = {
    "accuracy": "Table 2: accuracies of the bronze judges",
    "corrected": "Corrected P@20, which the paper does not print",
    "sample_size": "Section 7: what the paper says is needed",
    "refusal": "What the product gives instead",
    "right": "The right test, with one matrix for both runs",
}


def report(draws: int, seed: int) -> Report:
    """Return all rows; nothing is simulated."""
    del draws, seed
    runs = {"DocRun02": DOC_RUN, "YORK07ED4": YORK}
    printed = {"DocRun02": (0.447, 0.824), "YORK07ED4": (0.280, 0.807)}
    exact = {"DocRun02": (0.447368, 0.824427), "YORK07ED4": (0.280000, 0.807018)}
    accuracies: list[Row] = []
    for name, rates in runs.items():
        m_r, _, m_n, _ = rates.with_variances()
        accuracies += [
            six(f"mR {name}", printed[name][0], m_r, exact[name][0]),
            six(f"mN {name}", printed[name][1], m_n, exact[name][1]),
        ]
    return {
        "accuracy": accuracies,
        "corrected": [
            six(f"P@20 {name}", None, _corrected(j, rates), value, "a share above 1")
            for (name, rates), j, value in zip(runs.items(), TREC_MEANS, (1.292983, 3.677621), strict=True)
        ],
        "sample_size": _sample_size(),
        "refusal": _refusals(),
        "right": _right(),
    }


def _corrected(j: float, rates: Rates) -> float:
    m_r, _, m_n, _ = rates.with_variances()
    return corrected_value(j, m_r, m_n)


def _sample_size() -> list[Row]:
    difference = TREC_MEANS[0] - TREC_MEANS[1]
    n = printed_topics_needed(difference, TREC_SPREADS, (DOC_RUN.separation, YORK.separation))
    corrected = _corrected(TREC_MEANS[1], YORK)
    gold = printed_gold_needed(n, YORK.relevant[0] / YORK.relevant[1], corrected, TREC_SPREADS[1])
    true_difference = corrected - _corrected(TREC_MEANS[0], DOC_RUN)
    consistent = printed_topics_needed(true_difference, TREC_SPREADS, (DOC_RUN.separation, YORK.separation))
    enough = printed_gold_needed(consistent, YORK.relevant[0] / YORK.relevant[1], corrected, TREC_SPREADS[1])
    return [
        row("queries, exact", None, n, expected=569_153.3099, tolerance=5e-5),
        row("queries", 569_154, math.ceil(n), expected=569_154, tolerance=0, paper_tolerance=0),
        row("gold relevant, exact", None, gold, expected=23_027_370.63, tolerance=5e-3),
        row(
            "gold relevant", 23_027_371, math.ceil(gold), expected=23_027_371, tolerance=0, paper_tolerance=0
        ),
        row(
            "queries, had the corrected difference been used", None, consistent, expected=19.6, tolerance=0.05
        ),
        row("gold relevant, likewise", None, enough, expected=794, tolerance=0.5),
    ]


def _refusals() -> list[Row]:
    rows = []
    for name, rates, j, spread in (
        ("DocRun02", DOC_RUN, TREC_MEANS[0], TREC_SPREADS[0]),
        ("YORK07ED4", YORK, TREC_MEANS[1], TREC_SPREADS[1]),
    ):
        variance = spread**2 / TREC_TOPICS
        z = feasibility_z(j, variance, rates.relevant, rates.not_relevant, pseudo_count=0)
        if name == "YORK07ED4":
            rows.append(row(f"z of j above mR, {name}", None, z, expected=3.18, tolerance=0.005))
        else:
            rows.append(row(f"z of j above mR, {name}", None, z))
        interval = corrected_interval(j, variance, rates.relevant, rates.not_relevant)
        if name == "YORK07ED4":
            rows.append(refused(f"refused, {name}", interval))
        else:
            assert isinstance(interval, Interval)
            low, high = interval.low, interval.high
            rows += [row(f"95 % low, {name}", None, low), row(f"95 % high, {name}", None, high)]
    both = [(j, s**2 / TREC_TOPICS) for j, s in zip(TREC_MEANS, TREC_SPREADS, strict=True)]
    pooled = (31, 88), (446, 547)  # both runs' audits together, as equal rates are not rejected
    return [*rows, refused("refused, the difference by one matrix", audit_refusal(both, *pooled))]


def _right() -> list[Row]:
    variance = sum(s**2 for s in TREC_SPREADS)
    topics = topics_for_test(TREC_MEANS[0] - TREC_MEANS[1], variance, power=0.5)
    p_r = fisher_exact(np.array([[17, 21], [14, 36]])).pvalue
    p_n = fisher_exact(np.array([[216, 46], [230, 55]])).pvalue
    return [
        row("topics a run, unpaired, no gold", 569_154, topics, expected=2450, tolerance=0.5,
            note="fewer when the topics are paired"),
        row("p of equal mR in both runs (Fisher)", None, float(p_r), expected=0.12, tolerance=5e-3,
            note="a matrix a run was not needed"),
        row("p of equal mN in both runs (Fisher)", None, float(p_n), expected=0.66, tolerance=5e-3),
    ]  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    """Return 0 when every number is what it must be, else 1."""
    return run(__doc__, HEADINGS, report, 100, arguments)


if __name__ == "__main__":
    sys.exit(main())
