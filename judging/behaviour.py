"""How assessors err: eight behaviours that give labels where the true ones are known.

Source: Carterette and Soboroff, "The Effect of Assessor Errors on IR System Evaluation", SIGIR 2010, section 2.2. Where
the paper is open or contradicts itself, the choice is named in the docstring of the behaviour.

A behaviour takes the true labels of one topic in judging order and as many uniform numbers; "with probability p" means
that the uniform number is below p. So the labels depend on nothing but the arguments.
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
LabelArray = NDArray[np.int64]

ROUNDING = 1e-9  # a share of n that is a whole number but for rounding counts as that number


def binary(values: ArrayLike) -> LabelArray:
    """Return the labels as integers; ValueError unless each is 0 or 1."""
    labels = np.asarray(values)
    if labels.ndim != 1:
        raise ValueError(f"labels must have 1 axis, got shape {labels.shape}")
    refused = labels[~np.isin(labels, (0, 1))]
    if refused.size:
        raise ValueError(f"labels must be 0 or 1, got {refused[0]}")
    return labels.astype(np.int64)


def _uniforms(values: ArrayLike, n_labels: int) -> FloatArray:
    uniforms = np.asarray(values, dtype=np.float64)
    if uniforms.shape != (n_labels,):
        raise ValueError(f"uniforms must have {n_labels} items, got shape {uniforms.shape}")
    refused = uniforms[~((uniforms >= 0) & (uniforms < 1))]
    if refused.size:
        raise ValueError(f"uniforms must be within [0, 1), got {refused[0]}")
    return uniforms


def _parameters(**values: float) -> None:
    for name, value in values.items():
        if not (math.isfinite(value) and value >= 0):
            raise ValueError(f"{name} must be finite and at least 0, got {value}")


def _share(successes: float, n: float) -> float:
    """Return a posterior mean, 0 where there is nothing to learn from."""
    return successes / n if n > 0 else 0.0


def relevant_probability(labels: ArrayLike, a: float, b: float) -> float:
    """Return the posterior mean (a + r) / (a + b + n) of a topic's share of relevant documents.

    >>> round(relevant_probability([0] * 32, 2, 8), 6)
    0.047619
    """
    true = binary(labels)
    _parameters(a=a, b=b)
    return _share(a + int(true.sum()), a + b + true.size)


def missing_probability(labels: ArrayLike, a: float, b: float) -> float:
    """Return the posterior mean (b + n - r) / (a + b + n) of a topic's share of documents that are not relevant."""
    true = binary(labels)
    _parameters(a=a, b=b)
    return _share(b + true.size - int(true.sum()), a + b + true.size)


def quitting_place(labels: ArrayLike, a: float, b: float) -> int:
    """Return after how many documents a disgruntled assessor stops reading: n times (a + r) / (b + n), rounded down.

    The ratio is the posterior mean of a rate under a gamma prior; above 1 the assessor reads everything. The paper does
    not say how the number is rounded.
    """
    true = binary(labels)
    _parameters(a=a, b=b)
    read = min(1.0, _share(a + int(true.sum()), b + true.size))
    return math.floor(true.size * read + ROUNDING)


def random_labels(labels: ArrayLike, uniforms: ArrayLike, a: float, b: float) -> LabelArray:
    """Return labels that do not depend on the document: relevant with the topic's probability.

    Source: Carterette and Soboroff (2010), section 2.2. The topic's probability is the posterior mean; the paper does
    not say whether it draws one from the posterior.
    """
    true = binary(labels)
    return (_uniforms(uniforms, true.size) < relevant_probability(true, a, b)).astype(np.int64)


def pattern_labels(labels: ArrayLike, uniforms: ArrayLike, pattern: str) -> LabelArray:
    """Return a fixed pattern of labels, repeated: the unenthusiastic assessor (section 2.2).

    >>> pattern_labels([1, 1, 1], [0, 0, 0], "01").tolist()
    [0, 1, 0]
    """
    true = binary(labels)
    if not pattern or set(pattern) - {"0", "1"}:
        raise ValueError(f"pattern must be digits 0 and 1, got {pattern!r}")
    return np.resize(np.array([int(digit) for digit in pattern], dtype=np.int64), true.size)


def optimist_labels(labels: ArrayLike, uniforms: ArrayLike, a: float, b: float) -> LabelArray:
    """Return labels without misses: a document that is not relevant passes with the topic's probability (section 2.2).

    A fixed probability p of passing gives r + p (n - r) relevant labels, not the p n that the paper states.
    """
    true = binary(labels)
    return np.maximum(true, random_labels(true, uniforms, a, b))


def pessimist_labels(labels: ArrayLike, uniforms: ArrayLike, a: float, b: float) -> LabelArray:
    """Return labels without false alarms: a relevant document fails with probability (b+n-r)/(a+b+n) (section 2.2)."""
    true = binary(labels)
    misses = _uniforms(uniforms, true.size) < missing_probability(true, a, b)
    return np.where(misses, 0, true)


def disgruntled_labels(labels: ArrayLike, uniforms: ArrayLike, a: float, b: float) -> LabelArray:
    """Return the true labels up to `quitting_place`, and 0 after it (section 2.2)."""
    true = binary(labels).copy()
    true[quitting_place(true, a, b) :] = 0
    return true


