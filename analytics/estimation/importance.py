"""Estimates from draws with replacement: the paper's (Eq 3, 5, 6, 7), and what repairs their traps.

Arrays hold one entry per *draw*: a pair that was drawn twice stands twice. Only `distinct_items` has one entry per
item. One row of weights per target (w of a run, or w_a - w_b of two), one result per row.

Labels. `label_variance=None` says that labels are without error, or that a pair drawn twice was judged twice.
If labels are noisy (corrected scores) and a pair's one label is used for all of its draws, give nu and `item`:
the noise of a repeated label does not average out over its draws, and s^2/n sees none of it between them.
What is missing is ``sum_frame nu w^2``, whatever the draws: given all labels that assessors would give, s^2/n is
the variance around the sum of these labels, and that sum has itself this variance around the truth. It is
estimated without bias by the mean over draws of ``nu w^2/Q``.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analytics.estimation.checks import finite, integers
from analytics.estimation.estimate import (
    FEWEST_ITEMS,
    Estimates,
    Floats,
    Ints,
    Refusal,
    all_refused,
    estimates,
    few_items_warning,
    few_or_alike,
    no_spread,
    refused_where,
    too_few,
)
from analytics.estimation.estimators import sample
from analytics.estimation.targets import TargetWeights, Weights, as_targets

PAPERS_Z = 1.96  # Eq 6 prints 1.96, not the exact quantile and not t
MOST_JOINT = 20_000  # items whose joint probabilities are worth the wait: above, the larger variance is taken
BLOCK = 512  # items for which all joint probabilities are held at once
ALMOST = np.nextafter(1.0, 0.0)  # where log1p(-1) or a division by 0 would be infinite


def importance_sampling(
    weights: Weights,
    utility: ArrayLike,
    draw_probability: ArrayLike,
    *,
    batch: ArrayLike | None = None,
    item: ArrayLike | None = None,
    label_variance: ArrayLike | None = None,
    fewest: int = FEWEST_ITEMS,
) -> Estimates:
    """Return the mean of ``z = u w / Q`` over n draws with replacement, one result per target.

    Assumption: the draws are independent with probabilities Q, one entry per draw; several batches:
    `balance_heuristic`, or, where a design saw labels, each draw's Q of its own batch and `batch`: the means of the
    batches weighted n_b/n, exactly unbiased (docs/methods/derivations/sampling.md, section 2.6). The interval is
    value +- 1.96 times s/sqrt(n): the paper's, kept for comparison. With `batch` (0, 1, ...) the variance is taken
    within batches: ``sum_b (n_b/n)^2 s_b^2/n_b``, which is unbiased where the batches' designs differ; Eq 6, which
    pools them, is then too large. `item` (any integers, one per draw) and `label_variance`: top of the module.

    Source: Schnabel et al. (2016), Eq 3, 6 and (with w = w_a - w_b) 7; the term for repeated labels is ours.
    """
    drawn = sample(
        weights, utility, draw_probability, label_variance=label_variance, named="draw_probability"
    )
    targets, n = drawn.targets, drawn.utility.size
    if fewest < 0:
        raise ValueError(f"fewest must be at least 0, got {fewest}")
    batches = np.zeros(n, dtype=np.int64) if batch is None else integers("batch", batch, 0)
    if batches.shape != (n,):
        raise ValueError(f"batch must have length {n}, got {batches.size}")
    items = _items(item, drawn.utility, n, needed=label_variance is not None)
    single = np.flatnonzero(np.bincount(batches) == 1).tolist()

    used = targets.counts(_first_of_each(items))
    few = refused_where((used < fewest) | (n < 2), lambda target: too_few(int(used[target]), max(2, fewest)))
    if single or n < 2:
        reason = f"batches of 1 draw have no variance of their own: {single}"
        return all_refused(len(targets), Refusal(reason, len(single)), but=few)
    z = targets.times(drawn.utility / drawn.probability)
    count = np.bincount(batches)
    drawing = np.zeros(len(targets))
    for part, squares in z.spreads(np.ones(n), batches, count.size):
        drawing[part] = (squares * count / np.maximum(1, count - 1)).sum(axis=1) / n**2
    alike = refused_where((drawing == 0) & (fewest > 0), lambda target: no_spread(int(used[target])))
    parts = {"drawing": drawing, "label noise": np.maximum(0.0, targets.squares(drawn.noise) / n)}
    found = estimates(
        drawn.values() / n,
        {name: parts[name] for name in drawn.sources},
        degrees_of_freedom=np.inf,
        n=np.full(len(targets), n),
        refusals=alike | few,
        quantile=PAPERS_Z,
        warning=lambda _: "",
    )
    return found.with_warning([few_items_warning(size) for size in used.tolist()])


def _first_of_each(items: Ints) -> NDArray[np.bool_]:
    """Return 1 for the first draw of each item: draws of one item have one weight."""
    first = np.zeros(items.size, dtype=bool)
    first[np.unique(items, return_index=True)[1]] = True
    return first


def _items(item: ArrayLike | None, values: Floats, n: int, *, needed: bool) -> Ints:
    """Return which item each draw is of; without `item` every draw counts as an item of its own."""
    if item is None:
        if needed:
            raise ValueError("label_variance needs item: which draws share one label")
        return np.arange(n)
    items = integers("item", item)
    if items.shape != (n,):
        raise ValueError(f"item must have length {n}, got {items.size}")
    _, first, index = np.unique(items, return_index=True, return_inverse=True)
    unlike = np.flatnonzero(values != values[first][index])
    if needed and unlike.size:
        raise ValueError(
            f"draws of one item must share one utility, got {values[first][index][unlike[0]]} and "
            f"{values[unlike[0]]} for item {items[unlike[0]]}; without label_variance each draw has its own label"
        )
    return items


def balance_heuristic(
    weights: Weights,
    utility: ArrayLike,
    batch_probability: ArrayLike,
    batch: ArrayLike,
    *,
    item: ArrayLike | None = None,
    label_variance: ArrayLike | None = None,
    fewest: int = FEWEST_ITEMS,
) -> Estimates:
    """Return the estimate from several batches with ``Q(t) = sum_b (n_b/n) Q_b(t)`` at every draw.

    `batch_probability[b, draw]` is the probability of *every* batch's design at every draw, not only of the
    batch it came from; `batch[draw]` says which that was. Assumption: no design depends on labels of an earlier
    batch (the pooled estimate is then biased: see `importance_sampling`). Variance within batches, exactly unbiased;
    for Eq 6 as printed, pass the pooled Q to `importance_sampling` without `batch`.

    Source: Schnabel et al. (2016), Eq 5; Veach and Guibas (1995).
    """
    designs = finite("batch_probability", batch_probability)
    if designs.ndim != 2 or designs.size == 0:
        raise ValueError(f"batch_probability must be [batch, draw], got shape {designs.shape}")
    if ((designs < 0) | (designs > 1)).any():
        raise ValueError(f"batch_probability must be in [0, 1], got {designs.min()} to {designs.max()}")
    n_batches, n = designs.shape
    batches = integers("batch", batch, 0, n_batches - 1)
    if batches.shape != (n,):
        raise ValueError(f"batch must have length {n}, got {batches.size}")
    own = designs[batches, np.arange(n)]
    if (own == 0).any():
        raise ValueError(
            f"a draw must be possible in its own batch, got probability 0 at draw {own.argmin()}"
        )
    count = np.bincount(batches, minlength=n_batches)
    if (count == 0).any():
        raise ValueError(f"every batch must have at least 1 draw, got 0 in batch {int(count.argmin())}")

    mixture = ((count / n)[:, None] * designs).sum(axis=0)
    return importance_sampling(
        weights, utility, mixture, batch=batches, item=item, label_variance=label_variance, fewest=fewest
    )


# -- what was drawn with replacement, each item counted once -----------------------------------------------


def distinct_inclusion(draw_probability: ArrayLike, n_draws: ArrayLike) -> Floats:
    """Return ``pi = 1 - prod_b (1 - Q_b)^n_b``, the chance that an item is among the draws at all.

    `draw_probability` is Q [item] of one batch of `n_draws`, or [batch, item] with one number per batch.

    >>> distinct_inclusion([.5, .5], 2).tolist()
    [0.75, 0.75]
    """
    designs, draws = _designs(draw_probability, n_draws)
    never = (draws[:, None] * np.log1p(-np.minimum(designs, ALMOST))).sum(axis=0)
    return np.asarray(np.where((designs == 1).any(axis=0), 1.0, -np.expm1(never)))


def _designs(draw_probability: ArrayLike, n_draws: ArrayLike) -> tuple[Floats, Floats]:
    designs = np.atleast_2d(finite("draw_probability", draw_probability))
    draws = np.atleast_1d(finite("n_draws", n_draws))
    if draws.shape != (designs.shape[0],) or (draws < 1).any() or (draws % 1).any():
        raise ValueError(f"n_draws must be {designs.shape[0]} whole numbers >= 1, got {draws.tolist()}")
    if ((designs < 0) | (designs > 1)).any() or (designs.sum(axis=1) > 1 + 1e-9).any():
        raise ValueError(
            f"draw_probability must be in [0, 1] and sum to at most 1 over different items, got "
            f"{designs.min(initial=0)} to {designs.max(initial=0)}, sum {designs.sum(axis=1).max()}"
        )
    return designs, draws


def _joint_kernels(designs: Floats, draws: Floats, pi: Floats) -> Iterator[tuple[slice, Floats]]:
    """Yield (pi_ij - pi_i pi_j)/pi_ij for some items i and all items j, and 0 for j = i."""
    odds = designs / (1 - np.minimum(designs, ALMOST))
    for start in range(0, pi.size, BLOCK):
        part = slice(start, start + BLOCK)
        # (1-Qi-Qj) = (1-Qi)(1-Qj) (1 - oi oj): no difference of nearly equal numbers is ever taken
        log_ratio = np.zeros((pi[part].size, pi.size))
        for one, n in zip(odds, draws, strict=True):
            log_ratio += n * np.log1p(-np.minimum(one[part, None] * one[None, :], ALMOST))
        excess = np.expm1(log_ratio) * ((1 - pi[part])[:, None] * (1 - pi)[None, :])
        joint = pi[part][:, None] * pi[None, :] + excess
        kernel = np.divide(excess, joint, out=np.zeros_like(excess), where=joint > 0)
        kernel[np.arange(pi[part].size), np.arange(start, start + pi[part].size)] = 0.0
        yield part, kernel


def distinct_items(
    weights: Weights,
    utility: ArrayLike,
    draw_probability: ArrayLike,
    n_draws: ArrayLike,
    *,
    prior: ArrayLike | None = None,
    prior_total: ArrayLike | None = None,
    label_variance: ArrayLike | None = None,
    fewest: int = FEWEST_ITEMS,
) -> Estimates:
    """Return ``sum_frame f w + sum_distinct (u - f) w / pi``: the rescue for what was drawn with replacement.

    One entry per *distinct* drawn item; Q and `n_draws` as in `distinct_inclusion` (designs that did not see
    labels). It counts each judgment once, needs no second label, and its variance is nearly that of a draw without
    replacement, so its interval is far shorter than Eq 6's once items repeat. The variance is
    ``sum_i (1-pi_i) z_i^2 + sum_{i!=j} (pi_ij - pi_i pi_j)/pi_ij z_i z_j`` with z = e/pi, exactly unbiased; with
    several batches it can come out negative. Where it is not positive its first sum is taken, which leaves out that
    draws compete and is too large (the warning says so). ``sum nu w^2/pi`` is added; t with one degree of freedom less
    than there are uncertain items. Above 20,000 items the first sum is always taken: time grows with their square.

    Source: docs/methods/derivations/sampling.md, section 2.7; Horvitz and Thompson (1952).
    """
    targets = as_targets(weights)
    designs, draws = _designs(draw_probability, n_draws)
    if designs.shape[1] != targets.n_items:
        raise ValueError(f"draw_probability must be of {targets.n_items} items, got {designs.shape[1]}")
    drawn = sample(
        targets,
        utility,
        distinct_inclusion(designs, draws),
        prior=prior,
        prior_total=prior_total,
        label_variance=label_variance,
        named="the chance to be drawn",
    )
    pi = drawn.probability
    z = targets.times(drawn.surprise)
    largest = z.squares(1 - pi)
    variance = (
        largest + _competition(z, designs, draws, pi) if pi.size <= MOST_JOINT else np.zeros(largest.size)
    )
    replaced = (variance <= 0) & (largest > 0)
    parts = {
        "drawing": np.where(replaced, largest, np.maximum(0.0, variance)),
        "label noise": np.maximum(0.0, targets.squares(drawn.noise)),
    }
    n, uncertain = targets.n_weighed(), int(np.count_nonzero(pi < 1))
    alike = (z.n_weighed() == 0) & (uncertain > 0) & (fewest > 0)
    found = estimates(
        drawn.values(),
        {name: parts[name] for name in drawn.sources},
        degrees_of_freedom=max(1, uncertain - 1) if uncertain else np.inf,
        n=n,
        refusals=few_or_alike(n, alike, fewest),
    )
    return found.with_warning(["the variance is taken too large" if one else "" for one in replaced.tolist()])


def _competition(z: TargetWeights, designs: Floats, draws: Floats, pi: Floats) -> Floats:
    """Return the second sum of the variance of `distinct_items` by target, from the products of the runs' rows."""
    rows = z.runs.dense()
    products = np.zeros((len(rows), len(rows)))
    for part, kernel in _joint_kernels(designs, draws, pi):
        products += (rows[:, part] @ kernel) @ rows.T
    own = np.diagonal(products)
    first, second = z.pairs
    return np.concatenate([own, own[first] + own[second] - 2 * products[first, second]])
