"""Expected reciprocal rank, Chapelle, Metzler, Zhang and Grinspan (2009), Eq 4 and 5."""

import numpy as np

from sampling.measures.families import Family, FloatArray, Measure
from sampling.measures.kinds import Complete


def stop_probabilities(highest_grade: int) -> FloatArray:
    """Return R = (2^grade - 1)/2^G of every grade: the probability that a document of it ends the search.

    G is the highest grade of the scale. Tools that know of no scale take a constant: gdeval 4.
    """
    grade = np.arange(highest_grade + 1)
    return np.asarray((2.0**grade - 1) / 2.0**highest_grade)


def expected_reciprocal_rank(measure: Measure[Complete], gains: FloatArray) -> FloatArray:
    """Return ERR = sum over r of R_r/r * prod over i < r of (1 - R_i), for R [..., rank].

    A reader stops at rank r with probability R_r; the value is the mean of 1/r, 0 for those who never stop.
    """
    value, reaches = np.zeros(gains.shape[:-1]), np.ones(gains.shape[:-1])
    for place in range(gains.shape[-1]):
        stops = reaches * gains[..., place]
        value += stops / (place + 1)
        reaches -= stops
    return value


ERR = Family(
    key="ERR",
    label="Expected reciprocal rank",
    help="The mean of 1/rank where a reader stops who is satisfied by a document with probability (2^grade - 1)/2^G.",
    kind=Complete(expected_reciprocal_rank, stop_probabilities),
    suggested=("ERR@10",),
    reported=("ERR@10",),
)
