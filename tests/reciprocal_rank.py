"""A measure of completely judged ranks to be planted in the product's tables: reciprocal rank under a name of its own.

Its key is nobody else's, so that the product may have reciprocal rank itself one day.
"""

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
    key="PlantedRR",
    label="Reciprocal rank",
    help="1/rank of the first relevant document.",
    kind=Complete(of_topic),
    parameters=(RELEVANT,),
    binary=True,
    suggested=("PlantedRR@10",),
    reported=("PlantedRR@10",),
)


def verified(gains):
    """Return the same as the verifier has it: in words of its own."""
    value, chance = 0.0, 1.0
    for rank, gain in enumerate(gains.tolist(), 1):
        value, chance = value + chance * gain / rank, chance * (1 - gain)
    return value


def plant(monkeypatch):
    """Add it to the product's measures, and to those of the verifier."""
    assert RR.key not in [family.key for family in registry.FAMILIES]
    monkeypatch.setattr(registry, "FAMILIES", (*registry.FAMILIES, RR))
    monkeypatch.setitem(
        verify_measures.COMPLETE, RR.key, verify_measures.FirstRanks(None, verified, binary=True)
    )
