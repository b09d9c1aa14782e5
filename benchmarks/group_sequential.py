"""Do intervals at declared looks hold, and how narrow are they beside a confidence sequence? Simulated paths; JSON.

    python benchmarks/group_sequential.py > group_sequential.json

`boundary`: the normal path that the bounds were made for, at five looks with equal and unequal information, by both
kinds of spending. `students`: means of so many audited normal errors, whose variance is estimated at every look, so
that t takes the place of the normal distribution. `growth`: information that grows otherwise than assumed. Each counts
the paths on which any look misses the truth (5 % are allowed) and, as a control that must fail, those on which 1.96
standard errors do. `after`: a confidence sequence at every audit after the declared ones, as the product has it; who
acts on either misses more often than on one of them. `width` is the factor at each look, beside the sequence's.
"""

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri, stdtr

from analytics.estimation.estimate import Floats
from analytics.estimation.group_sequential import (
    Look,
    bound_at_look,
    crossing_probabilities,
    look_bounds,
    spent_by,
)
from analytics.estimation.sequences import always_valid_factor, t_of_same_tail

PLANNED = 200
SIZES = {
    "equal": (40, 80, 120, 160, 200),
    "unequal": (25, 60, 75, 150, 200),
    "less than planned": (40, 60, 80, 100, 120),
    "more than planned at the end": (40, 80, 120, 160, 260),
}
GROWTHS: dict[str, Callable[[Floats], Floats]] = {
    "as n": lambda n: n,
    "as the root of n": np.sqrt,
    "as n squared": np.square,
    "as n/(1 - n/250), of 250": lambda n: n / (1 - n / 250),
}
Z95 = 1.959963984540054


def product_bounds(sizes: tuple[int, ...], n_items: int = 10**9) -> Floats:
    """Return the bound of every look as the product computes it, each from the looks so far."""
    looks = [Look(number, len(sizes), float(n), PLANNED, n_items) for number, n in enumerate(sizes, 1)]
    return np.array([bound_at_look(looks[: place + 1]) for place in range(len(looks))])


def distances(information: Floats, repetitions: int, rng: np.random.Generator) -> Floats:
    """Return by path and look how many standard errors the estimate is off."""
    steps = np.sqrt(np.diff(information, prepend=0.0))
    score = np.cumsum(rng.normal(size=(repetitions, information.size)) * steps, axis=1)
    return np.asarray(np.abs(score) / np.sqrt(information))


def shares(off: Floats, factor: Floats) -> dict[str, Any]:
    """Return how often any look misses, and how often the interval for one look does; with the looks' share."""
    missed = off > factor
    found = {"error": missed.any(axis=1).mean(), "control_1.96": (off > Z95).any(axis=1).mean()}
    first = (missed & (np.cumsum(missed, axis=1) == 1)).mean(axis=0)
    return {name: round(float(value), 4) for name, value in found.items()} | {
        "paths": len(off),
        "first_at_look": [round(float(one), 4) for one in first],
    }


def boundary(repetitions: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    rows = []
    for name, sizes in SIZES.items():
        n = np.array(sizes, dtype=np.float64)
        off = distances(n, repetitions, rng)
        bounds = product_bounds(sizes)
        expected = float(crossing_probabilities(bounds, n).sum())
        rows.append(
            {
                "sizes": name,
                "spending": "obrien-fleming",
                **shares(off, bounds),
                "expected": round(expected, 4),
            }
        )
        share = np.append(np.minimum(n[:-1] / PLANNED, 1), 1.0)
        pocock = look_bounds(n, spent_by(share, spending="pocock"))
        rows.append({"sizes": name, "spending": "pocock", **shares(off, pocock)})
    for row in rows:
        row["holds"] = {"error": 0.045 <= row["error"] <= 0.055, "control_fails": row["control_1.96"] > 0.055}
    return rows


def students(repetitions: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return the errors of means of normal numbers with their estimated variance, and t as in the product."""
    rows = []
    for name, sizes in SIZES.items():
        n = np.array(sizes)
        factor = t_of_same_tail(product_bounds(sizes), n)
        off = [_student_distances(n, rng.normal(size=(1000, n[-1]))) for _ in range(repetitions // 1000)]
        rows.append({"sizes": name, **shares(np.concatenate(off), factor)})
    return rows


def _student_distances(n: NDArray[np.int64], errors: Floats) -> Floats:
    total, squares = (np.cumsum(part, axis=1)[:, n - 1] for part in (errors, errors**2))
    mean = total / n
    return np.asarray(np.abs(mean) / np.sqrt((squares / n - mean**2) / (n - 1)))


def growth(repetitions: int, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return the errors where information grows otherwise than as n: N was said to be without end, or 250."""
    n = np.array(SIZES["equal"], dtype=np.float64)
    rows = []
    for name, of in GROWTHS.items():
        off = distances(of(n), repetitions, rng)
        for n_items in (10**9, 250):
            said = "as n" if n_items > 250 else "as n/(1 - n/250)"
            rows.append(
                {"grows": name, "assumed": said, **shares(off, product_bounds(SIZES["equal"], n_items))}
            )
    return rows


def after(repetitions: int, rng: np.random.Generator) -> dict[str, Any]:
    """Return the error of five declared looks and the sequence at fifteen more audits, up to four times the plan."""
    n = np.arange(40, 801, 40, dtype=np.float64)
    off = distances(n, repetitions, rng)
    sequence = -ndtri(stdtr(n - 1, -always_valid_factor(n, PLANNED)))  # of a normal path
    bounds = np.append(product_bounds(SIZES["equal"]), sequence[5:])
    looks, later = (off[:, part] > bounds[part] for part in (slice(0, 5), slice(5, None)))
    return {
        "paths": repetitions,
        "declared_looks": round(float(looks.any(axis=1).mean()), 4),
        "sequence_after": round(float(later.any(axis=1).mean()), 4),
        "either": round(float((looks.any(axis=1) | later.any(axis=1)).mean()), 4),
        "sequence_alone_at_all": round(float((off > sequence).any(axis=1).mean()), 4),
    }


def width(sizes: tuple[int, ...]) -> dict[str, Any]:
    """Return what standard errors are multiplied by at each look, with t, and beside it the sequence's factor."""
    n = np.array(sizes)
    declared, sequence = t_of_same_tail(product_bounds(sizes), n), always_valid_factor(n, PLANNED)
    return {
        "audited": list(sizes),
        "declared": np.round(declared, 3).tolist(),
        "sequence": np.round(sequence, 3).tolist(),
        "declared_over_sequence": np.round(declared / sequence, 3).tolist(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repetitions", type=int, default=20_000, help="paths of every row; whole thousands")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.repetitions < 1000 or options.repetitions % 1000:
        parser.error("--repetitions: whole thousands")
    rng = np.random.default_rng(options.seed)
    parts = {
        "boundary": boundary(options.repetitions, rng),
        "students": students(options.repetitions, rng),
        "growth": growth(options.repetitions, rng),
        "after": after(options.repetitions, rng),
        "width": {name: width(sizes) for name, sizes in SIZES.items()},
    }
    print(json.dumps(parts, indent=2))


if __name__ == "__main__":
    main()
