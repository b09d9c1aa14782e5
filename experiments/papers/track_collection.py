"""Simulated collections like that of the Million Query track of 2009: systems, topics, and a sample judged of each.

Source of the design: Carterette and Soboroff (2010), section 3.1; Aslam and Pavlu's statAP prior and Stevens' buckets
for the sample. The generator is ours: its parameters were chosen once so that the share of relevant labels (.26), of
documents drawn with probability below .01 (about a tenth) and of topics without a relevant document (.15) are the
track's. No number of the paper was fitted.
"""

from dataclasses import dataclass

import numpy as np

from sampling.arrays import FloatArray, IndexArray
from sampling.rejudging import SampledTopic, sampled_average_precision


@dataclass(frozen=True)
class Shape:
    """How large a simulated collection is, and how its systems differ."""

    n_systems: int = 35
    n_families: int = 8
    n_candidates: int = 3500
    depth: int = 800
    n_judged: int = 54
    share_empty: float = 0.15  # of topics without a relevant document
    median_relevant: float = 320.0
    relevant_spread: float = 0.8  # of the logarithm
    quality_spread: float = 0.08
    noise_slope: float = (
        3.0  # own noise grows as the quality falls: random labels then still tell weak systems
    )


@dataclass(frozen=True)
class TrackTopic:
    """A topic's judged sample in judging order, with the prior that drew it."""

    sample: SampledTopic
    prior: FloatArray

    @property
    def labels(self) -> IndexArray:
        return self.sample.is_relevant.astype(np.int64)

    def with_labels(self, labels: IndexArray) -> SampledTopic:
        return SampledTopic(self.sample.ranks, labels == 1, self.sample.inclusion_probability)


def rank_prior(depth: int) -> FloatArray:
    """Return statAP's prior of ranks 1 to depth: (1 + H_Z - H_(r-1)) / (2 Z).

    >>> rank_prior(4).round(6).tolist()
    [0.385417, 0.260417, 0.197917, 0.15625]
    """
    harmonic = np.concatenate(([0.0], np.cumsum(1.0 / np.arange(1, depth + 1))))
    prior: FloatArray = (1.0 + harmonic[-1] - harmonic[:-1]) / (2.0 * depth)
    return prior


def bucket_sample(
    prior: FloatArray, n_judged: int, rng: np.random.Generator
) -> tuple[IndexArray, FloatArray]:
    """Return documents and inclusion probabilities of a draw by Stevens' buckets, in random order.

    The documents are sorted by prior and cut into buckets of `n_judged`, the last filled with none; buckets are drawn
    with replacement in proportion to their prior, and from each as many documents without replacement as it was drawn.
    """
    order = np.argsort(-prior, kind="stable")
    order = order[prior[order] > 0]
    n_buckets = -(-order.size // n_judged)
    padded = np.concatenate((order, np.full(n_buckets * n_judged - order.size, -1)))
    buckets = padded.reshape(n_buckets, n_judged)
    weights = np.where(buckets >= 0, prior[buckets], 0.0).sum(axis=1)
    chances = weights / weights.sum()
    counts = rng.multinomial(n_judged, chances)
    drawn = [rng.choice(buckets[one], counts[one], replace=False) for one in np.flatnonzero(counts)]
    chance = np.repeat(chances[counts > 0], counts[counts > 0])
    documents = np.concatenate(drawn)
    shuffled = rng.permutation(documents.size)
    kept = shuffled[documents[shuffled] >= 0]
    return documents[kept], chance[kept]


def make_collection(n_topics: int, seed: int, shape: Shape = Shape()) -> list[TrackTopic]:  # frozen
    """Return the topics of a simulated collection."""
    rng = np.random.default_rng(seed)
    quality = 1.0 + shape.quality_spread * rng.standard_normal(shape.n_systems)
    own_noise = 0.6 * (1.0 + shape.noise_slope * np.maximum(0.0, quality.max() - quality))
    family = rng.integers(0, shape.n_families, shape.n_systems)
    return [_make_topic(quality, own_noise, family, rng, shape) for _ in range(n_topics)]


def _make_topic(
    quality: FloatArray, own_noise: FloatArray, family: IndexArray, rng: np.random.Generator, shape: Shape
) -> TrackTopic:
    n = shape.n_candidates
    n_relevant = 0
    if rng.random() >= shape.share_empty:
        size = shape.median_relevant * np.exp(shape.relevant_spread * rng.standard_normal())
        n_relevant = int(np.clip(size, 1, n // 2))
    relevant = np.zeros(n)
    relevant[:n_relevant] = 1.0  # which documents these are plays no part
    findability, difficulty = rng.exponential(1.0, n), rng.uniform(0.5, 1.5)
    signal = 1.2 * difficulty * relevant * findability
    shared = rng.standard_normal(n)
    of_family = 0.6 * rng.standard_normal((shape.n_families, n))
    scores = quality[:, np.newaxis] * signal + shared + of_family[family]
    scores += own_noise[:, np.newaxis] * rng.standard_normal(scores.shape)
    order = np.argsort(-scores, axis=1)[:, : shape.depth]
    ranks = np.full(scores.shape, np.inf)
    np.put_along_axis(
        ranks, order, np.arange(1.0, shape.depth + 1)[np.newaxis, :].repeat(len(order), 0), axis=1
    )
    prior = np.zeros(n)
    np.add.at(prior, order.ravel(), np.tile(rank_prior(shape.depth), len(order)) / len(order))
    documents, chances = bucket_sample(prior, shape.n_judged, rng)
    sample = SampledTopic(ranks[:, documents], relevant[documents] == 1, np.minimum(chances, 1.0))
    return TrackTopic(sample, prior[documents])


def mean_scores(samples: list[SampledTopic]) -> FloatArray:
    """Return statMAP of every system: topics without a relevant label count as 0."""
    scores: FloatArray = np.mean([sampled_average_precision(sample) for sample in samples], axis=0)
    return scores
