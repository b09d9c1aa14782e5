"""Goldberg's correction for any number of grades and for DCG (Eq 15-18), and differences of two systems.

A system's bronze labels come as `SystemLabels`; every label counts with a weight (its discount, divided by the number
of labels of its item) and has an assessor; one matrix for all: assessor 0 everywhere.
`matrices[assessor, true, given]`, rows sum to 1, `gold_per_grade[assessor, true]` is what a row rests on.
Assumptions: an assessor errs alike on all documents of a grade; the audit is no part of the labels; topics are a
sample. w = w_a - w_b makes one formula of every case from one shared audit to two separate ones.
Source: Goldberg et al. (2017); variances: docs/methods/derivations/noise-correction.md, section 3.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from analytics.estimation.checks import finite, integers
from analytics.estimation.estimate import Estimate, Floats, Ints, Refusal, estimate
from analytics.papers.combining import label_matrix, least_variance_scores, true_mix
from analytics.papers.inverse import matrix_variance, score_variance
from analytics.papers.refusals import separation_refusal

SOURCES = ("drawing", "label noise", "topics", "confusion matrices")


@dataclass(frozen=True)
class SystemLabels:
    """The labels a system's value is made of: the value is ``(1/n_topics) sum weight c(label)``."""

    topic: Ints
    assessor: Ints
    grade: Ints  # the given one
    weight: Floats
    n_topics: int


@dataclass(frozen=True)
class _Sum:
    """Per-topic corrected values, and pi[assessor, true]: the weighted true grades behind them, over n topics."""

    topic_values: Floats
    mix: Floats


def system_labels(
    topic: ArrayLike, assessor: ArrayLike, grade: ArrayLike, weight: ArrayLike, n_topics: int
) -> SystemLabels:
    """Return the validated labels of one system, one entry per label."""
    if n_topics < 1:
        raise ValueError(f"n_topics must be at least 1, got {n_topics}")
    of = integers("topic", topic, 0, n_topics - 1)
    by, given = integers("assessor", assessor, 0), integers("grade", grade, 0)
    if not of.size == by.size == given.size:
        raise ValueError(f"label arrays must be equally long, got {of.size}, {by.size}, {given.size}")
    return SystemLabels(of, by, given, finite("weight", weight, of.shape), n_topics)


# -- one system ---------------------------------------------------------------------------------------------


def grade_shares(label_shares: ArrayLike, matrix: ArrayLike) -> Floats:
    """Return ``m_A = J^-T h`` (Eq 17): the true grades' shares behind observed label shares. May be negative.

    >>> grade_shares([.3, .3, .4], [[.8, .15, .05], [.2, .6, .2], [.05, .15, .8]]).round(6).tolist()
    [0.266667, 0.333333, 0.4]
    """
    j = label_matrix(matrix)
    if j.shape[0] != j.shape[1]:
        raise ValueError(
            f"matrix must be square, got shape {j.shape}; more labels: analytics.papers.combining"
        )
    return true_mix(j, np.ones(j.shape[1]), label_shares)


def corrected_system(
    labels: SystemLabels,
    *,
    matrices: ArrayLike,
    gold_per_grade: ArrayLike,
    gains: ArrayLike,
    rng: np.random.Generator | None = None,
    pseudo_count: float = 0.5,
) -> Estimate | Refusal:
    """Return Eq 18, ``(1/n) sum weight c_a(label)`` with ``c_a = J_a^-1 v``, and its closed variance.

    ``Var = s_y^2/n + sum_a sum_g pi_a[g]^2 tau_a^2(g)/n_ag``: the paper has no formula for it. Degrees of freedom by
    Satterthwaite. Refused below 2 topics, for a grade without gold, or where labels do not separate the grades.
    More labels than grades: `analytics.papers.combining.least_variance_scores`, weighted by the labels' own frequency.
    `pseudo_count` is added to the matrices' cells for the variance; 0 gives the bare formula. `rng` (None: seed 0)
    serves the refusal for 3 or more grades.
    """
    return _difference_estimate((labels,), (1.0,), True, matrices, gold_per_grade, gains, rng, pseudo_count)


