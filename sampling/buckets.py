"""Buckets: the sampling of the Million Query track, by which documents that runs rank high are drawn more often.

A prior of documents from the runs; documents sorted by it and cut into buckets of m; m buckets drawn with replacement
by their prior sums P, and as many documents of a bucket as it was drawn, without replacement. A draw of buckets has
a fixed m and cannot be topped up: a larger m cuts other buckets.

Source: Aslam and Pavlu (2007), a practical sampling strategy for efficient retrieval evaluation; Stevens (1958),
sampling without replacement with probability proportional to size; docs/methods/sampled-measures.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from sampling.arrays import FloatArray, IndexArray, numbers


def rank_prior(length: int) -> FloatArray:
    """Return W of every rank of a run that returns `length` documents; they sum to 1.

    W(rank) = (1 + H_Z - H_(rank-1)) / (2 Z), H the harmonic numbers: how much a document at that rank takes part in
    the pairs of which average precision is a sum.

    Examples
    --------
    >>> rank_prior(4).round(6).tolist()
    [0.385417, 0.260417, 0.197917, 0.15625]
    """
    if length < 1:
        raise ValueError(f"length must be at least 1, got {length}")
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, length + 1))])
    return np.asarray((1.0 + harmonic[-1] - harmonic[:-1]) / (2.0 * length))


def run_prior(runs: Sequence[Sequence[int]], n_documents: int) -> FloatArray:
    """Return the prior of every document: the mean over runs of W at its rank, normalised to sum 1.

    Parameters
    ----------
    runs
        Of each run the documents it returns, numbers below n_documents, best first. One that returns nothing adds
        nothing.

    Raises
    ------
    ValueError
        A number out of bounds, a document twice in a run, no run that returns anything.
    """
    prior = np.zeros(n_documents)
    for place, run in enumerate(runs):
        documents = np.asarray(run, dtype=np.int64)
        if not documents.size:
            continue
        if documents.min() < 0 or documents.max() >= n_documents:
            raise ValueError(f"documents of run {place} must be within [0, {n_documents - 1}]")
        if np.unique(documents).size < documents.size:
            raise ValueError(f"run {place} returns a document twice")
        prior[documents] += rank_prior(documents.size)
    if not prior.any():
        raise ValueError(f"at least one of {len(runs)} runs must return a document")
    return np.asarray(prior / prior.sum())


@dataclass(frozen=True)
class Buckets:
    """A topic's documents in buckets of `size`; the last may hold fewer, and is drawn as if it were full.

    Attributes
    ----------
    size : int
        m: documents in a bucket, and buckets drawn.
    bucket : int array [document]
        -1 for a document of prior 0, which is never drawn.
    bucket_probability : array [bucket]
        P, the sums of the prior.
    """

    size: int
    bucket: IndexArray
    bucket_probability: FloatArray

    @property
    def inclusion_probability(self) -> FloatArray:
        """Return pi of every document: P of its bucket, 0 without one."""
        return np.where(self.bucket >= 0, self.bucket_probability[self.bucket], 0.0)

    def joint_probability(self) -> FloatArray:
        """Return pi_de of every two documents: P^2 inside a bucket, (1 - 1/m) P_a P_b across; pi on the diagonal."""
        single = self.inclusion_probability
        is_same = self.bucket[:, np.newaxis] == self.bucket
        joint = np.where(is_same, 1.0, 1.0 - 1.0 / self.size) * np.outer(single, single)
        np.fill_diagonal(joint, single)
        return np.asarray(joint)

    def sample(self, rng: np.random.Generator) -> IndexArray:
        """Return the documents of one draw, ascending: m of them less what fell on the empty places of the last."""
        times = rng.multinomial(self.size, self.bucket_probability)
        drawn = [
            rng.permutation(self._places(bucket))[: times[bucket]]
            for bucket in np.flatnonzero(times).tolist()
        ]
        documents = np.sort(np.concatenate(drawn))
        return np.asarray(documents[documents >= 0])

    def _places(self, bucket: int) -> IndexArray:
        """Return the bucket's documents, padded with -1 to its size."""
        documents = np.flatnonzero(self.bucket == bucket)
        return np.concatenate([documents, np.full(self.size - documents.size, -1, dtype=np.int64)])


def cut_buckets(prior: ArrayLike, size: int) -> Buckets:
    """Return the buckets of documents with that prior, sorted by falling prior; equal ones stay in their order.

    Parameters
    ----------
    prior : (n_documents,) array
        Not negative, with a positive sum; normalised here.
    size : int
        m: how many buckets are drawn, and documents a bucket holds.

    Examples
    --------
    >>> made = cut_buckets(run_prior([[0, 1, 2, 3], [2, 0, 4, 5]], 6), 2)
    >>> made.bucket.tolist(), made.bucket_probability.round(6).tolist()
    ([0, 1, 0, 2, 1, 2], [0.614583, 0.229167, 0.15625])
    """
    values = numbers("prior", prior)
    if size < 1:
        raise ValueError(f"size must be at least 1, got {size}")
    if not values.sum() > 0:
        raise ValueError("prior must have a sum above 0, got 0")
    order = np.argsort(-values, kind="stable")
    order = order[values[order] > 0]
    bucket = np.full(values.size, -1, dtype=np.int64)
    bucket[order] = np.arange(order.size) // size
    shares = np.bincount(bucket[order], values[order] / values.sum()).astype(np.float64)
    return Buckets(size, bucket, shares / shares.sum())  # of rounding, one bucket would have more than 1
