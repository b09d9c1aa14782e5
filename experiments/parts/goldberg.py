"""What the three programs about Goldberg et al. (2017) share: the paper's inputs, and how a program reports."""

import argparse
import json
import math
import sys
from collections.abc import Callable, Mapping
from typing import NamedTuple

from analytics.estimation.estimate import Refusal
from experiments.papers.goldberg import accuracy
from experiments.parts.rows import Report, Row, as_json, as_text, failures, row


class Rates(NamedTuple):
    """Counts of an audit: (labels "relevant", all) of gold relevant, (labels "not", all) of gold non-relevant."""

    relevant: tuple[int, int]
    not_relevant: tuple[int, int]

    @property
    def separation(self) -> float:
        """D = mR + mN - 1."""
        return self.relevant[0] / self.relevant[1] + self.not_relevant[0] / self.not_relevant[1] - 1

    def with_variances(self) -> tuple[float, float, float, float]:
        """mR, V_R, mN, V_N (Eq 8)."""
        return (*accuracy(*self.relevant), *accuracy(*self.not_relevant))


EBAY = Rates((43, 59), (67, 84))
EBAY_TOPICS = (10278, 20604)
EBAY_MEANS = (0.6260, 0.6385)
EBAY_SPREADS = (0.414, 0.402)
EBAY_VARIANCES = tuple(s**2 / n for s, n in zip(EBAY_SPREADS, EBAY_TOPICS, strict=True))

DOC_RUN = Rates((17, 38), (216, 262))
YORK = Rates((14, 50), (230, 285))
TREC_MEANS = (0.527, 0.513)
# not printed: inferred from the two totals (docs/methods/derivations/goldberg.md, section 1.1)
TREC_SPREADS = (0.2400, 0.2596)
TREC_TOPICS = 50

SIX = 6e-7


def six(name: str, paper: float | None, computed: float, expected: float, note: str = "") -> Row:
    """Return a row that must have six digits: docs/methods/derivations/noise-correction.md, section 7."""
    return row(name, paper, computed, expected=expected, tolerance=SIX, note=note)


def refused(name: str, interval: object) -> Row:
    """Return a row that is 1 if the product refuses, with its reason."""
    reason = interval.reason if isinstance(interval, Refusal) else "not refused"
    return row(name, None, float(isinstance(interval, Refusal)), expected=1, tolerance=0, note=reason)


def simulated(
    name: str,
    paper: float | None,
    computed: float,
    expected: float,
    tolerance: float,
    draws: tuple[int, int],
    note: str = "",
) -> Row:
    """Return a row for a mean or share of draws[0] draws; the tolerance is that of draws[1], wider if fewer."""
    wider = max(1.0, math.sqrt(draws[1] / draws[0]))
    return row(name, paper, computed, expected=expected, tolerance=tolerance * wider, note=note)


def run(
    description: str | None,
    headings: Mapping[str, str],
    report: Callable[[int, int], Report],
    draws: int,
    arguments: list[str] | None,
) -> int:
    """Print the report as text or JSON; return 0 when every number is what it must be, else 1."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--draws", type=int, default=draws, help=f"simulated draws ({draws:,})")
    parser.add_argument("--seed", type=int, default=2017)
    given = parser.parse_args(arguments)
    if given.draws < 100 or given.seed < 0:
        parser.error(f"draws must be at least 100 and seed at least 0, got {given.draws} and {given.seed}")

    made = report(given.draws, given.seed)
    print(json.dumps(as_json(made), indent=1) if given.json else as_text(headings, made, significant=9))
    wrong = failures(made)
    for sentence in wrong:
        print(f"not reproduced: {sentence}", file=sys.stderr)
    return 1 if wrong else 0
