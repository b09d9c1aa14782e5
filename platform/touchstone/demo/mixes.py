"""Which simulated assessors judge, and how many of each: `honest=6,optimist:1:16=1,sticky:.5=1`."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from judging.behaviour import LabelArray, grades_for_labels
from judging.erring_assessors import ErringAssessor, erring_assessor
from touchstone.demo.simulated import GRADES, simulated_grades, simulated_labels

HONEST = "honest"
HONEST_SKILL = 0.95
MOST_ASSESSORS = 200  # in one mix


@dataclass(frozen=True)
class Honest:
    """Errs as real judges do: more where many systems return a document (`simulated_grades`)."""

    skill: float = HONEST_SKILL

    def grades(
        self,
        rng: np.random.Generator,
        true_grades: ArrayLike,
        shares: ArrayLike,
        scale: Sequence[int],
        lowest: int,
    ) -> LabelArray:
        """Return the grades given; on a scale of other grades than 0 to 3, right or wrong about relevance alone."""
        grades = np.asarray(true_grades, dtype=np.int64)
        if list(scale) == list(range(GRADES)) and lowest == 1:
            return simulated_grades(rng, grades, shares, self.skill)
        return grades_for_labels(grades, simulated_labels(rng, grades >= lowest, shares, self.skill), lowest)

    def quits_after(self, true_labels: ArrayLike) -> int | None:
        """Return None: an honest assessor reads every document."""
        return None


@dataclass(frozen=True)
class Erring:
    """Errs as one of `BEHAVIOURS` of judging/erring_assessors.py."""

    assessor: ErringAssessor

    def grades(
        self,
        rng: np.random.Generator,
        true_grades: ArrayLike,
        shares: ArrayLike,
        scale: Sequence[int],
        lowest: int,
    ) -> LabelArray:
        """Return the grades given to the documents of one topic, in judging order."""
        grades = np.asarray(true_grades, dtype=np.int64)
        labels = self.assessor.labels((grades >= lowest).astype(np.int64), rng.random(grades.size))
        return grades_for_labels(grades, labels, lowest)

    def quits_after(self, true_labels: ArrayLike) -> int | None:
        """Return after how many documents of the topic reading stops."""
        return self.assessor.quits_after(true_labels)


@dataclass(frozen=True)
class MixMember:
    """One assessor of a mix: the name of the account, the behaviour as spelled, and how they judge."""

    username: str
    spelling: str
    model: Honest | Erring


def parse_mix(text: str) -> list[MixMember]:
    """Return the assessors of a mix, in its order.

    Raises
    ------
    ValueError
        If a part is not `behaviour=number`, names no behaviour or one twice, or a number is out of its bounds.

    Examples
    --------
    >>> [member.username for member in parse_mix("honest=2,pattern:01=1")]
    ['sim-honest-1', 'sim-honest-2', 'sim-pattern-01-1']
    """
    members: list[MixMember] = []
    known: set[str] = set()
    for part in text.split(","):
        spelling, sign, number = part.strip().rpartition("=")
        if not sign or not spelling:
            raise ValueError(f"a mix is behaviour=number, separated by commas, got {part.strip()!r}")
        if spelling in known:
            raise ValueError(f"each behaviour stands once in a mix, got {spelling!r} twice")
        known.add(spelling)
        model, name = _model(spelling), spelling.replace(":", "-")
        members += [
            MixMember(f"sim-{name}-{one + 1}", spelling, model) for one in range(_number(spelling, number))
        ]
    if len(members) > MOST_ASSESSORS:
        raise ValueError(f"a mix has at most {MOST_ASSESSORS} assessors, got {len(members)}")
    return members


def _number(spelling: str, text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MOST_ASSESSORS:
        raise ValueError(f"the number of {spelling} must be within 1..{MOST_ASSESSORS}, got {text!r}")
    return int(text)


def _model(spelling: str) -> Honest | Erring:
    key, *values = spelling.split(":")
    if key != HONEST:
        try:
            return Erring(erring_assessor(spelling))
        except ValueError as error:
            raise ValueError(str(error).replace("one of ", f"one of {HONEST}, ", 1)) from None
    if len(values) > 1:
        raise ValueError(f"{HONEST} takes at most 1 parameter (skill), got {spelling!r}")
    if not values:
        return Honest()
    try:
        skill = float(values[0])
    except ValueError:
        raise ValueError(f"skill must be a number, got {values[0]!r}") from None
    if not 0 <= skill <= 1:
        raise ValueError(f"skill must be in [0, 1], got {skill}")
    return Honest(skill)
