"""How the confusion matrices of a release follow from its facts: who gave which grade where gold says which is right.

Part of every release, beside verify.py, which calls it; NumPy is all it needs.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

if __package__:
    from analytics.releases.verify_facts import Facts, Floats, Ints, returned_by
    from analytics.releases.verify_quantiles import beta_quantile
else:  # in a release, the files lie beside each other
    from verify_facts import Facts, Floats, Ints, returned_by  # type: ignore
    from verify_quantiles import beta_quantile  # type: ignore


CLOSE = 1e-9  # relative


def effective_counts(group: Ints, true: Ints, shares: Floats, a: Floats, n_groups: int) -> Floats:
    """Return counts[group, true, given] of audited labels, whose chance to be known was a.

    Rows are shares weighted by 1/a, times Kish's effective number ``(sum 1/a)^2 / sum 1/a^2``. `shares[label, given]`
    is 1 for the grade that was given.
    """
    g = shares.shape[1]
    weighted = np.zeros((n_groups, g, g))
    np.add.at(weighted, (group, true), shares / a[:, None])
    squares = np.bincount(group * g + true, 1 / a**2, n_groups * g).reshape(n_groups, g)
    total = weighted.sum(axis=2)
    factor = np.divide(total, squares, out=np.zeros_like(total), where=squares > 0)
    return np.asarray(weighted * factor[:, :, None])


def confusion_tables(facts: Facts) -> Iterator[tuple[str, str, Floats, int, int]]:
    """Yield scope, key, counts[true, given], number of gold checks and of audited labels."""
    g, n = facts.gains.size, len(facts.assessors)
    # where whole topics are audited, errors within a topic are no independent counts: gold checks alone count
    alone = facts.audited & (not facts.has_whole_topics)
    labels = np.flatnonzero(alone[facts.label_item])
    item, who = facts.label_item[labels], facts.label_assessor[labels]
    true, a, given = (
        facts.audit_grade[item],
        facts.audit_probability[item],
        np.eye(g)[facts.label_grade[labels]],
    )
    checks = np.zeros((n, g, g))
    np.add.at(checks, (facts.check_assessor, facts.check_true, facts.check_given), 1)
    once = ~facts.label_is_check[labels]
    together = checks + effective_counts(who[once], true[once], given[once], a[once], n)
    n_checks, n_audited = checks.sum(axis=(1, 2)).astype(int), np.bincount(who[once], minlength=n)
    for place, assessor in enumerate(facts.assessors):
        yield "assessor", assessor, together[place], int(n_checks[place]), int(n_audited[place])
    if n:  # where nobody has judged, nobody errs
        yield "pooled", "all", together.sum(axis=0), int(n_checks.sum()), int(n_audited.sum())
    tiers = np.array(facts.tiers)
    for tier in sorted(set(facts.tiers)):
        own = tiers == tier
        yield "tier", tier, together[own].sum(axis=0), int(n_checks[own].sum()), int(n_audited[own].sum())
    groups = {"topic": (facts.topic[facts.item[item]], facts.topics)}
    if facts.all_runs and labels.size:
        popular = returned_by(facts)[facts.item[item]]
        edges = np.unique(np.quantile(popular, [1 / 3, 2 / 3], method="inverted_cdf"))
        third = np.unique(np.searchsorted(edges, popular, side="left"), return_inverse=True)[1]
        groups["popularity"] = third, [str(number + 1) for number in range(3)]
    for scope, (group, keys) in groups.items():
        of_groups = effective_counts(group, true, given, a, len(keys))
        for place in np.unique(group).tolist():
            yield scope, keys[place][:100], of_groups[place], 0, int((group == place).sum())
    votes = np.zeros((facts.item.size, g))
    np.add.at(votes, (facts.label_item, facts.label_grade), 1)
    audited = np.flatnonzero(alone)
    if audited.size:
        best = votes[audited] == votes[audited].max(axis=1, keepdims=True)
        shared = best / best.sum(axis=1, keepdims=True)
        one = np.zeros(audited.size, dtype=np.int64)
        counts = effective_counts(
            one, facts.audit_grade[audited], shared, facts.audit_probability[audited], 1
        )[0]
        yield "aggregate", "majority", counts, 0, audited.size


def with_intervals(counts: Floats) -> tuple[list[Any], list[Any], list[Any]]:
    """Return the shares of every row with their Jeffreys intervals: quantiles of Beta(x + 1/2, n - x + 1/2)."""
    shares: list[Any] = []
    low: list[Any] = []
    high: list[Any] = []
    for row in counts.tolist():
        n = sum(row)
        if n <= 0:
            shares, low, high = [*shares, None], [*low, None], [*high, None]
            continue
        shares.append([x / n for x in row])
        low.append([0.0 if x == 0 else beta_quantile(0.025, x + 0.5, n - x + 0.5) for x in row])
        high.append([1.0 if x == n else beta_quantile(0.975, x + 0.5, n - x + 0.5) for x in row])
    return shares, low, high


def accuracy_of(counts: Floats, recorded_high: float | None) -> dict[str, Any]:
    """Return the share of right grades with its interval, which ends at 1 if there was no error.

    In weighted counts rounding decides whether nothing or a millionth of a millionth is wrong: either is right.
    """
    right, whole = float(np.trace(counts)), float(counts.sum())
    wrong = 0.0 if recorded_high == 1 and whole - right <= CLOSE * whole else max(0.0, whole - right)
    ends = (rows[0] for rows in with_intervals(np.array([[right, wrong]])))
    names = ("accuracy", "accuracy_low", "accuracy_high")
    return {name: end and end[0] for name, end in zip(names, ends, strict=True)}
