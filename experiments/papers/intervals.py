"""Fieller's interval of a corrected number when documents have several votes (`analytics.papers.intervals`)."""

import math

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.checks import finite
from analytics.estimation.estimate import FEWEST_ITEMS, Z95, Refusal
from analytics.papers.intervals import Interval, as_asked, fieller_within
from analytics.papers.refusals import binary_separation, rate


def corrected_interval_of_shares(
    j: float,
    j_variance: float,
    relevant_shares: ArrayLike,
    not_relevant_shares: ArrayLike,
    *,
    refuse: bool = True,
) -> Interval | Refusal:
    """Return `corrected_interval` for documents with several votes: an entry is a document's vote share.

    `relevant_shares`: share of votes "relevant" of each gold relevant document; `not_relevant_shares`: share of
    votes "not relevant" of each gold non-relevant one. Votes on one document are alike, so that the variance is
    the documents' sample variance with one share 1 and one share 0 added, over n + 2; for single votes
    that is `corrected_interval`. Source: docs/methods/derivations/real-judges.md, section 4.3.

    >>> from analytics.papers.intervals import corrected_interval
    >>> corrected_interval_of_shares(.5, .001, [1] * 43 + [0] * 16, [1] * 67 + [0] * 17) == (
    ...     corrected_interval(.5, .001, (43, 59), (67, 84)))
    True
    """
    rates, sizes = [], []
    for name, values in (
        ("relevant_shares", relevant_shares),
        ("not_relevant_shares", not_relevant_shares),
    ):
        shares = finite(name, values)
        if shares.ndim != 1 or ((shares < 0) | (shares > 1)).any():
            raise ValueError(f"{name} must be a flat array in [0, 1], got {np.asarray(values).tolist()}")
        if shares.size == 0:
            noun = name.removesuffix("_shares").replace("_", " ")
            return as_asked(Refusal(f"no gold label that is {noun}", FEWEST_ITEMS), None, refuse)
        size = shares.size + 2
        m = (float(shares.sum()) + 1) / size
        rates.append((m, max(0.0, (float((shares**2).sum()) + 1) / size - m**2) / size))
        sizes.append(shares.size)
    separation = None
    if rates[0][0] + rates[1][0] - 1 < Z95 * math.sqrt(rates[0][1] + rates[1][1]):
        # one document is worth one vote at least: an upper bound of the gold that is missing
        separation = binary_separation((rates[0][0] * sizes[0], sizes[0]), (rates[1][0] * sizes[1], sizes[1]))
        separation = separation or Refusal(
            "sensitivity + specificity - 1 is within 1.96 standard errors of 0"
        )
    return fieller_within(rate("j", j), j_variance, (rates[0], rates[1]), separation, refuse)
