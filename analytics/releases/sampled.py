"""The sample that a release holds, as evaluations need it: its chances, and where a run's documents are in it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from analytics.estimation.estimate import Refusal
from analytics.releases.verify_facts import Facts, Floats, Ints, Mask, draw_probability, not_covered
from sampling.selections import NOT_AUDITED, NOT_BY_DOCUMENT

Ranking = Mapping[str, Sequence[str]]  # by topic, the documents, best first
SEED = 20261121  # of the bootstrap, where the release names none: an evaluation gives the same numbers every time


@dataclass(frozen=True, eq=False)
class SampledRelease:
    """The facts of a release with what no measure changes: the chances, and which items audits could take."""

    facts: Facts
    is_open: Mask  # [item]
    chance_judged: Floats  # [item]
    chance_open: Floats  # [item]
    refused: Refusal | None
    not_audited: Refusal | None
    seed: int

    @classmethod
    def of(cls, facts: Facts, seed: int | None = None) -> "SampledRelease":
        """Return the chances, or why the judged items (or those open to audits) do not stand for all.

        `seed` is that of the release's own bootstrap: with it a run of the release gets the very same interval.
        """
        everything = np.ones(facts.item.size, dtype=bool)
        is_open = everything if facts.is_by_gold_judges else facts.audit_probability > 0
        judged, opened = (draw_probability(facts, members) for members in (everything, is_open))
        words = "in some topics nothing {} yet, or only a part that is no random one"
        refused = Refusal(words.format("is judged")) if not_covered(facts, everything, judged) else None
        not_audited = (
            Refusal(words.format("was open to an audit")) if not_covered(facts, is_open, opened) else None
        )
        if not is_open.any():
            not_audited = Refusal(NOT_AUDITED if facts.is_foreign else "the release has no complete audit")
        if facts.has_whole_topics:
            refused = not_audited = Refusal(NOT_BY_DOCUMENT)
        return cls(
            facts,
            is_open,
            judged[facts.item],
            opened[facts.item],
            refused,
            not_audited,
            SEED if seed is None else seed,
        )

    @property
    def is_foreign(self) -> bool:
        """Return whether the sample was imported: what it does not hold counts as 0, and nothing is predicted."""
        return self.facts.is_foreign

    @property
    def is_complete(self) -> bool:
        return self.facts.item.size == int((self.facts.drawn_in > 0).sum())


@dataclass(frozen=True, eq=False)
class PlacedRun:
    """Where a run returns pairs of the frame, and the ranks at which it returns what is not in it."""

    place: Ints
    rank: Ints
    outside: Ints
    ranking: Ranking

    @classmethod
    def of(cls, facts: Facts, ranking: Ranking) -> "PlacedRun":
        inside: list[tuple[int, int]] = []
        outside: list[int] = []
        for topic in facts.topics:
            for rank, document in enumerate(ranking.get(topic, ()), 1):
                place = facts.places.get((topic, document))
                if place is None:
                    outside.append(rank)
                else:
                    inside.append((place, rank))
        table = np.array(inside, dtype=np.int64).reshape(-1, 2)
        return cls(table[:, 0], table[:, 1], np.array(outside, dtype=np.int64), ranking)

    def ranks(self, n_frame: int) -> Ints:
        ranks = np.zeros(n_frame, dtype=np.int64)
        ranks[self.place] = self.rank
        return ranks

    def shares(self, facts: Facts, last_rank: int) -> tuple[float, float]:
        """Return Judged@k of the run, and the share with a gold label: means over topics of shares of its first ones.

        A topic for which the run returns nothing counts 0.
        """
        is_judged, is_audited = np.zeros((2, facts.topic.size + 1), dtype=bool)  # the last place is outside
        is_judged[facts.item], is_audited[facts.item[facts.audited | facts.is_by_gold_judges]] = True, True
        found = np.zeros((2, len(facts.topics)))
        for number, topic in enumerate(facts.topics):
            first = [facts.places.get((topic, name), -1) for name in self.ranking.get(topic, ())[:last_rank]]
            if first:
                found[:, number] = is_judged[first].mean(), is_audited[first].mean()
        judged, audited = found.mean(axis=1).tolist()
        return judged, audited
