"""Discounted cumulated gain, Jarvelin and Kekalainen (2002)."""

import math

import numpy as np

from sampling.measures.families import Family, FloatArray, Measure, Parameter
from sampling.measures.kinds import Linear

LOG_BASES = {"log2": 2.0, "ln": math.e}


def read_base(text: str) -> float:
    """Return the base of the discount's logarithm."""
    if text not in LOG_BASES:
        # exp-log2 changes the gain, not the discount; here gains belong to the scale.
        raise ValueError(f"dcg must be one of {sorted(LOG_BASES)}, got {text!r}")
    return LOG_BASES[text]


def discount(rank: FloatArray) -> FloatArray:
    """Return 1/log2(rank + 1)."""
    # log2 is exact at powers of two; dividing natural logarithms is not.
    return np.asarray(1.0 / np.log2(rank + 1.0), dtype=np.float64)


def weights(measure: Measure[Linear], rank: FloatArray) -> FloatArray:
    """Return 1/log_b(rank + 1), b = 2 (trec_eval, ir_measures), or e under ``dcg='ln'``."""
    base: float = measure.parameters["dcg"]
    if base == 2.0:
        return discount(rank)
    return np.asarray(math.log(base) / np.log(rank + 1.0), dtype=np.float64)


DCG = Family(
    key="DCG",
    label="Discounted cumulated gain",
    help="Weight 1/log2(rank + 1); DCG(dcg='ln')@k takes the natural logarithm.",
    kind=Linear(weights),
    parameters=(Parameter("dcg", 2.0, read_base, lambda _: "'ln'"),),
    suggested=("DCG@10", "DCG@20"),
    reported=("DCG@10",),
)
