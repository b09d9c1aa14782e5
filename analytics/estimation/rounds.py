"""A run in one round of judging against a run in another: other topics, other assessors, other audits.

Within a campaign two runs are compared document by document, with w_a - w_b. Two rounds have a number each, and what
these have in common is little, but must be counted: documents that one audit took in both rounds, and topics that both
rounds have.

Source: docs/methods/rounds.md; Welch (1947); Derrick, Russ, Toher and White (2017) for samples that share a part.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.checks import finite, integers
from analytics.estimation.claims import CLAIMS as KNOWN_CLAIMS
from analytics.estimation.claims import LIKE_THESE, THESE
from analytics.estimation.comparison import compare
from analytics.estimation.estimate import Estimate, Floats, Ints, Refusal, estimate

THESE_TOPICS, TOPICS_LIKE_THESE = THESE.key, LIKE_THESE.key
CLAIMS = tuple(claim.key for claim in KNOWN_CLAIMS)  # the first is the default
FEWEST_SHARED = 3  # topics; with fewer their correlation is not estimated


@dataclass(frozen=True, eq=False)
class AuditedItems:
    """Items with gold of one round, an entry an item.

    Attributes
    ----------
    lever : array
        w/pi: the weight of the item in the run's number over its chance of being drawn and judged.
    residual : array
        r: the gold gain less what the estimator predicts from the labels.
    audit_probability : array
        Within (0, 1].
    term : array
        What the item adds to the estimated variance of the run's number: for the degrees of freedom.

    Raises
    ------
    ValueError
        Arrays of different lengths, or a probability outside (0, 1].
    """

    lever: Floats
    residual: Floats
    audit_probability: Floats
    term: Floats

    def __post_init__(self) -> None:
        lever = finite("lever", self.lever)
        chance = finite("audit_probability", self.audit_probability, lever.shape)
        if ((chance <= 0) | (chance > 1)).any():
            raise ValueError(f"audit_probability must be within (0, 1], got {chance.min()} to {chance.max()}")
        arrays = {
            "lever": lever,
            "residual": finite("residual", self.residual, lever.shape),
            "audit_probability": chance,
            "term": finite("term", self.term, lever.shape),
        }
        for name, array in arrays.items():
            object.__setattr__(self, name, array)

    def at(self, places: Ints) -> "AuditedItems":
        """Return some of the items, in the order given."""
        return AuditedItems(
            self.lever[places], self.residual[places], self.audit_probability[places], self.term[places]
        )


@dataclass(frozen=True)
class ClaimedDifference:
    """A difference of two rounds under one claim. `p_value` is None where no source of error was measured.

    `limited_by` is "topics" or "judging": which of the two gave the half-width. `degrees_of_freedom` is None where the
    normal quantile was used.
    """

    claim: str
    value: float
    low: float
    high: float
    p_value: float | None
    degrees_of_freedom: float | None
    statistic: float | None
    limited_by: str


# -- these topics -------------------------------------------------------------------------------------------


def audit_covariance(first: AuditedItems, second: AuditedItems, *, one_audit: bool) -> float:
    """Return ``C = sum a b r_A r_B (pi_AB - pi_A pi_B)/(pi_A pi_B pi_AB)`` over the items audited in both rounds.

    Two audits are independent: pi_AB = pi_A pi_B, and C is 0, also where both had the same gold grade. One audit of
    both goes by one permanent random number an item: pi_AB = min(pi_A, pi_B). Unbiased over audits for fixed residuals.

    Parameters
    ----------
    first, second : AuditedItems
        The items audited in both rounds, in the same order.
    one_audit : bool
        Both audits used the same random numbers.
    """
    return float(_covariance_terms(first, second, one_audit=one_audit).sum())


def _covariance_terms(first: AuditedItems, second: AuditedItems, *, one_audit: bool) -> Floats:
    a, b = first.audit_probability, second.audit_probability
    if a.shape != b.shape:
        raise ValueError(f"both rounds must have the same items, got {a.size} and {b.size}")
    if not one_audit:
        return np.zeros(a.shape)
    together = np.minimum(a, b)
    products = first.lever * second.lever * first.residual * second.residual
    return np.asarray(products * (together - a * b) / (a * b * together))


def for_these_topics(
    first: Estimate, second: Estimate, both: tuple[AuditedItems, AuditedItems], *, one_audit: bool
) -> Estimate:
    """Return the difference of two rounds for the topics that they have: ``V = V_A + V_B - 2 C``.

    At least ``(sqrt V_A - sqrt V_B)^2``, which no two numbers with these variances can go below. Assumption: the two
    draws are independent; so are the audits, or they are one (`audit_covariance`). Degrees of freedom by
    Satterthwaite's rule over the items, those audited in both rounds counted once.

    Parameters
    ----------
    first, second : Estimate
        Of `analytics.estimation.two_phase`, one a round.
    both : two AuditedItems
        The items audited in both rounds, as either round has them.
    """
    terms = _covariance_terms(*both, one_audit=one_audit)
    parts = first.standard_error**2, second.standard_error**2
    least = (first.standard_error - second.standard_error) ** 2
    variance = max(sum(parts) - 2 * float(terms.sum()), least)
    spread = _spread(first) + _spread(second)
    if one_audit and terms.size:
        a, b = both
        larger = np.minimum(a.audit_probability, b.audit_probability)
        together = (1 - larger) * (a.term + b.term - 2 * terms) ** 2
        apart = (1 - a.audit_probability) * a.term**2 + (1 - b.audit_probability) * b.term**2
        spread += float((together - apart).sum())
    df = max(1.0, 2 * variance**2 / spread) if spread > 0 and variance > 0 else None
    n = min(first.n, second.n)
    sources = tuple(dict.fromkeys((*first.sources, *second.sources)))
    return estimate(
        first.value - second.value, variance, degrees_of_freedom=df, n=n, sources=sources, components=()
    )


def _spread(one: Estimate) -> float:
    """Return ``2 V^2 / df``: half the variance of V is what `poisson_degrees_of_freedom` was made from."""
    return 0.0 if one.degrees_of_freedom is None else 2 * one.standard_error**4 / one.degrees_of_freedom


# -- topics like these --------------------------------------------------------------------------------------


def over_two_samples(
    first: ArrayLike, second: ArrayLike, shared_first: ArrayLike = (), shared_second: ArrayLike = ()
) -> Estimate | Refusal:
    """Return the difference of two means over topics, of which the two samples may share some.

    ``V = s_A^2/n_A + s_B^2/n_B - 2 r s_A s_B n_c/(n_A n_B)`` with r the correlation over the n_c shared topics, 0 where
    these are fewer than 3; ``df = (n_c - 1) + (g - n_c + 1) (n_A + n_B - 2 n_c)/(n_A + n_B)``, g Welch's. No shared
    topic: Welch's t; all shared: the paired t. Values that err by themselves, independently, have that error in their
    spread. Assumption: the topics of each round are an independent sample of topics alike.

    Parameters
    ----------
    first, second : arrays
        The values of the topics, one each.
    shared_first, shared_second : int arrays
        Places of the shared topics in either, in the same order.

    Returns
    -------
    Estimate or Refusal
        Refused below 2 topics in a sample, and where the values do not vary.
    """
    a, b = finite("first", first), finite("second", second)
    if a.ndim != 1 or b.ndim != 1:
        raise ValueError(f"values must be flat, one per topic, got {a.ndim} and {b.ndim} axes")
    of_a = integers("shared_first", np.asarray(shared_first, dtype=np.int64), 0, max(a.size - 1, 0))
    of_b = integers("shared_second", np.asarray(shared_second, dtype=np.int64), 0, max(b.size - 1, 0))
    if of_a.size != of_b.size or np.unique(of_a).size != of_a.size or np.unique(of_b).size != of_b.size:
        raise ValueError(f"shared topics must be pairs of different places, got {of_a.size} and {of_b.size}")
    fewest = min(a.size, b.size)
    if fewest < 2:
        return Refusal(f"{fewest} topic in one round says nothing about others; at least 2 are needed", 1)
    n_shared, n = of_a.size, a.size + b.size
    of_mean = float(a.var(ddof=1)) / a.size, float(b.var(ddof=1)) / b.size
    spreads = float(a.std(ddof=1)), float(b.std(ddof=1))
    common = 2 * _correlation(a[of_a], b[of_b]) * spreads[0] * spreads[1] * n_shared / (a.size * b.size)
    variance = sum(of_mean) - common
    largest = max(float(np.abs(a).max()), float(np.abs(b).max()))
    if variance <= max((1e-12 * largest) ** 2, 1e-12 * sum(of_mean)):  # what rounding leaves of 0
        return Refusal("all topics have the same value or difference, so their spread cannot be estimated")
    welch = sum(of_mean) ** 2 / (of_mean[0] ** 2 / (a.size - 1) + of_mean[1] ** 2 / (b.size - 1))
    df = (n_shared - 1) + (welch - n_shared + 1) * (n - 2 * n_shared) / n
    return estimate(
        float(a.mean() - b.mean()), variance, degrees_of_freedom=df, n=fewest, sources=("topics",)
    )


def _correlation(a: Floats, b: Floats) -> float:
    """Return the correlation of the shared topics' values; 0 where it cannot be estimated."""
    if a.size < FEWEST_SHARED:
        return 0.0
    spread = float(a.std()) * float(b.std())
    if spread <= 1e-12 * max(float(np.abs(a).max()), float(np.abs(b).max()), 1e-300) ** 2:
        return 0.0
    return float(np.clip(np.mean((a - a.mean()) * (b - b.mean())) / spread, -1.0, 1.0))