def lazy_labels(labels: ArrayLike, uniforms: ArrayLike, a: float, b: float) -> LabelArray:
    """Return the first label throughout where the labels up to `quitting_place` are all alike (section 2.2).

    At least one document is read: no document at all would be all alike.
    """
    true = binary(labels).copy()
    true[lazy_place(true, a, b) :] = true[:1]
    return true


def lazy_place(labels: ArrayLike, a: float, b: float) -> int:
    """Return after how many documents a lazy assessor stops reading; all of them if the first are not all alike."""
    true = binary(labels)
    read = max(1, quitting_place(true, a, b))
    return min(read, true.size) if (true[:read] == true[:1]).all() else true.size


def fatigue_probabilities(labels: ArrayLike, a: float, b: float, variant: str = "perdoc") -> FloatArray:
    """Return the probabilities of a relevant label as a fatigued assessor forgets the documents for the prior.

    `perdoc`: ((i-1) a + x_i) / ((i-1)(a+b) + 1), the default. `literal`, as printed: ((i-1) a + r_i)/((i-1)(a+b)+i),
    with the true relevant documents r_i among the first i; it tends to (a + share) / (a+b+1), not to the a / (a+b) that
    the paper states, and does not depend on the document. Of the variants, only `perdoc` has both properties.
    Source: Carterette and Soboroff (2010), section 2.2.

    >>> fatigue_probabilities([1, 0], 0.5, 1).tolist()
    [1.0, 0.2]
    """
    true = binary(labels)
    _parameters(a=a, b=b)
    before = np.arange(true.size, dtype=np.float64)
    if variant == "perdoc":
        return (before * a + true) / (before * (a + b) + 1)
    if variant == "literal":
        return (before * a + np.cumsum(true)) / (before * (a + b) + before + 1)
    raise ValueError(f"variant must be perdoc or literal, got {variant!r}")


def feedback_probabilities(
    labels: ArrayLike, uniforms: ArrayLike, a: float, b: float
) -> tuple[FloatArray, LabelArray]:
    """Return probabilities and labels of a fatigued assessor who counts their own relevant labels.

    The first label is true, then the probability is ((i-1) a + s_i) / ((i-1)(a+b+1)), s_i the relevant labels before i.
    """
    true = binary(labels)
    drawn = _uniforms(uniforms, true.size)
    _parameters(a=a, b=b)
    chances = np.ones(true.size)
    given = true.copy()
    n_relevant = 0
    for place in range(true.size):
        if place:
            chances[place] = (place * a + n_relevant) / (place * (a + b + 1))
            given[place] = drawn[place] < chances[place]
        else:
            chances[place] = true[place]
        n_relevant += int(given[place])
    return chances, given


def fatigued_labels(
    labels: ArrayLike, uniforms: ArrayLike, a: float, b: float, variant: str = "perdoc"
) -> LabelArray:
    """Return the labels of an assessor who tires, in one of three readings of section 2.2.

    `perdoc` and `literal` as in `fatigue_probabilities`, `feedback` as in `feedback_probabilities`.
    """
    true = binary(labels)
    if variant == "feedback":
        return feedback_probabilities(true, uniforms, a, b)[1]
    return (_uniforms(uniforms, true.size) < fatigue_probabilities(true, a, b, variant)).astype(np.int64)


def sticky_labels(labels: ArrayLike, uniforms: ArrayLike, stickiness: float) -> LabelArray:
    """Return true labels, each replaced by the label before it with probability `stickiness`.

    The mechanism that fits the log of the paper: .22 relevant after a relevant document and .18 after another one is a
    stickiness of .04. The mechanism that the paper describes is `compensating_labels`; its sign is the opposite.
    """
    true = binary(labels)
    drawn = _uniforms(uniforms, true.size)
    _parameters(stickiness=stickiness)
    if stickiness > 1:
        raise ValueError(f"stickiness must be at most 1, got {stickiness}")
    # Every label is that of the last document that was read.
    is_read = drawn >= stickiness
    is_read[:1] = True
    last_read = np.maximum.accumulate(np.where(is_read, np.arange(true.size), 0))
    return true[last_read]


def compensating_labels(labels: ArrayLike, uniforms: ArrayLike, a: float, b: float) -> LabelArray:
    """Return the labels of an assessor whom a run of equal labels makes uneasy (section 2.2, Markovian).

    A true label equal to the one given before is flipped with probability (a + m) / (a + b + m), m the length of the
    current run of equal labels.
    """
    given = binary(labels).copy()
    drawn = _uniforms(uniforms, given.size)
    _parameters(a=a, b=b)
    run = 1
    for place in range(1, given.size):
        if given[place] == given[place - 1] and drawn[place] < (a + run) / (a + b + run):
            given[place] = 1 - given[place]
        run = run + 1 if given[place] == given[place - 1] else 1
    return given


def grades_for_labels(true_grades: ArrayLike, labels: ArrayLike, lowest_relevant: int) -> LabelArray:
    """Return grades for binary labels: the true grade where label and truth agree.

    Relevant where the truth is not: the scale's lowest relevant grade. Not relevant where the truth is: 0.

    >>> grades_for_labels([0, 1, 3, 3], [1, 0, 1, 0], 2).tolist()
    [2, 1, 3, 0]
    """
    grades, given = np.asarray(true_grades, dtype=np.int64), binary(labels)
    if grades.shape != given.shape:
        raise ValueError(
            f"true_grades and labels must be of one length, got {grades.shape} and {given.shape}"
        )
    agree = (grades >= lowest_relevant) == (given == 1)
    return np.where(agree, grades, np.where(given == 1, lowest_relevant, 0))