# -- two systems --------------------------------------------------------------------------------------------


def corrected_difference(
    a: SystemLabels,
    b: SystemLabels,
    *,
    same_topics: bool,
    matrices: ArrayLike,
    gold_per_grade: ArrayLike,
    gains: ArrayLike,
    rng: np.random.Generator | None = None,
    pseudo_count: float = 0.5,
) -> Estimate | Refusal:
    """Return the corrected difference of two systems as one number, whatever they share of the audit.

    The assessor tells which matrix, and so which audit, a label is corrected by. All labels by the same: one shared
    audit (`shared_audit_difference`); no assessor in common: two separate audits (Eq 10); and everything
    between. ``V_J`` has ``pi_a`` of w_a - w_b, which holds the covariance; topics add s_d^2/n if they are
    the same, s_a^2/n_a + s_b^2/n_b if not. Two periods of one judge are two assessors.
    """
    if same_topics and a.n_topics != b.n_topics:
        raise ValueError(f"the same topics must be equally many, got {a.n_topics} and {b.n_topics}")
    return _difference_estimate(
        (a, b), (1.0, -1.0), same_topics, matrices, gold_per_grade, gains, rng, pseudo_count
    )


def _difference_estimate(
    systems: tuple[SystemLabels, ...],
    signs: tuple[float, ...],
    same_topics: bool,
    matrices: ArrayLike,
    gold_per_grade: ArrayLike,
    gains: ArrayLike,
    rng: np.random.Generator | None,
    pseudo_count: float,
) -> Estimate | Refusal:
    j, gold, v = _matrices(matrices, gold_per_grade, gains)
    present = _present(systems, j)
    fewest = min(system.n_topics for system in systems)
    if fewest < 2:
        return Refusal(f"{fewest} topic; at least 2 are needed", 2 - fewest)
    for a in present:
        found = _matrix_refusal(j[a], gold[a], rng)
        if found is not None:
            return found

    shares = _shares(systems, j)
    scores = {int(a): least_variance_scores(j[a], shares[a], v) for a in present}
    sums = [_sum(system, j, shares, scores) for system in systems]
    values = [sign * one.topic_values for sign, one in zip(signs, sums, strict=True)]
    groups = [np.sum(values, axis=0)] if same_topics else values
    sampling = [float(group.var(ddof=1)) / group.size for group in groups]
    mix = np.sum([sign * one.mix for sign, one in zip(signs, sums, strict=True)], axis=0)
    audit = [_audit_cells(j[a], gold[a], scores[int(a)], mix[a], pseudo_count) for a in present]
    return _sum_estimate(
        float(sum(group.mean() for group in groups)), groups, sampling, np.stack(audit), gold[present]
    )


def _sum_estimate(
    value: float, groups: list[Floats], sampling: list[float], audit: Floats, gold: Floats
) -> Estimate | Refusal:
    drawn, known = sum(sampling), float(audit.sum())
    if drawn + known <= 0:
        return Refusal("all topics are alike and the audit has no errors, so the error cannot be estimated")
    spread = sum(part**2 / (group.size - 1) for part, group in zip(sampling, groups, strict=True))
    spread += float((audit**2 / np.maximum(1, gold - 1)).sum())
    return estimate(
        value,
        drawn + known,
        degrees_of_freedom=(drawn + known) ** 2 / spread,
        n=min(group.size for group in groups),
        sources=SOURCES,
        components=(("topics", drawn), ("confusion matrices", known)),
    )


