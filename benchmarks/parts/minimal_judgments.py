"""Judgments until a minimal test collection stops, where it tells most and in random order; and its wrong signs."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from parts.trec_like import JudgedPool

from experiments.parts.minimal_pairs import (
    PRODUCT,
    SETTINGS,
    Outcome,
    Pair,
    PairTopic,
    outcomes,
    pairs_of,
    read_folder,
)
from sampling.experts import Preferences, RankedPool, consensus

N_TOPICS, APART, STEP = 10, 4, 2  # runs of a pair are so many places apart in the true ranking
MOST_OF_RANDOM = 0.8
MOST_WRONG = 2
SMALL = 0.02  # a difference of MAP
TELLING, RANDOM = "p = .05, no first look", "p = .05, no first look, random order"
CONTROL = "p = .5, no first look"
BY_NAME = {setting.name: setting for setting in SETTINGS}


def synthetic_pairs(pool: JudgedPool) -> list[Pair]:
    """Return pairs of runs of the pool, in its first topics; the prior is the consensus of all runs."""
    everyone = []
    for topic in range(N_TOPICS):
        of_topic = pool.topic_index == topic
        ranks = np.where(pool.ranks[:, of_topic] > 0, pool.ranks[:, of_topic], np.inf).astype(np.float64)
        chances = consensus(Preferences.of(RankedPool.of(ranks))).probability
        everyone.append((ranks, pool.relevant[of_topic], chances))
    pairs = []
    for first in range(0, len(pool.ranks) - APART, STEP):
        runs, topics = [first, first + APART], []
        for ranks, labels, chances in everyone:
            either = np.isfinite(ranks[runs]).any(axis=0)
            topics.append(PairTopic(ranks[runs][:, either], labels[either], chances[either], chances[either]))
        pairs.append(Pair(str(first), str(first + APART), tuple(topics)))
    return pairs


def saving(pairs: Sequence[Pair], seed: int) -> dict[str, object]:
    """Return the judgments of all pairs by what tells most and in random order; the control is random order itself."""
    telling, at_random, again = (
        sum(one.n_judged for one in outcomes(pairs, BY_NAME[name], first_seed))
        for name, first_seed in ((TELLING, seed), (RANDOM, seed), (RANDOM, seed + 1000))
    )
    return {
        "pairs": len(pairs),
        "judgments": telling,
        "judgments_in_random_order": at_random,
        "share": round(telling / at_random, 3),
        "holds": telling <= MOST_OF_RANDOM * at_random,
        "control": {"share": round(again / at_random, 3), "holds": again <= MOST_OF_RANDOM * at_random},
    }


def wrong_signs(folder: Path, qrels: str, without: Sequence[str]) -> dict[str, dict[str, object]]:
    """Return for the product's rule, and for the printed one with p = .5 as the control, how many signs are wrong."""
    pairs = pairs_of(read_folder(folder, qrels, 100, without))
    return {
        name: sign_row(outcomes(pairs, setting, 1))
        for name, setting in (("product", PRODUCT), ("control", BY_NAME[CONTROL]))
    }


def sign_row(rows: Sequence[Outcome]) -> dict[str, object]:
    """Return the count of wrong signs, and whether it is as small as promised."""
    wrong = [abs(one.truth) for one in rows if one.is_wrong]
    return {
        "pairs": len(rows),
        "wrong": len(wrong),
        "largest_difference_of_a_wrong_one": round(max(wrong, default=0.0), 6),
        "median_judgments": float(np.median([one.n_judged for one in rows])),
        "most_judgments": max(one.n_judged for one in rows),
        "holds": len(wrong) <= MOST_WRONG and max(wrong, default=0.0) <= SMALL,
    }
