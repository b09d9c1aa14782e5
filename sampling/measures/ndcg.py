"""nDCG: DCG divided by that of the ideal ranking, Jarvelin and Kekalainen (2002)."""

import numpy as np

from sampling.measures.dcg import discount, read_base
from sampling.measures.families import Family, FloatArray, Measure, Parameter
from sampling.measures.kinds import Counts, Numerator, Ratio
from sampling.measures.spelling import canonical


def cancelled_base(text: str) -> None:
    """Read the logarithm's base, which cancels out: whatever it is, the measure is the same."""
    read_base(text)


def ideal_gain(steps: FloatArray, totals: Counts, known: Counts, depth: int) -> tuple[FloatArray, FloatArray]:
    """Return the DCG of the ideal ranking of every topic, and of all topics together.

    The ideal ranking has stair j on its first C_j ranks, so its gain is ``sum_j step_j D(C_j)``: D(C) is the discounts'
    sum down to rank C (or to the cutoff), linear between whole numbers. C_j is at least what is known to reach the
    stair. A topic has at least one document on the lowest stair: without one its numerator is 0 whatever the
    denominator, and the tools count it as 0.
    """
    ideal = np.concatenate((np.zeros(1), np.cumsum(discount(np.arange(1, depth + 1, dtype=np.float64)))))
    ranks = np.arange(ideal.size, dtype=np.float64)
    by_topic, of_sums = np.zeros_like(totals[0]), np.zeros_like(totals[0])
    for stair, step in enumerate(steps):
        count = np.maximum(totals[stair], known[stair])
        of_sums += step * np.interp(count, ranks, ideal)
        by_topic += step * np.interp(np.maximum(count, 1.0) if stair == 0 else count, ranks, ideal)
    return by_topic, of_sums.sum(axis=0)


def with_gains(measure: Measure[Ratio], gains: FloatArray, _: int) -> str:
    """Return the name with the scale's gains written out, where they are not the grades."""
    if measure.averaging == "micro":
        return ""
    if gains.tolist() == list(range(gains.size)):
        return canonical("nDCG", [], measure.cutoff)
    written = ",".join(f"{grade}:{gain:g}" for grade, gain in enumerate(gains.tolist()))
    return canonical("nDCG", [f"gains={{{written}}}"], measure.cutoff)


NDCG = Family(
    key="nDCG",
    label="nDCG",
    help="DCG divided by that of the ideal ranking: mean over topics, or micro nDCG@k, the ratio of the sums.",
    kind=Ratio(Numerator(discount), ideal_gain, has_one_step=True),
    parameters=(Parameter("dcg", None, cancelled_base),),
    aliases=("NDCG",),
    suggested=("nDCG@10",),
    reported=("nDCG@10",),
    ir_measures=with_gains,
)
