"""The expected width of the corrected interval after one more audit, by simulating that audit many times.

Every play selects items with the probabilities the audit would have, gives each a gold grade that its bronze grade
makes likely, and computes the interval of class means (`correction.correct`), which needs no fit. So the
drawing error, the number of items that happens to be selected, merged classes and t quantiles are all in it. What is
not: that errors may depend on more than the bronze grade, and items judged meanwhile.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analytics.estimation.correction import correct
from analytics.estimation.estimate import Estimate, Floats, Refusal
from analytics.estimation.gold_prediction import GoldPrediction
from analytics.estimation.samples import AuditSample
from sampling.campaign_plan import PlayedWidths

Ints = NDArray[np.int64]

MOST_PLAYS, FEWEST_PLAYS = 40, 12
ITEMS_PLAYED = 200_000  # in all plays together, about
FEWEST_PLAYS_WITH_INTERVAL = 0.5
MOST_FROM_CHECKS = 20.0  # gold checks of one bronze grade count as at most so many audited items
BESIDE_AN_AUDIT = 2.0  # and as so many once an audit has looked: checks are no random sample
STEPS = 100


@dataclass(frozen=True)
class Outlook:
    """The expected half-width, the standard error of this forecast, and the plays that it is the mean of."""

    half_width: float
    standard_error: float
    plays: PlayedWidths

    def times(self, factor: float) -> "Outlook":
        """Return the forecast with all widths times a factor."""
        plays = PlayedWidths(
            tuple(factor * width for width in self.plays.half_widths),
            tuple(factor**2 * variance for variance in self.plays.variances),
            self.plays.drawing_share,
            self.plays.n_plays,
        )
        return Outlook(factor * self.half_width, factor * self.standard_error, plays)


@dataclass(frozen=True)
class AuditedTarget:
    """One run, or one pair of runs, at the items that an audit can select; arrays have one entry an item.

    `weight` is w (or w_a - w_b), not divided; `prior` the prediction f; `bronze_class` what classes are made of and
    `bronze_grade` the grade that gold grades are predicted from; `audit_probability` that of the complete audits
    together, 0 where they could not select the item; `gold_grade` is read where audited.
    """

    weight: Floats
    draw_probability: Floats
    prior: Floats
    bronze_class: Ints
    bronze_grade: Ints
    audited: NDArray[np.bool_]
    gold_grade: Ints
    audit_probability: Floats
    gains: Floats

    def half_width(self) -> float | Refusal:
        """Return half the width of the 95 % confidence interval of `correct`, or its refusal."""
        result = self.estimate()
        return (result.high - result.low) / 2 if isinstance(result, Estimate) else result

    def estimate(self) -> Estimate | Refusal:
        """Return the estimate of `correct`; its value leaves out what the prior says of the whole frame."""
        audit = AuditSample(
            draw_probability=self.draw_probability,
            bronze_class=self.bronze_class,
            audited=self.audited,
            gold_grade=self.gold_grade,
            audit_probability=self.audit_probability,
            n_grades=self.gains.size,
        )
        # known, the total moves the interval and leaves its width
        return correct(self.weight[None], audit, self.gains, prior=self.prior, prior_total=[0.0]).estimates[0]

    def over(self, places: Ints) -> "AuditedTarget":
        """Return the target at some of the items."""
        own = {name: value[places] for name, value in vars(self).items() if name != "gains"}
        return AuditedTarget(**own, gains=self.gains)


# -- what gold grades are likely ------------------------------------------------------------------------------


def gold_given_bronze(check_counts: ArrayLike, bronze_grade: ArrayLike) -> Floats:
    """Return chance[bronze grade, gold grade] from gold checks, counts[true, given], and the bronze grades around.

    By Bayes: P(given | true) with half a check added to every cell, and the prevalence of true grades that best
    explains how often each bronze grade was given. Assumes that checks are judged as other items are.

    Source: Vardi and Lee (1993), the maximum likelihood solution of p J = h by repeated Bayes steps.

    Examples
    --------
    >>> gold_given_bronze([[1000, 0], [0, 1000]], [0, 0, 1]).round(2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    counts = np.asarray(check_counts, dtype=np.float64)
    if counts.ndim != 2 or counts.shape[0] != counts.shape[1] or not (counts >= 0).all():
        raise ValueError(f"check_counts must be a square table of counts, got shape {counts.shape}")
    n_grades = counts.shape[0]
    n_given = np.bincount(np.asarray(bronze_grade, dtype=np.int64), minlength=n_grades)
    if n_given.size > n_grades or n_given.sum() == 0:
        raise ValueError(
            f"bronze grades must be 0 to {n_grades - 1} and at least one, got {n_given.size} grades"
        )
    given = (counts + 0.5) / (counts + 0.5).sum(axis=1, keepdims=True)
    share = np.full(n_grades, 1.0 / n_grades)
    for _ in range(STEPS):
        joint = share[:, None] * given
        share = (joint / joint.sum(axis=0)) @ n_given / n_given.sum()
    joint = share[:, None] * given
    return np.asarray((joint / joint.sum(axis=0)).T)


def _audit_counts(target: AuditedTarget, n_grades: int) -> Floats:
    """Return counts[bronze grade, gold grade] of the audited items, weighted for their probabilities, rows keep n."""
    counts = np.zeros((n_grades, n_grades))
    seen = np.flatnonzero(target.audited)
    bronze, gold = target.bronze_grade[seen], target.gold_grade[seen]
    np.add.at(counts, (bronze, gold), 1 / target.audit_probability[seen])
    n = np.bincount(bronze, minlength=n_grades).astype(np.float64)
    total = counts.sum(axis=1)
    return np.asarray(counts * np.divide(n, total, out=np.zeros(n_grades), where=total > 0)[:, None])


def _alphas(target: AuditedTarget, check_counts: Floats) -> Floats | Refusal:
    """Return the Dirichlet parameters [bronze grade, gold grade] of what gold grades are likely."""
    n_grades = check_counts.shape[0]
    seen = _audit_counts(target, n_grades)
    n_seen, n_checked = seen.sum(axis=1), check_counts.sum(axis=0)
    if not n_seen.any() and not n_checked.any():
        return Refusal("no audit or gold check has measured the assessors' accuracy yet")
    if n_checked.any():
        expected = gold_given_bronze(check_counts, target.bronze_grade)
    else:
        overall = seen.sum(axis=0) + 0.5
        expected = np.tile(overall / overall.sum(), (n_grades, 1))
    strength = np.where(n_seen > 0, BESIDE_AN_AUDIT, np.clip(n_checked, BESIDE_AN_AUDIT, MOST_FROM_CHECKS))
    return np.asarray(seen + strength[:, None] * expected)


def predicted_errors(target: AuditedTarget, gold: GoldPrediction, audit_probability: ArrayLike) -> Floats:
    """Return the standard error that predictions of gold expect after audits with these probabilities [audit, item].

    The root of ``sum w^2/pi^2 [(1 - pi) ((h - g)^2 + s2) + (1/a - 1) s2]``: drawing, and audit. It assumes that h and
    s2 are right, and that the audit teaches nothing new.

    Parameters
    ----------
    target : AuditedTarget
    gold : GoldPrediction
        With g, h and s2 at the items of the target.
    audit_probability : array, shape (n_audits, n_items)
        Within (0, 1].

    Source: docs/methods/derivations/correction.md, section 3.2.
    """
    pi, a = target.draw_probability, np.asarray(audit_probability, dtype=np.float64)
    if a.ndim != 2 or a.shape[1] != pi.size or not ((a > 0) & (a <= 1)).all():
        raise ValueError(
            f"audit_probability must be rows of {pi.size} numbers in (0, 1], got shape {a.shape}"
        )
    square = np.square(target.weight / pi)
    drawing = (1 - pi) * ((gold.after - gold.before) ** 2 + gold.spread)
    return np.asarray(np.sqrt((square * drawing).sum() + (1 / a - 1) @ (square * gold.spread)))


# -- the forecast ---------------------------------------------------------------------------------------------


def outlook(
    target: AuditedTarget,
    next_probability: ArrayLike,
    check_counts: ArrayLike,
    rng: np.random.Generator,
    *,
    plays: int | None = None,
) -> Outlook | Refusal:
    """Return the mean half-width after an audit that raises the probabilities to `next_probability`, over its plays.

    Items that were audited stay so. Each play draws, for every bronze grade, the shares of gold grades from a Dirichlet
    distribution of what audits (weighted by 1/pi) and gold checks have shown; the items, each with the chance that its
    random number, which is above the old probability, is below the new one (of items without weight a systematic
    sample with the same chances); and their gold grades. The standard error is the spread of the plays: how uncertain
    the shares and the selected items make the half-width.

    Parameters
    ----------
    target : AuditedTarget
        All items that the next audit can select; what complete audits found.
    next_probability : array, shape (n_items,)
        Within (0, 1], nowhere below the target's.
    check_counts : array, shape (n_grades, n_grades)
        Gold checks [true, given]; zeros allowed.
    rng : numpy Generator
    plays : int
        At least 2; by default 40, and down to 12 where many items have weight.

    Returns
    -------
    Outlook, or a Refusal: nothing is known of how the grades err, or half of the plays still have no interval.

    Raises
    ------
    ValueError
        Probabilities out of bounds, below the present ones, or of another length.
    """
    pi = np.asarray(next_probability, dtype=np.float64)
    before = target.audit_probability
    if pi.shape != before.shape or not ((pi > 0) & (pi <= 1)).all():
        raise ValueError(f"next_probability must be {before.size} numbers in (0, 1], got shape {pi.shape}")
    if (pi < before).any():
        raise ValueError("next_probability must nowhere be below the present probability")
    if plays is not None and plays < 2:
        raise ValueError(f"plays must be at least 2, got {plays}")
    counts = np.asarray(check_counts, dtype=np.float64)
    alphas = _alphas(target, counts)
    if isinstance(alphas, Refusal):
        return alphas

    room = 1 - before
    chance = np.divide(pi - before, room, out=np.zeros(pi.size), where=room > 0)
    chance[target.audited] = 0.0
    played = replace(target, audit_probability=pi)
    # Items without weight matter little: through the classes' means and variances, if they are audited.
    has_part = target.audited | (target.weight != 0)
    weighed, others = np.flatnonzero(has_part), np.flatnonzero(~has_part & (chance > 0))
    n_plays = plays or int(np.clip(ITEMS_PLAYED / max(1, weighed.size), FEWEST_PLAYS, MOST_PLAYS))
    upto = np.cumsum(chance[others])
    found: list[Estimate] = []
    refusal = Refusal("no interval")
    for _ in range(n_plays):
        beside = others[_systematic(upto, rng)]
        selected = np.concatenate(
            [rng.random(weighed.size) < chance[weighed], np.ones(beside.size, dtype=bool)]
        )
        result = _play(played.over(np.concatenate([weighed, beside])), selected, alphas, rng)
        if isinstance(result, Refusal):
            refusal = result
        else:
            found.append(result)
    if len(found) < max(2.0, FEWEST_PLAYS_WITH_INTERVAL * n_plays):
        return Refusal(f"this audit would not be enough: {refusal.reason}", refusal.needed)
    widths = [(one.high - one.low) / 2 for one in found]
    spread = float(np.std(widths, ddof=1)) * np.sqrt(1 + 1 / len(widths))
    return Outlook(float(np.mean(widths)), float(spread), _plays_of(found, widths, n_plays))


def _plays_of(found: list[Estimate], widths: list[float], n_plays: int) -> PlayedWidths:
    """Return the plays that have an interval."""
    variances = [one.standard_error**2 for one in found]
    drawing = [dict(one.components).get("drawing", 0.0) for one in found]
    shares = [part / whole if whole else 0.0 for part, whole in zip(drawing, variances, strict=True)]
    return PlayedWidths(tuple(widths), tuple(variances), float(np.mean(shares)), n_plays)


def _systematic(upto: Floats, rng: np.random.Generator) -> Ints:
    """Return a sample with the chances whose running sum is given, of a size that is their sum, rounded up or down."""
    total = float(upto[-1]) if upto.size else 0.0
    return np.searchsorted(upto, np.arange(rng.random(), total, 1.0), side="right")


def _play(
    target: AuditedTarget, selected: NDArray[np.bool_], alphas: Floats, rng: np.random.Generator
) -> Estimate | Refusal:
    """Return the estimate after an audit that newly selects these items, with simulated gold grades."""
    shares = rng.standard_gamma(alphas)
    bounds = np.cumsum(shares / shares.sum(axis=1, keepdims=True), axis=1)[:, :-1]
    new = np.flatnonzero(selected)
    gold = np.where(target.audited, target.gold_grade, 0)
    gold[new] = (rng.random(new.size)[:, None] >= bounds[target.bronze_grade[new]]).sum(axis=1)
    return replace(target, audited=target.audited | selected, gold_grade=gold).estimate()
