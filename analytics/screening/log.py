"""The log that screening reads: a row per judgment, in blocks of one assessor and topic."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sampling.arrays import FloatArray, IndexArray

Mask = NDArray[np.bool_]
UNKNOWN = -1  # the true label of an item that nobody with the right to say has judged


@dataclass(frozen=True)
class ScreeningLog:
    """Judgments in the order of assessor, topic and presentation. Make one by `ScreeningLog.of`.

    Attributes
    ----------
    assessor, topic : (n,) arrays of int
        Numbers from 0.
    position : (n,) array of int
        Place of the judgment among those of its assessor and topic, from 0.
    relevant : (n,) array of int
        The label given, 1 or 0.
    seconds : (n,) array
        Active seconds; NaN where none were measured.
    prior : (n,) array
        The prior of the item in the frame: any score that rises with the chance of relevance; NaN where there is none.
    truth : (n,) array of int
        The gold label, or UNKNOWN.
    is_machine : (n_assessors,) array of bool
    has_order : (n,) array of bool
        The order of presentation is known.
    """

    assessor: IndexArray
    topic: IndexArray
    position: IndexArray
    relevant: IndexArray
    seconds: FloatArray
    prior: FloatArray
    truth: IndexArray
    is_machine: Mask
    has_order: Mask

    @classmethod
    def of(
        cls,
        assessor: ArrayLike,
        topic: ArrayLike,
        order: ArrayLike,
        relevant: ArrayLike,
        *,
        seconds: ArrayLike | None = None,
        prior: ArrayLike | None = None,
        truth: ArrayLike | None = None,
        is_machine: ArrayLike | None = None,
    ) -> "ScreeningLog":
        """Return the log of unsorted columns.

        `order` rises with presentation: a time or a number; NaN where it is unknown (imports). Rows without an order
        keep the order in which they come, and `has_order` says so.

        Raises
        ------
        ValueError
            If columns differ in length, or a label is not 0 or 1.
        """
        who, what = np.asarray(assessor, dtype=np.int64), np.asarray(topic, dtype=np.int64)
        when, label = np.asarray(order, dtype=np.float64), np.asarray(relevant)
        n = who.size
        columns = {
            "seconds": np.full(n, np.nan) if seconds is None else np.asarray(seconds, dtype=np.float64),
            "prior": np.full(n, np.nan) if prior is None else np.asarray(prior, dtype=np.float64),
            "truth": np.full(n, UNKNOWN) if truth is None else np.asarray(truth),
            "topic": what,
            "order": when,
            "relevant": label,
        }
        for name, values in columns.items():
            if values.shape != (n,):
                raise ValueError(f"{name} must have {n} items, got shape {values.shape}")
        for name, values, known in (
            ("relevant", label, (0, 1)),
            ("truth", columns["truth"], (UNKNOWN, 0, 1)),
        ):
            refused = values[~np.isin(values, known)]
            if refused.size:
                raise ValueError(f"{name} must be one of {known}, got {refused[0]}")
        n_assessors = int(who.max(initial=-1)) + 1
        machines = np.zeros(n_assessors, bool) if is_machine is None else np.asarray(is_machine, dtype=bool)
        rows = np.lexsort((np.where(np.isnan(when), np.inf, when), what, who))
        who, what = who[rows], what[rows]
        starts = _starts(who, what)
        position = np.arange(n) - np.repeat(starts, np.diff([*starts, n]))
        return cls(
            who,
            what,
            position,
            label[rows].astype(np.int64),
            columns["seconds"][rows],
            columns["prior"][rows],
            columns["truth"][rows].astype(np.int64),
            machines,
            ~np.isnan(when[rows]),
        )

    def with_order(self) -> "ScreeningLog":
        """Return the log of the judgments whose order is known."""
        if self.has_order.all():
            return self
        rows = np.flatnonzero(self.has_order)
        return ScreeningLog.of(
            self.assessor[rows],
            self.topic[rows],
            self.position[rows],
            self.relevant[rows],
            seconds=self.seconds[rows],
            prior=self.prior[rows],
            truth=self.truth[rows],
            is_machine=self.is_machine,
        )

    @property
    def n_assessors(self) -> int:
        return self.is_machine.size

    @cached_property
    def starts(self) -> IndexArray:
        """Return the first row of every session: the judgments of one assessor and topic."""
        return _starts(self.assessor, self.topic)

    @cached_property
    def session(self) -> IndexArray:
        """Return the session of every row."""
        return np.repeat(np.arange(self.starts.size), self.sizes)

    @cached_property
    def sizes(self) -> IndexArray:
        """Return the number of judgments of every session."""
        return np.diff([*self.starts, self.assessor.size])

    @cached_property
    def session_assessor(self) -> IndexArray:
        return self.assessor[self.starts]

    @cached_property
    def session_topic(self) -> IndexArray:
        return self.topic[self.starts]

    @cached_property
    def n_judgments(self) -> IndexArray:
        """Return the number of judgments of every assessor."""
        return np.bincount(self.assessor, minlength=self.n_assessors)

    @cached_property
    def n_relevant(self) -> IndexArray:
        """Return the number of relevant labels of every session."""
        return np.bincount(self.session, weights=self.relevant, minlength=self.starts.size).astype(np.int64)

    def per_session(self, values: FloatArray) -> FloatArray:
        """Return the sum of the values over every session."""
        return np.bincount(self.session, weights=values, minlength=self.starts.size).astype(np.float64)

    def per_assessor(self, values: FloatArray) -> FloatArray:
        """Return the sum of values of sessions over the assessors."""
        return np.bincount(self.session_assessor, weights=values, minlength=self.n_assessors).astype(
            np.float64
        )

    def topics_of(self, sessions: Mask) -> dict[int, tuple[int, ...]]:
        """Return the topics of the chosen sessions, by assessor."""
        topics: dict[int, tuple[int, ...]] = {}
        for session in np.flatnonzero(sessions).tolist():
            one = int(self.session_assessor[session])
            topics[one] = (*topics.get(one, ()), int(self.session_topic[session]))
        return topics


def _starts(assessor: IndexArray, topic: IndexArray) -> IndexArray:
    """Return where assessor or topic differs from the row before."""
    if not assessor.size:
        return np.zeros(0, dtype=np.int64)
    changes = (np.diff(assessor) != 0) | (np.diff(topic) != 0)
    return np.concatenate(([0], np.flatnonzero(changes) + 1))
