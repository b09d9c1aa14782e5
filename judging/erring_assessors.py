"""The behaviours of simulated assessors as a table, their spelling on a command line, and the seconds they take."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from judging.behaviour import (
    FloatArray,
    LabelArray,
    binary,
    compensating_labels,
    disgruntled_labels,
    fatigued_labels,
    lazy_labels,
    lazy_place,
    optimist_labels,
    pattern_labels,
    pessimist_labels,
    quitting_place,
    random_labels,
    sticky_labels,
)


@dataclass(frozen=True)
class Behaviour:
    """One way to err.

    Attributes
    ----------
    key : str
        As the command spells it.
    label, help : str
        Its name, and a sentence on what such an assessor does.
    parameters : tuple of str
        Their names; `pattern` and `variant` are texts, the others numbers.
    defaults : tuple
        Their values where none is given.
    labels : callable
        From true labels, uniform numbers and the parameters the labels given.
    quits_after : callable, optional
        From true labels and parameters after how many documents the assessor stops reading and rushes.
    """

    key: str
    label: str
    help: str
    parameters: tuple[str, ...]
    defaults: tuple[float | str, ...]
    labels: Callable[..., LabelArray]
    quits_after: Callable[..., int] | None = None


def _reads_nothing(labels: ArrayLike, *values: float | str) -> int:
    return 0


# With the paper's parameters, but for fatigue: the printed (.05, 1) leaves a random assessor after three documents.
BEHAVIOURS = (
    Behaviour(
        "random",
        "Random",
        "Gives relevant by chance, as often as the topic has relevant documents.",
        ("a", "b"),
        (1.0, 8.0),
        random_labels,
    ),
    Behaviour(
        "pattern",
        "Unenthusiastic",
        "Repeats a pattern of labels and reads nothing.",
        ("pattern",),
        ("0",),
        pattern_labels,
        _reads_nothing,
    ),
    Behaviour(
        "optimist",
        "Optimist",
        "Misses nothing and takes some documents for relevant that are not.",
        ("a", "b"),
        (1.0, 16.0),
        optimist_labels,
    ),
    Behaviour(
        "pessimist",
        "Pessimist",
        "Misses relevant documents and never takes another for one.",
        ("a", "b"),
        (16.0, 1.0),
        pessimist_labels,
    ),
    Behaviour(
        "disgruntled",
        "Disgruntled",
        "Judges rightly at first, then calls the rest of the topic not relevant.",
        ("a", "b"),
        (1.0, 16.0),
        disgruntled_labels,
        quitting_place,
    ),
    Behaviour(
        "lazy",
        "Lazy",
        "Repeats the first label for a topic whose first documents are all alike.",
        ("a", "b"),
        (1.0, 16.0),
        lazy_labels,
        lazy_place,
    ),
    Behaviour(
        "fatigued",
        "Fatigued",
        "Reads less and less of each document as the topic goes on.",
        ("a", "b", "variant"),
        (0.005, 0.015, "perdoc"),
        fatigued_labels,
    ),
    Behaviour(
        "sticky",
        "Markovian, sticky",
        "Repeats the label before with a fixed probability.",
        ("stickiness",),
        (0.04,),
        sticky_labels,
    ),
    Behaviour(
        "compensating",
        "Markovian, compensating",
        "Breaks long runs of one label.",
        ("a", "b"),
        (1.0, 16.0),
        compensating_labels,
    ),
)


@dataclass(frozen=True)
class ErringAssessor:
    """A behaviour with its parameters."""

    behaviour: Behaviour
    values: tuple[float | str, ...]

    def labels(self, true_labels: ArrayLike, uniforms: ArrayLike) -> LabelArray:
        """Return the labels given to the documents of one topic, in judging order."""
        return self.behaviour.labels(true_labels, uniforms, *self.values)

    def quits_after(self, true_labels: ArrayLike) -> int | None:
        """Return after how many documents reading stops; None for a behaviour that reads on."""
        place = self.behaviour.quits_after
        return None if place is None else place(true_labels, *self.values)


def erring_assessor(spelling: str) -> ErringAssessor:
    """Return the assessor of a spelling: the behaviour's key and its parameters after colons, in their order.

    >>> erring_assessor("optimist:1:8").values
    (1.0, 8.0)
    >>> erring_assessor("pattern:01").values
    ('01',)
    """
    key, *given = spelling.split(":")
    behaviour = next((one for one in BEHAVIOURS if one.key == key), None)
    if behaviour is None:
        keys = ", ".join(one.key for one in BEHAVIOURS)
        raise ValueError(f"the behaviour must be one of {keys}, got {key!r}")
    if len(given) > len(behaviour.parameters):
        names = ", ".join(behaviour.parameters)
        raise ValueError(
            f"{key} takes at most {len(behaviour.parameters)} parameters ({names}), got {spelling!r}"
        )
    values = [
        text if isinstance(default, str) else _number(name, text)
        for name, text, default in zip(behaviour.parameters, given, behaviour.defaults, strict=False)
    ]
    assessor = ErringAssessor(behaviour, (*values, *behaviour.defaults[len(values) :]))
    assessor.labels([0, 1], [0.5, 0.5])  # refuses parameters out of their bounds
    return assessor


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{name} must be a number, got {text!r}") from None


# -- speed ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Pace:
    """How long judging takes: the logarithm of the seconds is a sum of these effects and normal noise.

    Attributes
    ----------
    start : float
        Of an average assessor, at the first document of a topic, for a document that is not relevant.
    relevant, position : float
        More for a relevant label; more for each further document of the topic.
    noise : float
        Standard deviation of what is left from document to document.
    rushing : float
        More (negative: less) once the assessor does not read.
    """

    start: float = 3.0
    relevant: float = 0.35
    position: float = -0.006
    noise: float = 0.6
    rushing: float = -0.9

    def seconds(
        self, labels: ArrayLike, normals: ArrayLike, *, effect: float = 0.0, quits_after: int | None = None
    ) -> FloatArray:
        """Return the seconds for the documents of one topic, in judging order.

        Parameters
        ----------
        labels
            The labels given, 0 or 1.
        normals
            As many standard normal numbers.
        effect
            Of assessor and topic together, on the logarithm of the seconds.
        quits_after
            After how many documents the assessor rushes; None for never.
        """
        given = binary(labels)
        places = np.arange(given.size)
        logarithms = self.start + effect + self.relevant * given + self.position * places
        logarithms += self.noise * np.asarray(normals, dtype=np.float64)
        if quits_after is not None:
            logarithms[places >= quits_after] += self.rushing
        seconds: FloatArray = np.exp(logarithms)
        return seconds
