"""Computations of Carterette and Allan (2007) on a folder of runs: consensus, calibration, similarity, reweighting."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from analytics.lowcost.expected import expected_ap, expected_map
from analytics.lowcost.method_trials import kendall_tau_b, topics_of
from analytics.lowcost.run_folder import FolderTopic, RunFolder, average_precision
from sampling.arrays import FloatArray
from sampling.experts import Consensus, Preferences, RankedPool, consensus
from sampling.reweighting import Reweighting, reweighting, with_judgments
from sampling.similarity import mean_similarity, pseudo_judgments, similarities

BINS = np.arange(11) / 10
Documents = NDArray[np.bool_] | None


@dataclass(frozen=True)
class Study:
    """A collection with the consensus of its runs."""

    folder: RunFolder

    @cached_property
    def scores(self) -> FloatArray:
        """MAP of the whole runs by the qrels."""
        return expected_map([topic.average_precision() for topic in self.folder.topics])

    @cached_property
    def consensuses(self) -> list[Consensus]:
        return [consensus(Preferences.of(topic.pool)) for topic in self.folder.topics]

    @cached_property
    def expected(self) -> FloatArray:
        """EMAP without judgments."""
        return self.expected_scores(self.consensuses)

    def expected_scores(self, fits: Sequence[Consensus]) -> FloatArray:
        topics = zip(self.folder.topics, fits, strict=True)
        return expected_map([expected_ap(topic.pool, fit.probability) for topic, fit in topics])

    def weighted(self, weights: FloatArray) -> FloatArray:
        """EMAP where the runs have weights."""
        return self.expected_scores(
            [consensus(Preferences.of(topic.pool, weights)) for topic in self.folder.topics]
        )

    def tau(self, scores: FloatArray) -> float:
        """Kendall's tau-b with the ranking by MAP; 0 where one of them orders nothing."""
        return float(kendall_tau_b(scores, self.scores))

    def correlation(self, values: FloatArray) -> float:
        """Pearson's correlation with MAP."""
        return pearson(values, self.scores)

    def similarity(self, documents: Callable[[FolderTopic], Documents] = lambda _: None) -> FloatArray:
        """Return d of every run, over all documents of the pools or some."""
        pools = []
        for topic in self.folder.topics:
            some = documents(topic)
            pools.append(topic.pool if some is None else topic.pool.part(some))
        return mean_similarity([similarities(pool) for pool in pools])

    def subset(self, runs: Sequence[int]) -> "Study":
        """Return the study of some runs alone: the pools are what these return."""
        names = tuple(self.folder.runs[run] for run in runs)
        return Study(RunFolder(names, tuple(topics_of(self.folder.topics, runs))))

    def replaced(self, rng: np.random.Generator | None) -> "Study":
        """Return the study of the same lists with other documents; its runs are scored as before."""
        topics = [replace(topic, pool=replaced(topic, rng)) for topic in self.folder.topics]
        return Study(RunFolder(self.folder.runs, tuple(topics)))

    @cached_property
    def labels(self) -> NDArray[np.bool_]:
        """Whether the pools' documents are relevant, one topic after the other."""
        return np.concatenate([topic.is_relevant for topic in self.folder.topics])

    @cached_property
    def thetas(self) -> FloatArray:
        return np.concatenate([fit.theta for fit in self.consensuses])

    @cached_property
    def reweighted(self) -> tuple[Reweighting, FloatArray]:
        """Return the weights after a few judgments, and EMAP with them."""
        topics = self.folder.topics
        found = reweighting(
            [topic.pool for topic in topics], lambda topic, place: bool(topics[topic].is_relevant[place])
        )
        parts = zip(topics, found.consensuses, found.judged, strict=True)
        scores = [
            expected_ap(topic.pool, with_judgments(fit.probability, labels)) for topic, fit, labels in parts
        ]
        return found, expected_map(scores)

    def judged_alone(self, found: Reweighting) -> FloatArray:
        """Return MAP where the judged relevant documents are all there are."""
        return expected_map(
            [
                average_precision(topic.ranks[:, [place for place, label in labels.items() if label]])
                for topic, labels in zip(self.folder.topics, found.judged, strict=True)
            ]
        )

    def pseudo_taus(self, n_draws: int, seed: int, *, by_popularity: bool, whole: bool) -> FloatArray:
        """Return tau of each draw of pseudo-judgments: whole runs scored, or their first ranks alone."""
        taus = []
        for draw in range(n_draws):
            rng = np.random.default_rng([seed, draw])
            scores = []
            for topic in self.folder.topics:
                n_relevant = int(topic.is_relevant.sum())
                drawn = pseudo_judgments(topic.pool, n_relevant, rng, by_popularity=by_popularity)
                scores.append(average_precision((topic.ranks if whole else topic.pool.ranks)[:, drawn]))
            taus.append(self.tau(expected_map(scores)))
        return np.array(taus)

    def preference_correlation(self) -> float:
        """Return the correlation of n_ij with p_i - p_j, the mean over topics."""
        values = []
        for topic, fit in zip(self.folder.topics, self.consensuses, strict=True):
            p, ranks = fit.probability, topic.pool.ranks
            counts = np.array([(ranks[:, [i]] < ranks).sum(axis=0) for i in range(p.size)])
            off = ~np.eye(p.size, dtype=bool)
            values.append(pearson(counts[off].astype(float), np.subtract.outer(p, p)[off]))
        return float(np.mean(values))


