"""Can it be told? A classifier on all observables, a sign test on pairs, uniformity of positions and gaps."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom, binomtest, chisquare, kstest, norm
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
BLOCK = 20  # presentations that are near in time


def cross_validated_auc(features: Floats, is_gold: Bools, seed: int) -> float:
    """Return the mean area under the ROC curve of a gradient-boosted classifier over five held-out folds."""
    areas = []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=seed).split(features, is_gold):
        model = HistGradientBoostingClassifier(
            max_iter=60, max_leaf_nodes=15, learning_rate=0.08, random_state=seed
        )
        model.fit(features[train], is_gold[train])
        areas.append(roc_auc_score(is_gold[test], model.predict_proba(features[test])[:, 1]))
    return float(np.mean(areas))


def null_quantile(n_gold: int, n_ordinary: int, probability: float = 0.995) -> float:
    """Return the quantile of the AUC of a score that knows nothing (Mann-Whitney, normal approximation)."""
    deviation = np.sqrt((n_gold + n_ordinary + 1) / (12 * n_gold * n_ordinary))
    return float(0.5 + norm.ppf(probability) * deviation)


def shuffled_aucs(features: Floats, is_gold: Bools, seed: int, n: int) -> list[float]:
    """Return what the same classifier reaches on labels that were shuffled: the null of this very sample."""
    rng = np.random.default_rng(seed)
    return [
        cross_validated_auc(features, rng.permutation(is_gold), int(rng.integers(2**31))) for _ in range(n)
    ]


def matched(is_gold: Bools, n_each: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Return the places of n gold and n ordinary presentations, drawn alike from the same sessions."""
    chosen = []
    for kind in (True, False):
        places = np.flatnonzero(is_gold == kind)
        chosen.append(rng.choice(places, min(n_each, places.size), replace=False))
    n = min(part.size for part in chosen)
    return np.sort(np.concatenate([part[:n] for part in chosen]))


def pair_differences(milliseconds: Floats, is_gold: Bools, rng: np.random.Generator) -> Floats:
    """Return gold minus ordinary for random pairs within blocks of presentations that follow one another.

    Which of a pair came first was decided by the product's keyed coin: the order is random.
    """
    differences = []
    for start in range(0, is_gold.size - BLOCK + 1, BLOCK):
        block, kind = milliseconds[start : start + BLOCK], is_gold[start : start + BLOCK]
        gold, ordinary = rng.permutation(block[kind]), rng.permutation(block[~kind])
        n = min(gold.size, ordinary.size)
        differences.append(gold[:n] - ordinary[:n])
    return np.concatenate(differences)


def sign_test(differences: Floats) -> dict[str, Any]:
    """Return p of the sign test and the exact 95 % confidence interval of the median difference."""
    known = np.sort(differences[differences != 0])
    n = known.size
    low = int(binom.ppf(0.025, n, 0.5)) - 1
    return {
        "pairs": int(n),
        "p": float(binomtest(int(np.count_nonzero(known > 0)), n).pvalue),
        "median_milliseconds": round(float(np.median(known)), 4),
        "interval_milliseconds": [
            round(float(known[max(low, 0)]), 4),
            round(float(known[min(n - 1 - low, n - 1)]), 4),
        ],
    }


def position_test(sessions: list[list[bool]]) -> dict[str, Any]:
    """Return chi-square and Kolmogorov-Smirnov p-values: gold is as likely at every place of a session."""
    length = min(len(session) for session in sessions)
    table = np.array([session[:length] for session in sessions])
    counts = table.sum(axis=0)
    places = np.concatenate([np.flatnonzero(row) for row in table])
    # A place is one of `length`: spread over its interval, so that uniform places are uniform numbers.
    spread = (places + np.random.default_rng(1).random(places.size)) / length
    return {
        "sessions": len(sessions),
        "places": length,
        "gold": int(counts.sum()),
        "chi_square_p": float(chisquare(counts).pvalue),
        "kolmogorov_smirnov_p": float(kstest(spread, "uniform").pvalue),
        "share_at_first_place": round(float(counts[0] / len(sessions)), 4),
        "share_elsewhere": round(float(counts[1:].sum() / (len(sessions) * (length - 1))), 4),
    }


def gap_test(sessions: list[list[bool]]) -> dict[str, Any]:
    """Return the chi-square p-value of the gaps between gold checks against independent tosses of one coin.

    A gap is censored by the end of the session, so what is compared is, for each number of ordinary presentations
    since the last gold check, how often the next one is gold.
    """
    tosses: dict[int, list[int]] = {}
    for session in sessions:
        since = None
        for is_gold in session:
            if since is not None:
                entry = tosses.setdefault(min(since, 8), [0, 0])
                entry[0] += is_gold
                entry[1] += 1
            since = 0 if is_gold else None if since is None else since + 1
    table = np.array([tosses[since] for since in sorted(tosses)], dtype=float)
    rate = table[:, 0].sum() / table[:, 1].sum()
    expected = np.column_stack([table[:, 1] * rate, table[:, 1] * (1 - rate)])
    observed = np.column_stack([table[:, 0], table[:, 1] - table[:, 0]])
    keep = expected.min(axis=1) >= 5
    statistic = ((observed - expected) ** 2 / expected)[keep].sum()
    from scipy.stats import chi2

    return {
        "gaps": int(table[:, 0].sum()),
        "chi_square_p": float(chi2.sf(statistic, max(int(keep.sum()) - 1, 1))),
        "share_gold_by_distance": [round(float(gold / n), 3) for gold, n in table],
    }
