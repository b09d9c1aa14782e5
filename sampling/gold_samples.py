"""Gold that somebody chose: what is assumed of the choice, in words, and a test of it by what is known of the items.

A declaration cannot be verified, but it can be refuted: items with gold that differ from the others in what judges
said of them, in their topic or in their number of labels were not chosen uniformly.
"""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike

from sampling.arrays import FloatArray

UNIFORM, BY_TOPIC, PROBABILITIES = "uniform", "by-topic", "probabilities"
EXACT = "exact: all"
DOUBTFUL = 0.01  # below it the declaration is doubted, and another way advised
LABELS = {
    UNIFORM: "at random, each document with the same chance",
    BY_TOPIC: "at random within every topic",
    PROBABILITIES: "at random, with the probabilities in the file",
}


def declaration_choices() -> list[tuple[str, str]]:
    """Return how gold that was imported can be declared to have been chosen."""
    return list(LABELS.items())


def declaration_words(declaration: str, n_gold: int, n_judged: int) -> str:
    """Return what every number says that is made with declared gold; nothing where none is declared.

    >>> declaration_words("uniform", 290, 2165)
    'assumes that the 290 documents with a gold grade are a random part of the 2,165'
    """
    if not declaration:
        return ""
    if n_gold == n_judged:
        return f"{EXACT} {n_judged:,} documents in the file have a gold grade"
    many = f"the {n_gold:,} documents with a gold grade"
    if declaration == UNIFORM:
        return f"assumes that {many} are a random part of the {n_judged:,}"
    if declaration == BY_TOPIC:
        return f"assumes that {many} are a random part of the {n_judged:,} in every topic"
    if declaration == PROBABILITIES:
        return f"assumes that {many} were chosen from the {n_judged:,} with the probabilities in the file"
    raise ValueError(f"declaration must be one of {sorted(LABELS)}, got {declaration!r}")


def assumption_in(warning: str) -> str:
    """Return what a number's stored warning says of declared gold, as `declaration_words` has it; empty of other words.

    >>> assumption_in("about 90 more gold labels; assumes that the 2 documents with a gold grade are a random part")
    'assumes that the 2 documents with a gold grade are a random part'
    >>> assumption_in("about 90 more gold labels")
    ''
    """
    parts = warning.split("; ")
    return next(
        (part for part in parts if "documents with a gold grade" in part or part.startswith(EXACT)), ""
    )


def choice_words(declaration: str, p_value: float | None) -> str:
    """Return what a test of the declaration says, in sentences; empty where none can say anything.

    >>> choice_words("uniform", 0.004).partition(". ")[2]
    'Import both files into a new campaign and declare it by topic, or plan an audit here.'
    """
    if declaration == PROBABILITIES:
        return "Nothing here can test these probabilities."
    if p_value is None:
        return ""
    p = "p < 0.0001" if p_value < 0.0001 else f"p = {p_value:.4f}"
    if p_value >= DOUBTFUL:
        return f"A test by bronze score, topic and number of labels does not contradict this ({p})."
    advice = "Plan an audit here."
    if declaration == UNIFORM:
        advice = "Import both files into a new campaign and declare it by topic, or plan an audit here."
    return f"A test by bronze score, topic and number of labels contradicts this ({p}). {advice}"


@dataclass(frozen=True)
class ChoiceTest:
    """What a test of the declaration says: p of all its parts together (Bonferroni), and of each part by name."""

    p_value: float
    parts: dict[str, float]

    @property
    def is_doubtful(self) -> bool:
        """Return whether the declaration is to be doubted."""
        return self.p_value < DOUBTFUL


def uniform_choice_test(
    has_gold: ArrayLike,
    *,
    bronze_score: ArrayLike,
    n_labels: ArrayLike,
    topic_index: ArrayLike,
    by_topic: bool = False,
) -> ChoiceTest | None:
    """Return whether the items with gold differ from what a random part of all items would be; None if nothing can.

    Three tests, of the sum of the bronze score over items with gold, of the sum of the logarithm of the number of
    labels, and of the number of items with gold in every topic: each against its moments when the items were drawn
    without replacement from all (`by_topic`: from each topic, whose numbers are then taken as given). p is the smallest
    times the number of tests that say anything. Assumption: sums over many items are about normal.

    Parameters
    ----------
    has_gold : bool array [item]
    bronze_score, n_labels : arrays [item]
        Finite; labels at least 1.
    topic_index : int array [item]

    Raises
    ------
    ValueError
        Arrays of different lengths, or values out of bounds.

    Source: Cochran (1977), section 2.6, for the moments; Pearson's statistic with the variance of a finite population.

    Examples
    --------
    >>> gold = np.arange(40) < 10
    >>> alike = {"n_labels": np.ones(40), "topic_index": np.zeros(40, dtype=int)}
    >>> uniform_choice_test(gold, bronze_score=gold * 1.0, **alike).is_doubtful
    True
    >>> uniform_choice_test(gold, bronze_score=np.arange(40) % 2, **alike).is_doubtful
    False
    """
    gold = np.asarray(has_gold, dtype=bool)
    score, labels = np.asarray(bronze_score, dtype=np.float64), np.asarray(n_labels, dtype=np.float64)
    topic = np.asarray(topic_index, dtype=np.int64)
    if not gold.shape == score.shape == labels.shape == topic.shape or gold.ndim != 1:
        raise ValueError("all arrays must be flat and of one length")
    if not np.isfinite(score).all() or not (np.isfinite(labels) & (labels >= 1)).all():
        raise ValueError("bronze_score must be finite, n_labels finite and at least 1")
    stratum = topic if by_topic else np.zeros(topic.size, dtype=np.int64)
    found = {
        "bronze score": _sum_test(gold, score, stratum),
        "number of labels": _sum_test(gold, np.log(labels), stratum),
        "topic": None if by_topic else _topics_test(gold, topic),
    }
    parts = {name: p for name, p in found.items() if p is not None}
    return ChoiceTest(min(1.0, len(parts) * min(parts.values())), parts) if parts else None


def _sum_test(gold: np.ndarray, values: FloatArray, stratum: np.ndarray) -> float | None:
    """Return p of the sum of the values over gold; None where it could not vary."""
    n = np.bincount(stratum).astype(np.float64)
    m = np.bincount(stratum[gold], minlength=n.size).astype(np.float64)
    mean = np.bincount(stratum, values, n.size) / np.maximum(n, 1)
    centred = values - mean[stratum]
    spread = np.bincount(stratum, centred**2, n.size) / np.maximum(n - 1, 1)
    variance = float((m * (1 - m / np.maximum(n, 1)) * spread).sum())
    if variance <= 1e-12 * max(1.0, float(np.square(values).max(initial=0.0))):
        return None
    return float(scipy.stats.chi2.sf(float(centred[gold].sum()) ** 2 / variance, 1))


def _topics_test(gold: np.ndarray, topic: np.ndarray) -> float | None:
    """Return p of the numbers of items with gold by topic; None for one topic, or where all or none have gold."""
    n_items, n_gold = gold.size, int(gold.sum())
    size = np.bincount(topic).astype(np.float64)
    size, seen = size[size > 0], np.bincount(topic[gold], minlength=size.size)[size > 0]
    if size.size < 2 or n_gold in (0, n_items):
        return None
    share = n_gold / n_items
    statistic = (
        float(((seen - size * share) ** 2 / (size * share * (1 - share))).sum()) * (n_items - 1) / n_items
    )
    return float(scipy.stats.chi2.sf(statistic, size.size - 1))