def pearson(first: FloatArray, second: FloatArray) -> float:
    """Return the correlation; NaN of fewer than two values, or of equal ones."""
    if min(first.size, second.size) < 2 or not (np.ptp(first) > 0 and np.ptp(second) > 0):
        return float("nan")
    return float(np.corrcoef(first, second)[0, 1])


def explained_deviance(theta: FloatArray, labels: NDArray[np.bool_]) -> float:
    """Return 1 less the deviance of a logistic regression on theta over that of the intercept alone."""
    columns = np.stack([np.ones(theta.size), theta])
    coefficients = np.array([np.log(labels.mean() / (1 - labels.mean())), 0.0])
    for _ in range(50):
        p = expit(coefficients @ columns)
        step = np.linalg.solve((columns * (p * (1 - p))) @ columns.T, columns @ (labels - p))
        coefficients = coefficients + step
        if np.abs(step).max() < 1e-12:
            break
    alone = np.full(theta.size, labels.mean())
    return 1 - _deviance(expit(coefficients @ columns), labels) / _deviance(alone, labels)


def _deviance(p: FloatArray, labels: NDArray[np.bool_]) -> float:
    return float(-2 * np.log(np.where(labels, p, 1 - p)).sum())


def shares_by_bin(p: FloatArray, labels: NDArray[np.bool_]) -> list[tuple[str, float, int]]:
    """Return of each tenth of p with documents its name, the share of relevant ones and how many there are."""
    place = np.clip(np.searchsorted(BINS, p, side="right") - 1, 0, 9)
    rows = []
    for one in range(10):
        inside = place == one
        if inside.any():
            name = f"p from {BINS[one]:.1f} to {BINS[one + 1]:.1f}"
            rows.append((name, float(labels[inside].mean()), int(inside.sum())))
    return rows


def replaced(topic: FolderTopic, rng: np.random.Generator | None) -> RankedPool:
    """Return the lists with other documents of the same relevance: the pool's first by id, or drawn for each list."""
    ranks = np.full(topic.pool.ranks.shape, np.inf)
    for run, own in enumerate(topic.pool.ranks):
        order = np.argsort(own, kind="stable")[: int(np.isfinite(own).sum())]
        for relevant in (True, False):
            places = np.flatnonzero(topic.is_relevant[order] == relevant) + 1.0
            candidates = np.flatnonzero(topic.is_relevant == relevant)
            if rng is not None:
                candidates = rng.permutation(candidates)
            ranks[run, candidates[: places.size]] = places
    return RankedPool.of(ranks)
