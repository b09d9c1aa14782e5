"""What judging again would gain: labels that err as the campaign's do, a vote more by each policy, and the ranking.

Source: Carterette and Soboroff (2010), section 4.1, for the experiment; scores are AP estimated from the sample
(`sampling/rejudging.py`). The labels as they are stand for the truth; votes err independently, all at the same rates.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analytics.planning.bad_topics import kendalls_tau, run_scores
from sampling.arrays import FloatArray, numbers
from sampling.rejudging import (
    SampledTopic,
    label_influence,
    prevalence_by_prior,
    ranking_influence,
    rates_of_votes,
    sampled_average_precision,
    wrong_probability,
)
from sampling.rejudging_policies import REJUDGING_POLICIES, RejudgingCandidates

N_TRIALS = 12

Labels = NDArray[np.bool_]
Ones = NDArray[np.int64]


@dataclass(frozen=True)
class VoteErrors:
    """So many votes a document, and how often one is wrong: f where it is not relevant, g where it is."""

    n_votes: int
    false_alarm: float
    miss: float


@dataclass(frozen=True)
class PolicyGain:
    """What one policy comes to, in the mean of the trials.

    Attributes
    ----------
    policy : str
        Its key.
    n_judgments : float
        The votes it asks for: at most as many as were offered.
    tau : float
        Kendall's tau between the true ranking of the runs and the one after judging again.
    tau_error : float
        Standard error, over trials, of the change in tau.
    n_wrong : float
        Labels that are wrong after judging again.
    """

    policy: str
    n_judgments: float
    tau: float
    tau_error: float
    n_wrong: float


@dataclass(frozen=True)
class RejudgingGains:
    """Tau and the number of wrong labels without another judgment, and what each policy makes of them."""

    tau: float
    n_wrong: float
    policies: tuple[PolicyGain, ...]


def rejudging_gains(
    topics: Sequence[SampledTopic],
    prior: ArrayLike,
    votes: VoteErrors,
    rng: np.random.Generator,
    *,
    most: int,
    n_trials: int = N_TRIALS,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> RejudgingGains:
    """Return what every policy gains if `most` documents at most get one vote more.

    Parameters
    ----------
    topics
        Their labels stand for the truth.
    prior : (n_documents,) array
        Of the documents of all topics, in their order.
    votes
        How the simulated votes err; a document is relevant if more than half of them say so.

    Raises
    ------
    ValueError
        Without topics, with fewer than 3 runs, or where all runs have one score: there is no ranking.
    """
    reference = run_scores(topics).mean(axis=0)
    n_documents = sum(one.is_relevant.size for one in topics)
    world = _World(topics, reference, numbers("prior", prior, n_documents, least=-1e100), votes)
    before = np.empty((n_trials, 2))
    after = np.empty((n_trials, len(REJUDGING_POLICIES), 3))
    for trial in range(n_trials):
        progress(trial, n_trials)
        ones = world.votes_given(votes.n_votes, rng)
        more = world.votes_given(1, rng)
        labels = _joint(ones, votes.n_votes)
        before[trial] = world.quality(labels)
        candidates = world.candidates(ones, rng)
        for place, policy in enumerate(REJUDGING_POLICIES):
            chosen = policy.order(candidates)[:most]
            again = labels.copy()
            again[chosen] = _joint(ones[chosen] + more[chosen], votes.n_votes + 1)
            after[trial, place] = (chosen.size, *world.quality(again))
    changes = after[:, :, 1] - before[:, :1]
    error = changes.std(axis=0, ddof=1) / np.sqrt(n_trials)
    tau, n_wrong = before.mean(axis=0).tolist()
    means = zip(REJUDGING_POLICIES, after.mean(axis=0).tolist(), error.tolist(), strict=True)
    gains = [PolicyGain(policy.key, n, new, spread, left) for policy, (n, new, left), spread in means]
    return RejudgingGains(tau, n_wrong, tuple(gains))


def _joint(ones: Ones, n_votes: int) -> Labels:
    """Return the lower median of binary votes: relevant if more than half say so."""
    return ones >= n_votes // 2 + 1


class _World:
    """Topics with their true labels, laid end to end, and what votes on them come to."""

    def __init__(
        self, topics: Sequence[SampledTopic], reference: FloatArray, prior: FloatArray, votes: VoteErrors
    ) -> None:
        self.topics, self.reference, self.prior, self.votes = topics, reference, prior, votes
        self.truth = np.concatenate([one.is_relevant for one in topics])
        self.chance = np.concatenate([one.inclusion_probability for one in topics])
        self.ends = np.cumsum([one.is_relevant.size for one in topics])[:-1]

    def _scores(self, topics: Sequence[SampledTopic]) -> FloatArray:
        return np.asarray(np.mean([sampled_average_precision(one) for one in topics], axis=0))

    def _with_labels(self, labels: Labels) -> list[SampledTopic]:
        parts = np.split(labels, self.ends)
        return [replace(one, is_relevant=part) for one, part in zip(self.topics, parts, strict=True)]

    def quality(self, labels: Labels) -> tuple[float, float]:
        """Return tau with the true ranking, and how many labels are wrong."""
        tau = kendalls_tau(self.reference, self._scores(self._with_labels(labels)))
        return tau, float(np.count_nonzero(labels != self.truth))

    def votes_given(self, n_votes: int, rng: np.random.Generator) -> Ones:
        """Return by document how many of so many votes say relevant."""
        says_relevant = np.where(self.truth, 1 - self.votes.miss, self.votes.false_alarm)
        return np.asarray(rng.binomial(n_votes, says_relevant))

    def candidates(self, ones: Ones, rng: np.random.Generator) -> RejudgingCandidates:
        """Return what policies go by: nothing of it looks at the truth."""
        labels = _joint(ones, self.votes.n_votes)
        influence = [ranking_influence(label_influence(one)) for one in self._with_labels(labels)]
        return RejudgingCandidates(
            is_relevant=labels,
            inclusion_probability=self.chance,
            random_number=rng.random(labels.size),
            priority=np.concatenate(influence) * self._wrong(ones, labels),
        )

    def _wrong(self, ones: Ones, labels: Labels) -> FloatArray:
        k, f, g = self.votes.n_votes, self.votes.false_alarm, self.votes.miss
        document = np.repeat(np.arange(labels.size), k)
        vote = (np.arange(k) < ones[:, np.newaxis]).ravel()
        rates = rates_of_votes(labels, document, vote, np.full(vote.size, f), np.full(vote.size, g))
        joint = labels.astype(np.int64)
        return wrong_probability(joint, *rates, prevalence_by_prior(joint, self.prior, f, g))