def _matrices(
    matrices: ArrayLike, gold_per_grade: ArrayLike, gains: ArrayLike
) -> tuple[Floats, Floats, Floats]:
    j, v = finite("matrices", matrices), finite("gains", gains)
    if j.ndim != 3 or v.shape != (j.shape[1],):
        raise ValueError(f"matrices must be [assessor, {v.size} grades, labels], got {j.shape}")
    gold = finite("gold_per_grade", gold_per_grade, j.shape[:2])
    if (gold < 0).any():
        raise ValueError(f"gold_per_grade must be >= 0, got {gold.min()}")
    return j, gold, v


def _present(systems: tuple[SystemLabels, ...], j: Floats) -> Ints:
    for system in systems:
        if system.assessor.size == 0:
            raise ValueError("a system must have at least 1 label, got 0")
        if system.assessor.max() >= j.shape[0] or system.grade.max() >= j.shape[2]:
            raise ValueError(
                f"assessors must be below {j.shape[0]} and labels below {j.shape[2]}, "
                f"got {system.assessor.max()} and {system.grade.max()}"
            )
    return np.unique(np.concatenate([system.assessor for system in systems]))


def _matrix_refusal(matrix: Floats, gold: Floats, rng: np.random.Generator | None) -> Refusal | None:
    missing = np.flatnonzero(gold == 0)
    if missing.size:
        return Refusal(f"no gold label of true grade {int(missing[0])}", 10 * int(missing.size))
    return separation_refusal(label_matrix(matrix) * gold[:, None], rng)


def _shares(systems: tuple[SystemLabels, ...], j: Floats) -> Floats:
    """Return W[assessor, label]: how often each label was given, half a label added; matters for wide J only."""
    shares = np.full((j.shape[0], j.shape[2]), 0.5)
    for system in systems:
        np.add.at(shares, (system.assessor, system.grade), 1.0)
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def _sum(system: SystemLabels, j: Floats, shares: Floats, scores: dict[int, Floats]) -> _Sum:
    table = np.zeros((j.shape[0], j.shape[2]))
    for a, c in scores.items():
        table[a] = c
    parts = system.weight * table[system.assessor, system.grade]
    weighted = np.zeros_like(table)
    np.add.at(weighted, (system.assessor, system.grade), system.weight / system.n_topics)
    mix = np.zeros(j.shape[:2])
    for a in scores:
        mix[a] = true_mix(j[a], shares[a], weighted[a])
    values: Floats = np.bincount(system.topic, weights=parts, minlength=system.n_topics).astype(np.float64)
    return _Sum(values, mix)


def _audit_cells(matrix: Floats, gold: Floats, scores: Floats, mix: Floats, pseudo_count: float) -> Floats:
    """Return pi^2 tau^2 / n per grade; tau from cells with a count added, or a row without errors had none."""
    smoothed = (matrix * gold[:, None] + pseudo_count) / (gold[:, None] + matrix.shape[1] * pseudo_count)
    tau = score_variance(smoothed, scores)
    return np.array([matrix_variance([m], [t], [n]) for m, t, n in zip(mix, tau, gold, strict=True)])


# -- bootstrap ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bootstrap:
    """Standard error and percentile interval; `usable` is the share of draws whose matrices could be inverted."""

    value: float
    standard_error: float
    low: float
    high: float
    usable: float


