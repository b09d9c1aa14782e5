"""Rank-biased precision, Moffat and Zobel (2008); binary here."""

import numpy as np

from sampling.measures.families import RELEVANT, Family, FloatArray, Measure, Parameter
from sampling.measures.kinds import Linear
from sampling.measures.spelling import canonical


def read_persistence(text: str) -> float:
    """Return p, the probability of looking at the next document."""
    try:
        persistence = float(text)
    except ValueError:
        raise ValueError(f"p must be a number within (0, 1), got {text!r}") from None
    if not 0.0 < persistence < 1.0:
        raise ValueError(f"p must be within (0, 1), got {text}")
    return persistence


def write_persistence(p: float) -> str:
    """Return p with six digits, or with all where six are not enough."""
    return f"{p:g}" if float(f"{p:g}") == p else repr(p)


def weights(measure: Measure[Linear], rank: FloatArray) -> FloatArray:
    """Return (1 - p) p^(rank - 1)."""
    # Table 1 of Schnabel et al. prints (1 - p)/p^rank, which diverges; Moffat and Zobel's weight is this one.
    p: float = measure.parameters["p"]
    return np.asarray((1.0 - p) * p ** (rank - 1.0), dtype=np.float64)


def with_both(measure: Measure[Linear], _: FloatArray, relevant_grade: int) -> str:
    """Return the name with p and the lowest relevant grade: without one, ir_measures takes grades for gains."""
    p, threshold = measure.parameters["p"], measure.relevant_grade or relevant_grade
    return canonical("RBP", [f"p={write_persistence(p)}", f"rel={threshold}"], measure.cutoff)


RBP = Family(
    key="RBP",
    label="Rank-biased precision",
    help="Weight (1 - p) p^(rank - 1) of relevant documents, as in RBP(p=0.8)@20; RBP@20 is read as that.",
    kind=Linear(weights),
    parameters=(Parameter("p", 0.8, read_persistence, write_persistence, is_always_written=True), RELEVANT),
    binary=True,
    suggested=("RBP(p=0.8)@20",),
    reported=("RBP(p=0.8)@20",),
    ir_measures=with_both,
)
