"""Reciprocal rank: a measure of completely judged ranks that the product does not have, to be planted in its tables."""

import numpy as np

from analytics.releases import verify_measures
from sampling.measures import registry
from sampling.measures.families import RELEVANT, Family
from sampling.measures.kinds import Complete


def of_topic(measure, gains):
    """Return 1/rank of the first relevant document; of chances to be relevant, the mean of that."""
    none_above = np.cumprod(np.insert(1 - gains, 0, 1.0, axis=-1), axis=-1)[..., :-1]
    return (gains * none_above / np.arange(1, gains.shape[-1] + 1)).sum(axis=-1)


RR = Family(
    key="RR",
    label="Reciprocal rank",
    help="1/rank of the first relevant document.",
    kind=Complete(of_topic),
    parameters=(RELEVANT,),
    binary=True,
    suggested=("RR@10",),
    reported=("RR@10",),
)


def verified(gains):
    """Return the same as the verifier has it: in words of its own."""
    value, chance = 0.0, 1.0
    for rank, gain in enumerate(gains.tolist(), 1):
        value, chance = value + chance * gain / rank, chance * (1 - gain)
    return value


def plant(monkeypatch):
    """Add it to the product's measures, and to those of the verifier (on a scale whose grade 1 is relevant)."""
    monkeypatch.setattr(registry, "FAMILIES", (*registry.FAMILIES, RR))
    form = verify_measures.FirstRanks(lambda highest: np.arange(highest + 1.0) >= 1, verified)
    monkeypatch.setitem(verify_measures.COMPLETE, "RR", form)
