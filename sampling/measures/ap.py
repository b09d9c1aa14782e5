"""Average precision: divided by the number of relevant documents, not by the smaller of it and the cutoff."""

from dataclasses import replace

import numpy as np

from sampling.measures.families import RELEVANT, Family, FloatArray
from sampling.measures.kinds import Counts, Numerator, Ratio
from sampling.measures.pairwise import PRECISION_PAIRS
from sampling.measures.precision import with_threshold


def reciprocal(rank: FloatArray) -> FloatArray:
    """Return 1/rank."""
    return np.asarray(1.0 / rank)


def relevant_documents(
    steps: FloatArray, totals: Counts, known: Counts, depth: int
) -> tuple[FloatArray, FloatArray]:
    """Return the number of relevant documents of every topic, and of all: at least what is known, and one a topic."""
    of_sums = np.maximum(totals[0].sum(axis=0), known[0].sum(axis=0))
    return np.maximum(np.maximum(totals[0], known[0]), 1.0), of_sums


OF_PREDICTIONS = Ratio(Numerator(reciprocal, has_products=True), relevant_documents, PRECISION_PAIRS)
AP = Family(
    key="AP",
    label="Average precision",
    help="Precision at the relevant documents, divided by their number: mean over topics, or micro AP.",
    kind=OF_PREDICTIONS,
    parameters=(RELEVANT,),
    aliases=("MAP",),
    binary=True,
    suggested=("AP",),
    reported=("AP@{depth}",),
    ir_measures=with_threshold,
)
STATAP = Family(
    key="statAP",
    label="statAP",
    help="Average precision from the sampled documents alone, all predictions 0: a value without an interval.",
    kind=replace(OF_PREDICTIONS, has_prediction=False),
    parameters=(RELEVANT,),
    binary=True,
    suggested=("statAP",),
)
