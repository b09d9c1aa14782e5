"""Imported scores read as gold elsewhere reads them: how surely relevant is a document of this score and popularity?

    logit p' = logit p + intercept + slope (s - 1/2) + popularity x

p is the prior from the ranks, s the score, x the log odds of being returned. The three coefficients are fitted where
there are scores of the same name and gold; nothing of the campaign that uses them is in them. They are fixed before its
draw, so an estimate with p' as the offset of its prediction is as unbiased as with any other prior.
"""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from sampling.arrays import MAX_VALUE, numbers, probabilities
from sampling.logistic import LogisticProblem, minimise
from sampling.measures.families import FloatArray
from sampling.measures.sparse import SparseRuns
from sampling.pooling import as_ranks
from sampling.prediction import CALIBRATION_RIDGE, FEATURE_RIDGE, share_of_gain, standardise

FEWEST_GOLD = 50
NO_TOPICS = 1e9  # a ridge that leaves topics' intercepts at 0: those of other topics say nothing here


@dataclass(frozen=True)
class Calibration:
    """The coefficients of the logit, and on how many documents with gold they rest.

    Attributes
    ----------
    intercept, slope, popularity : float
        In logits: of a score of 1/2; from a score of 0 to one of 1; of a unit of `log_popularity`.
    n_gold : int
        Documents with gold and a score that they were fitted to.
    n_relevant : float
        How many of them are relevant, by gold; a document whose gold judges disagree counts in part.
    """

    intercept: float
    slope: float
    popularity: float
    n_gold: int
    n_relevant: float

    def prior(self, prior: ArrayLike, score: ArrayLike, popularity: ArrayLike) -> FloatArray:
        """Return the probability of relevance of items with these scores, within (0, 1).

        Parameters
        ----------
        prior : array, shape (n_items,)
            From the ranks, within (0, 1).
        score : array, shape (n_items,)
            Within [0, 1].
        popularity : array, shape (n_items,)
            `log_popularity` of the item.

        Raises
        ------
        ValueError
            Something outside these bounds.

        Examples
        --------
        >>> Calibration(0.5, 1.0, 0.25, 50, 20.0).prior([0.5], [1.0], [-4.0]).tolist()
        [0.5]
        """
        before, says, popular = _items(prior, score, popularity)
        eta = (
            scipy.special.logit(before)
            + self.intercept
            + self.slope * (says - 0.5)
            + self.popularity * popular
        )
        return share_of_gain(eta)


def log_popularity(ranks: ArrayLike | SparseRuns, depth: int) -> FloatArray:
    """Return the log odds that a run returns the item within the depth: (count + 1/2) / (n_runs - count + 1/2).

    It is the second of `sampling.prediction.rank_features` before these are standardised, so that it means the same in
    collections of other items.

    Examples
    --------
    >>> log_popularity([[1, 0], [2, 9]], depth=5).round(6).tolist()
    [1.609438, -1.609438]
    """
    entries = as_ranks(ranks)
    count = entries.item_sums((entries.value <= depth).astype(np.float64))
    return np.asarray(np.log((count + 0.5) / (entries.n_runs - count + 0.5)))


def fit_calibration(
    prior: ArrayLike, score: ArrayLike, popularity: ArrayLike, relevant: ArrayLike
) -> Calibration:
    """Return the penalised logistic regression of gold on score and popularity around the prior.

    Intercept and slope have the ridge of a prior's calibration, the standardised popularity that of a feature of the
    ranks (`sampling.prediction`): little gold leaves them near 0, where the scores say nothing.

    Parameters
    ----------
    prior, score, popularity : arrays, shape (n_gold,)
        As `Calibration.prior`, of the documents with gold.
    relevant : array, shape (n_gold,)
        Their relevance by gold, within [0, 1].

    Raises
    ------
    ValueError
        Fewer than 50 documents, gold that is relevant in all or in none, a score that is the same everywhere, or values
        outside these bounds.
    """
    if (n_gold := np.size(relevant)) < FEWEST_GOLD:
        raise ValueError(f"{n_gold} documents have gold and a score; {FEWEST_GOLD} or more are needed")
    before, says, popular = _items(prior, score, popularity)
    target = probabilities("relevant", relevant, before.size)
    if np.all(target == target[0]):
        alike = "relevant" if target[0] > 0 else "not relevant"
        raise ValueError(f"all {target.size} documents with gold and a score are {alike}")
    if np.all(says == says[0]):
        raise ValueError(f"all {says.size} documents with gold have the score {says[0]:g}")
    columns = np.array([np.ones(says.size), says - 0.5, standardise(popular[:, None])[:, 0]])
    ridge = np.array([CALIBRATION_RIDGE, CALIBRATION_RIDGE, FEATURE_RIDGE])
    topic = np.zeros(says.size, dtype=np.int64)
    shift, slope, of_spread = minimise(
        LogisticProblem(columns, target, scipy.special.logit(before), topic, 1, ridge, NO_TOPICS)
    ).coefficients
    is_constant = not columns[2].any()
    per_unit = 0.0 if is_constant else float(of_spread / popular.std())
    return Calibration(
        intercept=float(shift - per_unit * popular.mean()),
        slope=float(slope),
        popularity=per_unit,
        n_gold=target.size,
        n_relevant=float(target.sum()),
    )


def is_binary(score: ArrayLike) -> bool:
    """Return whether every score is 0 or 1: labels of yes and no, not probabilities or shares of a highest grade.

    >>> is_binary([0.0, 1.0, 1.0]), is_binary([0.0, 0.5])
    (True, False)
    """
    return bool(np.isin(probabilities("score", score), (0.0, 1.0)).all())


def _items(
    prior: ArrayLike, score: ArrayLike, popularity: ArrayLike
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the three as arrays of one length; ValueError unless they are within their bounds."""
    before = probabilities("prior", prior)
    refused = before[(before <= 0.0) | (before >= 1.0)]
    if refused.size:
        raise ValueError(f"prior must be within (0, 1), got {refused[0]}")
    popular = numbers("popularity", popularity, before.size, least=-MAX_VALUE)
    return before, probabilities("score", score, before.size), popular
