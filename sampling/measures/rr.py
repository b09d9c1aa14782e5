"""Reciprocal rank: 1/rank of the first relevant document."""

import numpy as np

from sampling.measures.families import RELEVANT, Family, FloatArray, Measure
from sampling.measures.kinds import Complete
from sampling.measures.precision import with_threshold


def reciprocal_rank(measure: Measure[Complete], gains: FloatArray) -> FloatArray:
    """Return 1/rank of the first relevant document, of gains [..., rank]; of chances to be relevant, its mean."""
    nothing_above = np.cumprod(np.insert(1 - gains, 0, 1.0, axis=-1), axis=-1)[..., :-1]
    return np.asarray((gains * nothing_above / np.arange(1, gains.shape[-1] + 1)).sum(axis=-1))


RR = Family(
    key="RR",
    label="Reciprocal rank",
    help="1/rank of the first relevant document, 0 without one among the first k.",
    kind=Complete(reciprocal_rank),
    parameters=(RELEVANT,),
    aliases=("MRR",),
    binary=True,
    suggested=("RR@10",),
    reported=("RR@10",),
    ir_measures=with_threshold,
)
