"""The share of relevant items: a number of a campaign that has no runs, or beside them."""

import numpy as np

from sampling.measures.families import RELEVANT, Family, FloatArray, Measure, named_measure
from sampling.measures.kinds import Linear


def no_ranks(measure: Measure[Linear], rank: FloatArray) -> FloatArray:
    """Return 0 at every rank: every item has the same weight, whoever returns it."""
    return np.zeros(rank.shape)


SHARE_KIND = Linear(no_ranks)
# No run has a share, so that no list of measures has the family.
SHARE = Family(
    key="Share",
    label="Share of relevant items",
    help="The share of relevant documents among all that are judged: weight 1/N at every document.",
    kind=SHARE_KIND,
    parameters=(RELEVANT,),
    binary=True,
)


def share_measure(relevant_grade: int) -> Measure[Linear]:
    """Return the share of items whose grade is at least this.

    >>> share_measure(1).name
    'Share(rel=1)'
    """
    found = named_measure(SHARE, None, {RELEVANT.key: relevant_grade})
    return Measure(found.name, SHARE, SHARE_KIND, None, found.parameters)
