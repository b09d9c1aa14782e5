"""The paper's SYNTH, rebuilt as its authors ran it: 6,000 users, 2,000 items, five systems, DCG@2000.

Every pair of a user and an item has an independent grade. A system's rank of an item depends only on the item's
place r in the perfect order of that user. So all pairs of one place and one grade have the same weight, the same
guessed and the same true utility, and hence the same probability in every design: they form a *cell*. Drawing a
cell with the summed probability of its pairs is drawing a pair; sums over cells are the sums over pairs. The
12 million pairs of SYNTH are about 3,000 cells, exactly.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from sampling.measures.families import FloatArray, run_weights
from sampling.measures.registry import parse_linear

IndexArray = NDArray[np.int64]
GradeArray = NDArray[np.uint8]

USERS, ITEMS, GRADES = 6000, 2000, 5
# The paper calls these the parameters of a Dirichlet distribution. Only independent grades with these
# probabilities give its tables (docs/methods/derivations/schnabel.md, section 1.3).
GRADE_PROBABILITIES = (0.54, 0.25, 0.175, 0.03, 0.005)
DCG = parse_linear(f"DCG(dcg='ln')@{ITEMS}")
SMALLEST_SHARE = 1e-20  # a cell with less of the users is left out; all of them together are below 1e-16


@dataclass(frozen=True)
class Synth:
    """SYNTH by cells; the five systems are rows, in the paper's order.

    `share` is the part of the users who have this grade at this place; `weights` are the summed w of the cell's
    pairs, w = lambda(rank)/users; `prior` is the paper's prior utility, by each system's own rank.
    """

    place: IndexArray  # [cell], from 1
    grade: FloatArray  # [cell], 0 to 4: the true utility
    share: FloatArray  # [cell]
    ranks: IndexArray  # [system, cell]
    weights: FloatArray  # [system, cell]
    prior: FloatArray  # [system, cell]


def system_ranks() -> IndexArray:
    """Return each system's rank of the item at every place of the perfect order, [system, place].

    OPT keeps the order; REV-m reverses the first m; SHIFT-m moves all down by m and puts those that fall off the
    end at the top. The paper's "SHIFT-5" is a shift by 3.
    """
    place = np.arange(1, ITEMS + 1, dtype=np.int64)
    reversed_ = [np.where(place <= m, m + 1 - place, place) for m in (75, 150)]
    shifted = [(place + m - 1) % ITEMS + 1 for m in (3, 7)]
    return np.stack([place, *reversed_, *shifted])


def rank_prior(ranks: IndexArray) -> FloatArray:
    """Return the paper's prior utility 4 (1 - rank/2000): 0 at the last rank, harmless only on SYNTH (erratum 11)."""
    return np.asarray(4.0 * (1.0 - ranks / ITEMS), dtype=np.float64)


def synth_of_shares(share: FloatArray) -> Synth:
    """Return the cells of SYNTH from the share of users with each grade at each place, [grade, place]."""
    if share.shape != (GRADES, ITEMS) or not np.allclose(share.sum(axis=0), 1.0, atol=1e-12):
        raise ValueError(f"shares must have shape {(GRADES, ITEMS)} and sum to 1 at each place")
    grade, column = np.nonzero(share >= SMALLEST_SHARE)
    ranks = system_ranks()[:, column]
    kept = share[grade, column]
    return Synth(
        place=column + 1,
        grade=grade.astype(np.float64),
        share=kept,
        ranks=ranks,
        weights=run_weights(DCG, ranks, n_topics=1) * kept,
        prior=rank_prior(ranks),
    )


def expected_synth() -> Synth:
    """Return SYNTH averaged over all that could be drawn, without a random number.

    The item at place r has at least grade g if r or more of the 2,000 have: P(Bin(2000, P(grade >= g)) >= r).
    """
    place = np.arange(1, ITEMS + 1)
    at_least = np.stack([binom.sf(place - 1, ITEMS, sum(GRADE_PROBABILITIES[g:])) for g in range(1, GRADES)])
    edges = np.concatenate([np.ones((1, ITEMS)), at_least, np.zeros((1, ITEMS))])
    return synth_of_shares(np.maximum(edges[:-1] - edges[1:], 0.0))


def draw_grades(n_users: int, rng: np.random.Generator) -> GradeArray:
    """Return every user's grades in the perfect order, [user, place]."""
    edges = np.cumsum(GRADE_PROBABILITIES)[:-1]
    grades = np.empty((n_users, ITEMS), dtype=np.uint8)
    for start in range(0, n_users, 500):  # blocks, so that the uniform numbers never fill the memory
        block = grades[start : start + 500]
        block[:] = np.searchsorted(edges, rng.random(block.shape), side="right")
    grades.sort(axis=1)
    return grades[:, ::-1]


def synth_of_grades(grades: GradeArray) -> Synth:
    """Return the cells of one drawn SYNTH: exactly its pairs, added up."""
    return synth_of_shares(np.stack([(grades == grade).mean(axis=0) for grade in range(GRADES)]))


def user_scores(grades: GradeArray) -> FloatArray:
    """Return every user's DCG@2000 under every system, [system, user]."""
    weights = run_weights(DCG, system_ranks(), n_topics=1)
    scores = np.empty((weights.shape[0], grades.shape[0]))
    for start in range(0, grades.shape[0], 500):
        block = grades[start : start + 500].astype(np.float64)
        scores[:, start : start + 500] = np.einsum("up,sp->su", block, weights)
    return scores


def true_scores(synth: Synth) -> FloatArray:
    """Return U of every system: the sum of weight times grade."""
    return np.asarray((synth.weights * synth.grade).sum(axis=1), dtype=np.float64)


def every_pair(grades: GradeArray, systems: list[int]) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return weights and prior [system, pair] and the true utility [pair] of all pairs, nothing added up."""
    n_users = grades.shape[0]
    ranks = system_ranks()[systems]
    weights = np.tile(run_weights(DCG, ranks, n_users), n_users)
    return weights, np.tile(rank_prior(ranks), n_users), grades.ravel().astype(np.float64)
