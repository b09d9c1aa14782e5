"""All outcomes of a tiny draw with their chances: proofs of estimators without simulation error."""

from itertools import product

import numpy as np
import pytest

# Sensitivity .8, specificity .9: scores and their noise (docs/methods/derivations/sampling.md, section 5.1).
SCORE, NOISE = np.array([-1 / 7, 9 / 7]), np.array([8 / 49, 18 / 49])
GRADE, CHANCE_OF_ONE = np.array([1, 0, 1]), np.array([0.1, 0.8])

exactly = {"abs": 1e-12, "rel": 1e-12}


def poisson_samples(pi):
    """Yield every sample of a Poisson draw with its chance."""
    for taken in product([False, True], repeat=len(pi)):
        mask = np.array(taken)
        yield mask, float(np.prod(np.where(mask, pi, 1 - pi)))


def labellings():
    """Yield every set of labels of three items of grades 1, 0, 1 with its chance."""
    for given in product([0, 1], repeat=3):
        label = np.array(given)
        one = CHANCE_OF_ONE[GRADE]
        yield label, float(np.prod(np.where(label == 1, one, 1 - one)))


def summary(outcomes):
    """Return mean and variance of the values, and the mean of the estimated variances.

    `outcomes` are (estimate, chance) or (value, estimated variance, chance).
    """
    rows = [o if len(o) == 3 else (o[0].value, o[0].standard_error ** 2, o[1]) for o in outcomes]
    value, variance, chance = np.array(rows).T
    assert chance.sum() == pytest.approx(1, **exactly)
    mean = float((value * chance).sum())
    return mean, float(((value - mean) ** 2 * chance).sum()), float((variance * chance).sum())


def draws(n, *designs):
    """Yield every sequence of n draws with its chance, from one design or one design per draw."""
    for drawn in product(range(len(designs[0])), repeat=n):
        places = np.array(drawn)
        yield places, float(np.prod([designs[min(t, len(designs) - 1)][i] for t, i in enumerate(drawn)]))
