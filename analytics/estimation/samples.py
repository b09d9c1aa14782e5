"""What the functions of estimation take. Arrays are checked in the constructors here; what takes these trusts them."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from analytics.estimation.checks import finite, integers, probabilities
from analytics.estimation.estimate import Floats, Ints
from analytics.estimation.labels import compress, merged_classes

Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Frame:
    """The pairs that could be drawn, and those of them that were drawn and judged.

    Attributes
    ----------
    n_topics : int
    topic_index : int array [frame], from 0
    judged : int array [judged]
        Places in the frame, each once.
    draw_probability : array [judged]
        The chance of being drawn and judged, within (0, 1].

    Raises
    ------
    ValueError
        Input out of bounds or of different lengths; an item that is there twice.
    """

    n_topics: int
    topic_index: Ints
    judged: Ints
    draw_probability: Floats

    def __post_init__(self) -> None:
        if self.n_topics < 1:
            raise ValueError(f"n_topics must be at least 1, got {self.n_topics}")
        topic = integers("topic_index", self.topic_index, 0, self.n_topics - 1)
        judged = integers("judged", self.judged, 0, topic.size - 1)
        is_judged = np.zeros(topic.size, dtype=bool)
        is_judged[judged] = True
        if np.count_nonzero(is_judged) != judged.size:
            raise ValueError(f"judged must name every item once, got {judged.size} places of fewer items")
        arrays = {
            "topic_index": topic,
            "judged": judged,
            "draw_probability": probabilities("draw_probability", self.draw_probability, judged.size),
        }
        for name, array in arrays.items():
            object.__setattr__(self, name, array)

    @property
    def judged_topic(self) -> Ints:
        """Return the topic of every judged item."""
        return np.asarray(self.topic_index[self.judged])

    def open_to(self, audit: "AuditSample") -> "Frame":
        """Return the frame with the items that were open to the audits in place of all judged ones."""
        return Frame(self.n_topics, self.topic_index, self.judged[audit.member], audit.draw_probability)


@dataclass(frozen=True, eq=False)
class Labels:
    """The grades that assessors gave to items, an entry a label, in any order; all count from 0.

    Two labels of one assessor for one item count as two.

    Attributes
    ----------
    item, assessor, grade : int arrays
    n_items, n_assessors, n_grades : int
        Grades are those on the scale, at least 2.
    relevant_grade : int
        The lowest grade that counts as relevant.

    Raises
    ------
    ValueError
        A number off its range, arrays of different lengths.
    """

    item: Ints
    assessor: Ints
    grade: Ints
    n_items: int
    n_assessors: int
    n_grades: int
    relevant_grade: int = 1

    def __post_init__(self) -> None:
        if self.n_grades < 2:
            raise ValueError(f"n_grades must be at least 2, got {self.n_grades}")
        if self.relevant_grade < 1:
            raise ValueError(f"relevant_grade must be at least 1, got {self.relevant_grade}")
        arrays = {
            "item": integers("label_item", self.item, 0, self.n_items - 1),
            "assessor": integers("label_assessor", self.assessor, 0, self.n_assessors - 1),
            "grade": integers("label_grade", self.grade, 0, self.n_grades - 1),
        }
        sizes = [array.size for array in arrays.values()]
        if len(set(sizes)) > 1:
            raise ValueError(f"label arrays must be equally long, got {', '.join(map(str, sizes))}")
        for name, array in arrays.items():
            object.__setattr__(self, name, array)

    @cached_property
    def counts(self) -> Ints:
        """Return the labels of each item, of which every item needs one."""
        count = np.bincount(self.item, minlength=self.n_items)
        if (count == 0).any():
            raise ValueError(f"every item must have at least 1 label, got 0 for item {int(np.argmin(count))}")
        return count

    @cached_property
    def share(self) -> Floats:
        """Return by label 1 / the labels of its item."""
        return np.asarray(1 / self.counts[self.item])

    def table(self) -> NDArray[np.int32]:
        """Return counts[item, grade].

        >>> Labels([0, 0, 1], [0, 1, 0], [2, 2, 0], n_items=2, n_assessors=2, n_grades=3).table().tolist()
        [[0, 0, 2], [1, 0, 0]]
        """
        counts = np.bincount(self.item * self.n_grades + self.grade, minlength=self.n_items * self.n_grades)
        return counts.reshape(self.n_items, self.n_grades).astype(np.int32)

    def means(self, values: Floats | Ints) -> Floats:
        """Return the mean per item of the values of its labels.

        >>> Labels([0, 0, 1], [0, 1, 0], [1, 0, 1], n_items=2, n_assessors=2, n_grades=2).means([1, 0, 1]).tolist()
        [0.5, 1.0]
        """
        return np.asarray(np.bincount(self.item, weights=values, minlength=self.n_items) / self.counts)

    def classes(self, *, steps: int = 12) -> Ints:
        """Return a bronze class per item from its votes: the mean grade in `steps` steps a grade.

        12 keeps apart the means of 1, 2, 3, 4 and 6 votes. Classes with little audit are merged later.

        >>> Labels([0, 0, 1], [0, 1, 0], [1, 0, 1], n_items=2, n_assessors=2, n_grades=2).classes().tolist()
        [6, 12]
        """
        if steps < 1:
            raise ValueError(f"steps must be at least 1, got {steps}")
        return np.rint(self.means(self.grade) * steps).astype(np.int64)

    def of_items(self, items: Ints) -> "Labels":
        """Return the labels of some items, which are then counted from 0."""
        if np.array_equal(items, np.arange(self.n_items)):
            return self
        place = np.full(self.n_items, -1)
        place[items] = np.arange(items.size)
        kept = np.flatnonzero(place[self.item] >= 0)
        return replace(
            self,
            item=place[self.item[kept]],
            assessor=self.assessor[kept],
            grade=self.grade[kept],
            n_items=items.size,
        )

    def of_assessors(self) -> tuple[Ints, "Labels"]:
        """Return the assessors who gave a label, and the labels with each by the place among these."""
        present, place = compress(self.assessor)
        if present.size == self.n_assessors:
            return present, self
        return present, replace(self, assessor=place, n_assessors=present.size)


@dataclass(frozen=True, eq=False)
class AuditSample:
    """The judged items that were open to the completed audits, and what these found; an entry an item, in any order.

    Attributes
    ----------
    draw_probability : array
        The chance that the (Poisson) draw selected the item and that it is open to an audit, within (0, 1]; 1 for a
        whole pool.
    bronze_class : int array
        Ordered: the label, or `Labels.classes`, or a binned machine score.
    audited : bool array
    gold_grade : int array
        Read where audited; elsewhere it becomes 0.
    audit_probability : array
        The chance of being audited **given** that the item was judged, for every item, audited or not; 0 = it had
        none. Of several independent audits, the chance that any of them takes it.
    n_grades : int
        Grades on the scale, at least 2.
    member : int array, optional
        Places among the `n_judged` judged items; default, the items are all that were judged.
    n_judged : int, optional
    labels : Labels, optional
        Those of gold judges, where these judged the items themselves: `of_gold_judges`. The gold gain of an item is
        then the mean over its labels, and `gold_grade` is not read.
    assumption : str, optional
        What is assumed of gold that was not drawn here: every number made with it says so.

    Raises
    ------
    ValueError
        Input out of bounds or of different lengths; an audited item without a chance of being audited.
    """

    draw_probability: Floats
    bronze_class: Ints
    audited: Bools
    gold_grade: Ints
    audit_probability: Floats
    n_grades: int
    member: Ints = None  # type: ignore[assignment]  # always an array once constructed
    n_judged: int = -1
    labels: Labels | None = None
    assumption: str = ""

    @classmethod
    def of_gold_judges(cls, labels: Labels, draw_probability: Floats) -> "AuditSample":
        """Return the sample where gold judges judged every item: each is audited for certain, by its own labels.

        >>> labels = Labels([0, 0, 1], [0, 1, 0], [1, 0, 1], n_items=2, n_assessors=2, n_grades=2)
        >>> AuditSample.of_gold_judges(labels, np.ones(2)).gains([0, 1])[1].tolist()
        [0.5, 1.0]
        """
        everything = np.ones(labels.n_items)
        return cls(
            draw_probability=draw_probability,
            bronze_class=labels.classes(),
            audited=everything > 0,
            gold_grade=np.rint(labels.means(labels.grade)).astype(np.int64),
            audit_probability=everything,
            n_grades=labels.n_grades,
            labels=labels,
        )

    def __post_init__(self) -> None:
        seen = np.asarray(self.audited)
        n_items = seen.size
        if seen.dtype != np.bool_ or seen.shape != np.shape(self.draw_probability):
            n_drawn = np.size(self.draw_probability)
            raise ValueError(f"audited must be {n_drawn} booleans, got {seen.dtype} of shape {seen.shape}")
        classes = integers("bronze_class", self.bronze_class)
        if classes.size != n_items:
            raise ValueError(f"bronze_class must have length {n_items}, got {classes.size}")
        pi = finite("audit_probability", self.audit_probability, (n_items,))
        if ((pi < 0) | (pi > 1)).any():
            raise ValueError(f"audit_probability must be in [0, 1], got {pi[(pi < 0) | (pi > 1)][0]}")
        if (pi[seen] == 0).any():
            raise ValueError("audit_probability of an audited item must be above 0, got 0")
        if self.n_grades < 2:
            raise ValueError(f"n_grades must be at least 2, got {self.n_grades}")
        grade = integers("gold_grade", np.where(seen, self.gold_grade, 0), 0, self.n_grades - 1)
        if self.member is None:
            object.__setattr__(self, "n_judged", n_items)
        member = np.arange(n_items) if self.member is None else self.member
        member = integers("member", member, 0, self.n_judged - 1)
        if member.size != n_items:
            raise ValueError(f"member must have length {n_items}, got {member.size}")
        arrays = {
            "draw_probability": probabilities("draw_probability", self.draw_probability, n_items),
            "bronze_class": classes,
            "audited": seen,
            "gold_grade": grade,
            "audit_probability": pi,
            "member": member,
        }
        for name, array in arrays.items():
            object.__setattr__(self, name, array)

    @cached_property
    def is_whole(self) -> bool:
        """Return whether the items are all judged items, in their order."""
        return np.array_equal(self.member, np.arange(self.n_judged))

    @cached_property
    def unauditable(self) -> Bools:
        """Return which items had no chance of being audited: targets with weight there are refused."""
        return np.asarray(self.audit_probability == 0)

    @cached_property
    def divisor(self) -> Floats:
        """Return the audit probability, 1 where there was none: there, values are multiplied by a weight of 0."""
        return np.where(self.unauditable, 1.0, self.audit_probability)

    @cached_property
    def classes(self) -> Ints:
        """Return bronze classes 0, 1, ... such that each holds enough audited items: `merged_classes`."""
        return merged_classes(self.bronze_class, self.audited)

    def gains(self, gains: ArrayLike) -> tuple[Floats, Floats]:
        """Return the gain of every grade, checked, and the gold gain of every item, 0 where it was not audited."""
        scale = finite("gains", gains)
        if scale.shape != (self.n_grades,):
            raise ValueError(f"gains must be of {self.n_grades} grades, got shape {scale.shape}")
        if self.labels is not None:
            return scale, self.labels.means(scale[self.labels.grade])
        return scale, np.where(self.audited, scale[self.gold_grade], 0.0)

    def class_moments(self, gain: Floats, span: float) -> Floats:
        """Return (mu, s2) per item: weighted mean and variance of the audited gains of its bronze class.

        Ten equal audited gains do not prove that a class has no errors. So s2 counts one more observation, drawn
        from the gains of the whole audit (two grades: this is nearly Jeffreys' half a hit and half a miss), and is
        at least what half an unseen observation at the far end of the gain scale, `span`, would make it.
        """
        if not self.audited.size:
            return np.zeros((2, 0))
        classes = self.classes
        value, weight, member = gain[self.audited], 1 / self.divisor[self.audited], classes[self.audited]
        n, n_classes = value.size, int(classes.max()) + 1
        floor = span**2 * 0.5 * (n + 0.5) / (n + 1) ** 2
        centre, overall = (float(value.mean()), float(value.var())) if n else (0.0, 0.0)

        def weighted_means(values: Floats) -> Floats:
            return np.asarray(
                np.bincount(member, weight * values, n_classes) / np.where(count > 0, whole, 1.0)
            )

        count, whole = np.bincount(member, minlength=n_classes), np.bincount(member, weight, n_classes)
        mean = weighted_means(value)
        spread = weighted_means((value - mean[member]) ** 2) * count / np.maximum(1, count - 1)
        with_one = (count * spread + overall) / (count + 1) + count * (mean - centre) ** 2 / (count + 1) ** 2
        return np.stack([mean, np.maximum(floor, with_one)])[:, classes]