# -- both claims --------------------------------------------------------------------------------------------


def by_claim(
    these: Estimate, topics: Estimate | Refusal
) -> tuple[ClaimedDifference | Refusal, ClaimedDifference]:
    """Return the difference for topics like these, and for these topics.

    ``h = max(h_T, h_F)`` and ``p = max(p_T, p_F)``: what holds for topics like these is never better known than what
    holds for these. The spread over topics holds the errors of judging as well, so the two are not added.

    Parameters
    ----------
    these : Estimate
        Of `for_these_topics`: h_F and p_F.
    topics : Estimate or Refusal
        Of `over_two_samples` with the values of the topics: h_T and p_T.
    """
    own = _claim(THESE_TOPICS, these, "judging")
    if isinstance(topics, Refusal):
        return topics, own
    wider = _claim(TOPICS_LIKE_THESE, topics, "topics")
    if these.high - these.low > topics.high - topics.low:
        wider = _claim(TOPICS_LIKE_THESE, these, "judging")
    known = [one.p_value for one in (own, _claim(TOPICS_LIKE_THESE, topics, "topics"))]
    p = max((value for value in known if value is not None), default=None)
    half = (wider.high - wider.low) / 2
    return (
        ClaimedDifference(
            TOPICS_LIKE_THESE,
            these.value,
            these.value - half,
            these.value + half,
            p,
            wider.degrees_of_freedom,
            wider.statistic,
            wider.limited_by,
        ),
        own,
    )


def _claim(claim: str, found: Estimate, limited_by: str) -> ClaimedDifference:
    if found.standard_error == 0:  # every document judged by gold assessors: nothing is left to estimate
        return ClaimedDifference(claim, found.value, found.low, found.high, None, None, None, limited_by)
    tested = compare(found)
    if isinstance(tested, Refusal):
        raise ValueError(f"an estimate with an error must have a test, got {tested.reason}")
    p, t = tested.p_value, tested.statistic
    df = found.degrees_of_freedom
    if df is not None and not math.isfinite(df):
        df = None
    return ClaimedDifference(claim, found.value, found.low, found.high, p, df, t, limited_by)