def bootstrap_over_topics(
    table: ArrayLike,
    *,
    audit_counts: ArrayLike,
    gains: ArrayLike,
    rng: np.random.Generator,
    other: ArrayLike | None = None,
    draws: int = 2000,
    resample_audit: bool = True,
    pseudo_count: float = 0.5,
) -> Bootstrap | Refusal:
    """Return Eq 18 with its bootstrap error: topics drawn with replacement, and the audit drawn anew each time.

    `table[topic, assessor, label]` from `label_table`, the difference of two of them for the same topics; `other`
    is subtracted and has topics of its own. `audit_counts[assessor, true, given]`; rows are drawn from the
    shares with `pseudo_count` added, because a cell that is 0 would stay 0. The paper draws (query, document)
    pairs without replacement, which always gives the same sample, and does not draw the audit: its error is
    0, and without the audit the coverage is .839. Refused if a grade has no gold, less than 97.5 % of
    the draws can be inverted, or labels do not separate the grades.
    """
    tables = [finite("table", one) for one in ((table,) if other is None else (table, other))]
    counts, v = finite("audit_counts", audit_counts), finite("gains", gains)
    _check_bootstrap(tables, counts, v, draws, pseudo_count)
    used = np.flatnonzero(np.sum([np.abs(one).sum(axis=(0, 2)) for one in tables], axis=0) > 0)
    if (counts[used].sum(axis=2) == 0).any():
        return Refusal("an assessor has no gold label of some grade", 10)
    if min(len(one) for one in tables) < 2:
        return Refusal("1 topic; at least 2 are needed", 1)
    plain = counts[used] / counts[used].sum(axis=2, keepdims=True)
    if (np.abs(np.linalg.det(plain)) < 1e-9).any():
        return Refusal("a confusion matrix cannot be inverted: its determinant is 0")

    mixed = np.zeros((draws, used.size, v.size))
    for sign, one in zip((1.0, -1.0), tables, strict=False):
        often = rng.multinomial(len(one), np.full(len(one), 1 / len(one)), size=draws) / len(one)
        mixed += sign * np.einsum("dt,tal->dal", often, one[:, used])
    drawn = np.broadcast_to(plain, (draws, *plain.shape))
    if resample_audit:
        drawn = _audits(counts[used], draws, pseudo_count, rng)
    usable = (np.sign(np.linalg.det(drawn)) == np.sign(np.linalg.det(plain))).all(axis=1)
    if usable.mean() < 0.975:
        return Refusal(f"only {usable.mean():.3f} of the drawn matrices can be inverted: more gold is needed")
    for table in counts[used]:
        found = separation_refusal(table)
        if found is not None:
            return found
    c = np.linalg.solve(drawn[usable], np.broadcast_to(v[:, None], (int(usable.sum()), used.size, v.size, 1)))
    values = np.einsum("dal,dal->d", mixed[usable], c[..., 0])
    low, high = np.quantile(values, [0.025, 0.975])
    means = sum(sign * one[:, used].mean(axis=0) for sign, one in zip((1.0, -1.0), tables, strict=False))
    value = float(
        (means * np.linalg.solve(plain, np.broadcast_to(v[:, None], (used.size, v.size, 1)))[..., 0]).sum()
    )
    return Bootstrap(value, float(values.std(ddof=1)), float(low), float(high), float(usable.mean()))


def _audits(counts: Floats, draws: int, pseudo_count: float, rng: np.random.Generator) -> Floats:
    """Return drawn matrices [draw, assessor, true, given], a row from as many gold labels as it has."""
    drawn = np.zeros((draws, *counts.shape))
    for a, table in enumerate(counts):
        for g, row in enumerate(table):
            size = max(1, math.floor(float(row.sum()) + 0.5))
            shares = (row + pseudo_count) / (row.sum() + pseudo_count * row.size)
            drawn[:, a, g] = rng.multinomial(size, shares, size=draws) / size
    return drawn


def _check_bootstrap(
    tables: list[Floats], counts: Floats, gains: Floats, draws: int, pseudo_count: float
) -> None:
    shape = (gains.size, gains.size)
    if counts.ndim != 3 or counts.shape[1:] != shape or (counts < 0).any():
        raise ValueError(
            f"audit_counts must be [assessor, {shape[0]}, {shape[1]}] and >= 0, got {counts.shape}"
        )
    for one in tables:
        if one.ndim != 3 or one.shape[1:] != (counts.shape[0], gains.size):
            raise ValueError(f"table must be [topic, {counts.shape[0]}, {gains.size}], got {one.shape}")
    if draws < 200 or pseudo_count < 0:
        raise ValueError(f"draws must be >= 200 and pseudo_count >= 0, got {draws} and {pseudo_count}")
