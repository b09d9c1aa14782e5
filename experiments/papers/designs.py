"""Schnabel's designs of draws with replacement: a distribution over the items. Source: Schnabel et al. (2016)."""

from numpy.typing import ArrayLike

from experiments.papers.sizes import baseline_contrast, pair_contrast, ranking_contrast
from sampling.arrays import numbers, run_table
from sampling.designs import normalise
from sampling.measures.families import FloatArray
from sampling.measures.sparse import SparseRuns


def _proportional_to(contrast: FloatArray, utility: ArrayLike) -> FloatArray:
    prior = numbers("utility", utility, contrast.size)
    return normalise(prior * contrast)


def naive_design(weights: ArrayLike | SparseRuns, utility: ArrayLike) -> FloatArray:
    """Return Q proportional to utility * sum of the runs' weights: the heuristic that optimal designs are
    shown against.

    It spends judgments on documents that all runs rank alike. For a comparison with a baseline pass the
    baseline as one of the rows: left out, documents that only it returns can never be drawn.

    Source: Schnabel et al. (2016), section 7.3 and Table 6, after Yilmaz et al. (2008) and multiple
    importance sampling.

    Parameters
    ----------
    weights : array, shape (n_runs, n_items), or SparseRuns
    utility : array, shape (n_items,)
    """
    rows = run_table("weights", weights)
    return _proportional_to(rows.item_sums(rows.value), utility)


def single_design(weights: ArrayLike, utility: ArrayLike) -> FloatArray:
    """Return Q proportional to utility * w: least variance for one run's score, if the prior utility is
    right.

    Source: Schnabel et al. (2016), Eq 4. For a prior probability p of binary relevance the optimum takes
    sqrt(p) as utility, in general the root of the second moment; the paper plugs in p.

    Raises
    ------
    ValueError
        Negative or not finite input, or nothing to draw (an empty run).
    """
    return _proportional_to(numbers("weights", weights), utility)


def pair_design(weights_a: ArrayLike, weights_b: ArrayLike, utility: ArrayLike) -> FloatArray:
    """Return Q proportional to utility * abs(w_a - w_b): least variance for the difference of two runs.

    Source: Schnabel et al. (2016), Eq 9. Zero where the runs agree: see `require_support` before any reuse.

    Examples
    --------
    >>> pair_design([1.0, 0.5, 0.0], [1.0, 0.0, 0.5], [2.0, 3.0, 1.0]).tolist()
    [0.0, 0.75, 0.25]
    """
    return _proportional_to(pair_contrast(weights_a, weights_b), utility)


def baseline_design(
    candidates: ArrayLike | SparseRuns, baseline: ArrayLike, utility: ArrayLike
) -> FloatArray:
    """Return Q proportional to utility * sqrt(sum (w_j - w_0)^2): least summed variance of all candidates'
    differences.

    Source: Schnabel et al. (2016), Eq 11.
    """
    return _proportional_to(baseline_contrast(candidates, baseline), utility)


def ranking_design(weights: ArrayLike | SparseRuns, utility: ArrayLike) -> FloatArray:
    """Return Q proportional to utility * sqrt(sum (w_j - mean w)^2): least summed variance of all pairwise
    differences.

    Source: Schnabel et al. (2016), Eq 13.
    """
    return _proportional_to(ranking_contrast(weights), utility)
