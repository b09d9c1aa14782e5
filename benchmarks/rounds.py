"""Measure how often the intervals of two rounds hold the truth, by the product's own functions.

    python benchmarks/rounds.py --repetitions 4000 --seed 1

Parts: topics alike in neither round (welch), in some (shared_topics), documents that one audit took in both rounds
(shared_audit), and both claims together (claims). Each has a control that must fail: all topics taken as shared, C left
out, the interval for these topics used for topics like these.

JSON on standard output: coverage by part and place, and `not_reached`, the places outside .94 to .97 and the controls
inside. Sampling error: two standard errors are .007 at 4,000 repetitions.
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from numpy.typing import NDArray

from analytics.estimation.estimate import Estimate, Refusal, estimate
from analytics.estimation.estimators import poisson_degrees_of_freedom
from analytics.estimation.rounds import (
    AuditedItems,
    ClaimedDifference,
    by_claim,
    for_these_topics,
    over_two_samples,
)

Floats = NDArray[np.float64]
LEAST, MOST = 0.94, 0.97
DIFFERENCE = 0.05  # of the means of the two populations


def covers(found: Estimate | ClaimedDifference | Refusal, truth: float) -> bool:
    """Return whether an interval holds the truth; a refusal holds nothing."""
    return not isinstance(found, Refusal) and found.low <= truth <= found.high


# -- topics -------------------------------------------------------------------------------------------------


def welch(repetitions: int, rng: np.random.Generator) -> dict[str, float]:
    """Return the coverage for topics of which the rounds share none, of unlike spread and number."""
    found = {}
    for n_a, n_b, spread in ((25, 50, 1.0), (50, 25, 2.0), (12, 40, 2.0)):
        hits = 0
        for _ in range(repetitions):
            a, b = DIFFERENCE + 0.2 * rng.normal(size=n_a), 0.2 * spread * rng.normal(size=n_b)
            hits += covers(over_two_samples(a, b), DIFFERENCE)
        found[f"{n_a} and {n_b} topics, spread 1 to {spread:g}"] = hits / repetitions
    return found


def shared_topics(repetitions: int, rng: np.random.Generator) -> dict[str, float]:
    """Return the coverage where some topics are in both rounds, and of the paired t that takes all as shared."""
    found = {}
    for n_a, n_b, n_c in ((40, 40, 10), (50, 30, 20), (25, 25, 25)):
        hits, control = 0, 0
        for _ in range(repetitions):
            a, b = _partly_shared(n_a, n_b, n_c, rng)
            places = np.arange(n_c)
            hits += covers(over_two_samples(a, b, places, places), DIFFERENCE)
            control += covers(_all_as_shared(a, b, n_c), DIFFERENCE)
        name = f"{n_a} and {n_b} topics, {n_c} shared"
        found[name] = hits / repetitions
        if n_c < min(n_a, n_b):
            found[f"control: {name}, the paired t for all"] = control / repetitions
    return found


def _partly_shared(n_a: int, n_b: int, n_c: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Return values of topics with correlation .8 where they are shared, which come first."""
    common = 0.2 * np.sqrt(0.8) * rng.normal(size=n_c)
    a, b = (0.2 * rng.normal(size=n) for n in (n_a, n_b))
    a[:n_c] = common + np.sqrt(0.2) * a[:n_c]
    b[:n_c] = common + np.sqrt(0.2) * b[:n_c]
    return DIFFERENCE + a, b


def _all_as_shared(a: Floats, b: Floats, n_c: int) -> Estimate:
    """Return the paired t with the correlation of the topics that are shared, as if the others were too."""
    n = min(a.size, b.size)
    r = float(np.corrcoef(a[:n_c], b[:n_c])[0, 1])
    s_a, s_b = float(a.std(ddof=1)), float(b.std(ddof=1))
    variance = (s_a**2 + s_b**2 - 2 * r * s_a * s_b) / n
    return estimate(float(a.mean() - b.mean()), variance, degrees_of_freedom=n - 1, n=n, sources=("topics",))


# -- audits -------------------------------------------------------------------------------------------------


class Documents:
    """Documents that both rounds judged, with levers, residuals and audit probabilities in either."""

    def __init__(self, n: int, sign: float, rng: np.random.Generator) -> None:
        gold = rng.random(n) < 0.3
        doubt = rng.uniform(0.1, 0.5, n)
        residual = np.where(gold, 1 - doubt, -doubt)
        self.lever = tuple(rng.choice([0.2, 0.5, 1.0], n) / n for _ in range(2))
        self.residual = (residual, sign * residual * rng.uniform(0.7, 1.3, n))
        self.chance = (rng.uniform(0.15, 0.5, n), rng.uniform(0.15, 0.5, n))

    def audit(
        self, first: Floats, second: Floats, shared: NDArray[np.bool_] | None = None
    ) -> tuple[tuple[Estimate, Estimate], tuple[AuditedItems, AuditedItems]]:
        """Return both numbers' errors by audits with these random numbers, and the documents audited in both.

        `shared`: which documents are the same in both rounds; default all.
        """
        taken = [first < self.chance[0], second < self.chance[1]]
        both = taken[0] & taken[1] & (shared if shared is not None else True)
        numbers = (self._number(0, taken[0]), self._number(1, taken[1]))
        return numbers, (self._items(0, both), self._items(1, both))

    def _items(self, place: int, taken: NDArray[np.bool_]) -> AuditedItems:
        lever, residual, chance = (part[place][taken] for part in (self.lever, self.residual, self.chance))
        return AuditedItems(lever, residual, chance, (lever * residual) ** 2 * (1 - chance) / chance**2)

    def _number(self, place: int, taken: NDArray[np.bool_]) -> Estimate:
        """Return the error of the round's number: what it adds for the audited, less what it should add for all."""
        items = self._items(place, taken)
        error = float((items.lever * items.residual / items.audit_probability).sum())
        error -= float((self.lever[place] * self.residual[place]).sum())
        variance = float(items.term.sum())
        spread = float(((1 - items.audit_probability) * items.term**2).sum())
        df = float(poisson_degrees_of_freedom(variance, spread))
        return estimate(
            error,
            variance,
            degrees_of_freedom=df if np.isfinite(df) else None,
            n=int(taken.sum()),
            sources=("gold",),
        )


