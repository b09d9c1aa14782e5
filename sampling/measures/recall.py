"""Recall: the share of a topic's relevant documents that a run lists down to rank k."""

import numpy as np

from sampling.measures.ap import relevant_documents
from sampling.measures.families import RELEVANT, Family, FloatArray
from sampling.measures.kinds import Numerator, Ratio
from sampling.measures.precision import with_threshold


def one_each(rank: FloatArray) -> FloatArray:
    """Return 1 at every rank."""
    return np.ones_like(rank)


RECALL = Family(
    key="R",
    label="Recall",
    help="The share of the topic's relevant documents that are among the first k: mean over topics, or micro R@k.",
    kind=Ratio(Numerator(one_each), relevant_documents, needs_cutoff=True),
    parameters=(RELEVANT,),
    aliases=("Recall",),
    binary=True,
    suggested=("R@10",),
    reported=("R@{depth}",),
    ir_measures=with_threshold,
)
