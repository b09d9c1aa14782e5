"""Precision and mean gain: what the first k documents give on average."""

from typing import Any

import numpy as np

from sampling.measures.families import RELEVANT, Family, FloatArray, Measure
from sampling.measures.kinds import Linear
from sampling.measures.spelling import canonical


def equal_weights(measure: Measure[Linear], rank: FloatArray) -> FloatArray:
    """Return 1/k at every rank."""
    return np.full(rank.shape, 1.0 / measure.last_rank)


def with_threshold(measure: Measure[Any], _: FloatArray, relevant_grade: int) -> str:
    """Return the name with its lowest relevant grade, which is 1 by default in ir_measures; it has no micro."""
    if measure.averaging == "micro":
        return ""
    threshold = measure.relevant_grade or relevant_grade
    inside = [f"rel={threshold}"] if threshold > 1 else []
    return canonical(measure.family.key, inside, measure.cutoff)


PRECISION = Family(
    key="P",
    label="Precision",
    help="The share of relevant documents among the first k: weight 1/k at every rank.",
    kind=Linear(equal_weights),
    parameters=(RELEVANT,),
    binary=True,
    suggested=("P@10",),
    reported=("P@10",),
    ir_measures=with_threshold,
)
MEAN_GAIN = Family(
    key="Gain",
    label="Mean gain",
    help="The mean gain of the first k documents: weight 1/k at every rank.",
    kind=Linear(equal_weights),
    suggested=("Gain@10",),
)