def shared_audit(repetitions: int, rng: np.random.Generator) -> dict[str, float]:
    """Return the coverage of these topics with one audit of both rounds, and without C."""
    found = {}
    for n in (200, 600):
        for sign, name in ((1.0, "errors alike"), (-1.0, "errors opposite")):
            documents = Documents(n, sign, rng)
            hits, control, apart = 0, 0, 0
            for _ in range(repetitions):
                one = rng.random(n)
                numbers, both = documents.audit(one, one)
                hits += covers(for_these_topics(*numbers, both, one_audit=True), 0.0)
                control += covers(for_these_topics(*numbers, both, one_audit=False), 0.0)
                numbers, both = documents.audit(rng.random(n), rng.random(n))
                apart += covers(for_these_topics(*numbers, both, one_audit=False), 0.0)
            place = f"{n} documents, {name}"
            found[place] = hits / repetitions
            found[f"control: {place}, without C"] = control / repetitions
            found[f"{place}, two audits"] = apart / repetitions
    return found


def claims(repetitions: int, rng: np.random.Generator) -> dict[str, float]:
    """Return the coverage for topics like these where judging errs too, and that of the interval for these topics."""
    found = {}
    for n_topics, n_shared, n in ((30, 10, 300), (25, 0, 150)):
        documents = Documents(n, 1.0, rng)
        topic = rng.integers(0, n_topics, n)
        hits, control = 0, 0
        for _ in range(repetitions):
            a, b = _partly_shared(n_topics, n_topics, n_shared, rng)
            one = rng.random(n)
            other = np.where(topic < n_shared, one, rng.random(n))
            (first, second), both = documents.audit(one, other, topic < n_shared)
            a += n_topics * _by_topic(documents, 0, one, topic, n_topics)
            b += n_topics * _by_topic(documents, 1, other, topic, n_topics)
            moved = (_at(first, float(a.mean())), _at(second, float(b.mean())))
            these = for_these_topics(*moved, both, one_audit=True)
            places = np.arange(n_shared)
            like, own = by_claim(these, over_two_samples(a, b, places, places))
            hits += covers(like, DIFFERENCE)
            control += covers(own, DIFFERENCE)
        name = f"{n_topics} topics a round, {n_shared} shared"
        found[name] = hits / repetitions
        found[f"control: {name}, the interval for these topics"] = control / repetitions
    return found


def _by_topic(
    documents: Documents, place: int, numbers: Floats, topic: NDArray[np.int64], n_topics: int
) -> Floats:
    """Return what the judging of each topic errs by."""
    lever, residual, chance = (
        part[place] for part in (documents.lever, documents.residual, documents.chance)
    )
    error = lever * residual * ((numbers < chance) / chance - 1)
    return np.asarray(np.bincount(topic, error, n_topics), dtype=np.float64)


def _at(found: Estimate, value: float) -> Estimate:
    return estimate(
        value,
        found.standard_error**2,
        degrees_of_freedom=found.degrees_of_freedom,
        n=found.n,
        sources=found.sources,
    )


# -- all ----------------------------------------------------------------------------------------------------

PARTS: dict[str, Callable[[int, np.random.Generator], dict[str, float]]] = {
    "welch": welch,
    "shared_topics": shared_topics,
    "shared_audit": shared_audit,
    "claims": claims,
}


def not_reached(results: dict[str, dict[str, float]]) -> list[str]:
    """Return the places outside the range, and the controls within."""
    return [
        f"{part}: {place}"
        for part, found in results.items()
        for place, coverage in found.items()
        if (LEAST <= coverage <= MOST) == place.startswith("control")
    ]


def measure(repetitions: int, seed: int, parts: list[str]) -> dict[str, Any]:
    """Return the coverage of the parts; each has random numbers of its own."""
    results = {
        part: PARTS[part](repetitions, np.random.default_rng([seed, place]))
        for place, part in enumerate(PARTS)
        if part in parts
    }
    return {"repetitions": repetitions, "seed": seed, "not_reached": not_reached(results), **results}


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--repetitions", type=int, default=4000, help="of every place")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", action="append", choices=list(PARTS), help="may be repeated; default: all")
    options = parser.parse_args()
    if options.repetitions < 1:
        parser.error("--repetitions must be at least 1")
    print(json.dumps(measure(options.repetitions, options.seed, options.part or list(PARTS)), indent=1))


if __name__ == "__main__":
    main()
