"""Collections and judges for benchmarks/coverage.py: what real ones were found to be like, as far as it is known.

Errors by popularity (docs/methods/derivations/real-judges.md, section 1.1), after one judge of a TREC collection:
prevalence .15, .26, .47 and specificity .72, .57, .38 for documents that 1, 2-3, 4 and more systems return. The
collections here have about that prevalence (the JSON says which), because weak systems return what no other system
returns; a judge's specificity is a straight line in the logarithm of the number of systems through those rows.
Systems also agree on a surface that is not relevance. The rest is invented.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analytics.estimation.targets import TargetWeights
from sampling.measures.sparse import from_dense

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

N_RUNS, N_DOCUMENTS, CUTOFF, N_TOPICS, N_GRADES = 24, 150, 10, 50, 3
N_ASSESSORS = 6
GAINS = np.array([0.0, 1.0, 1.0])  # of P@10
BANDS = (2, 4)  # popularity: 1, 2-3, 4 and more systems
SENSITIVITY = 0.93
LOGIT_SPECIFICITY, PER_DOUBLING = 0.944, -0.5  # .72 at one system, .57 at 2.4, .38 at 8
DIFFICULTY = {"alike": 0.5, "unlike": 1.5}  # standard deviation over topics, of a latent merit of 1
NOISES = ("popularity", "shuffled", "class_conditional")


@dataclass(frozen=True)
class Collection:
    """Pooled items of some topics: true grade, systems that return it, topic, and the weights of the systems."""

    grade: Ints
    returned_by: Ints
    topic: Ints
    runs: Floats  # [run, item]
    rank: Ints  # [run, item], 0: not returned

    @cached_property
    def targets(self) -> TargetWeights:
        """Return the weights of the systems, then of all pairs."""
        return TargetWeights(from_dense(self.runs))

    @cached_property
    def truth(self) -> Floats:
        """Return the true value of every target."""
        return self.targets.totals(GAINS[self.grade])

    def described(self) -> dict[str, Any]:
        """Return what should resemble section 1: prevalence and specificity by popularity, and the range of P@10."""
        band, relevant = np.digitize(self.returned_by, BANDS), self.grade > 0
        specificity = 1 - wrong_rates(self.grade, self.returned_by, "popularity")
        values = self.truth[:N_RUNS]
        return {
            "items": int(self.grade.size),
            "share_by_popularity": [round(float((band == b).mean()), 3) for b in range(3)],
            "prevalence_by_popularity": [round(float(relevant[band == b].mean()), 3) for b in range(3)],
            "specificity_by_popularity": [
                round(float(specificity[(band == b) & ~relevant].mean()), 3) for b in range(3)
            ],
            "P@10": [round(float(values.min()), 3), round(float(values.max()), 3)],
        }


def make_ranks(rng: np.random.Generator, n_topics: int, topics: str = "alike") -> tuple[Ints, Ints]:
    """Return grade[topic, document] and rank[run, topic, document] (-1: not returned)."""
    shape = (n_topics, N_DOCUMENTS)
    merit, surface = rng.normal(size=shape), rng.normal(size=shape)
    difficulty = rng.normal(scale=DIFFICULTY[topics], size=(n_topics, 1))
    latent = merit - 1.3 - difficulty + rng.normal(scale=0.7, size=shape)
    grade = (latent > 0).astype(np.int64) + (latent > 0.9)
    rank = np.full((N_RUNS, *shape), -1, dtype=np.int64)
    for run, noise in enumerate(np.geomspace(3.0, 0.4, N_RUNS)):
        order = np.argsort(-(merit + surface + rng.normal(scale=noise, size=shape)), axis=1)[:, :CUTOFF]
        np.put_along_axis(rank[run], order, np.arange(CUTOFF)[None], axis=1)
    return grade, rank


def collection_of(grade: Ints, rank: Ints, topics: Ints) -> Collection:
    """Return the pooled items of the given topics; a topic given twice is two topics."""
    returned = rank[:, topics] >= 0
    pooled = returned.any(axis=0)
    topic = np.broadcast_to(np.arange(topics.size)[:, None], pooled.shape)[pooled]
    return Collection(
        grade[topics][pooled],
        returned.sum(axis=0)[pooled].astype(np.int64),
        topic.astype(np.int64),
        returned[:, pooled] / (CUTOFF * topics.size),
        rank[:, topics][:, pooled] + 1,
    )


def make_collection(seed: int, topics: str = "alike") -> Collection:
    """Return a collection of 50 topics, alike in how much of them is relevant or not."""
    return collection_of(*make_ranks(np.random.default_rng(seed), N_TOPICS, topics), np.arange(N_TOPICS))


# -- judges -------------------------------------------------------------------------------------------------


def wrong_rates(grade: Ints, returned_by: Ints, noise: str, shift: Floats | float = 0.0) -> Floats:
    """Return the chance that a label is on the wrong side of relevance; `shift` adds to the logit of being right."""
    doublings = np.log2(returned_by)
    if noise == "class_conditional":
        doublings = np.full(grade.size, 1.9)  # a specificity of .5, near the average of the other
    specificity = LOGIT_SPECIFICITY + PER_DOUBLING * doublings
    right = np.where(grade > 0, np.log(SENSITIVITY / (1 - SENSITIVITY)), specificity) + shift
    return np.asarray(1 / (1 + np.exp(right)))


@dataclass(frozen=True)
class Labels:
    """Labels of all items of a collection: `votes` entries per item, in order of items."""

    item: Ints
    assessor: Ints
    given: Ints


def judge(
    collection: Collection,
    noise: str,
    votes: int,
    *,
    random_assignment: bool,
    rng: np.random.Generator,
) -> Labels:
    """Return labels of six assessors, some better and some worse.

    Not at random: worse assessors get popular documents, and every topic is mostly one assessor's. "shuffled": labels
    made with popularity-dependent errors, then moved between items of one grade, all labels of an item together.
    """
    n = collection.grade.size
    chance = rng.gumbel(size=(n, N_ASSESSORS))
    if not random_assignment:
        popular = np.log2(collection.returned_by) - np.log2(collection.returned_by).mean()
        chance -= popular[:, None] * np.linspace(-1, 1, N_ASSESSORS)
        chance[np.arange(n), collection.topic % N_ASSESSORS] += 2.0
    assessor = np.argsort(-chance, axis=1)[:, :votes].ravel()
    item = np.repeat(np.arange(n), votes)
    shift = np.linspace(-0.5, 0.5, N_ASSESSORS)[assessor]
    grade = collection.grade[item]
    kind = "class_conditional" if noise == "class_conditional" else "popularity"
    wrong = rng.random(item.size) < wrong_rates(grade, collection.returned_by[item], kind, shift)
    side = np.where(wrong, grade == 0, grade > 0)
    high = rng.random(item.size) < np.where(grade == 2, 0.6, 0.3)  # which of the two relevant grades is given
    given = np.where(side, 1 + high, 0).astype(np.int64)
    if noise == "shuffled":
        moved = np.arange(n)
        for g in range(N_GRADES):
            members = np.flatnonzero(collection.grade == g)
            moved[members] = rng.permutation(members)
        places = (moved[:, None] * votes + np.arange(votes)).ravel()
        given, assessor = given[places], assessor[places]
    return Labels(item, assessor.astype(np.int64), given)
