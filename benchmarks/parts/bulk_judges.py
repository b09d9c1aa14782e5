"""The simulated assessors of benchmarks/chain.py: they judge in bulk, past the same triggers, as submit() leaves it."""

import uuid
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from parts.synthetic import Ints, Population

SKILLS = (1.0, 0.95, 0.95, 0.9, 0.9, 0.85)
MIDDLE = 0.5  # the popularity of all documents under class-conditional noise
MILLISECONDS_EACH = 20_000

FILLED = "slot_id bigint, assessor_id bigint, grade integer, milliseconds integer, comment text"
AS_SUBMIT_LEAVES_THEM = (
    """UPDATE judging_slot s SET state = 'done', assessor_id = f.assessor_id, token = gen_random_uuid(),
              leased_at = clock_timestamp(), lease_until = NULL
         FROM filled f WHERE s.id = f.slot_id AND s.state = 'open'""",
    """INSERT INTO judging_lease (token, slot_id, assessor_id, leased_at)
       SELECT s.token, s.id, s.assessor_id, s.leased_at FROM filled f JOIN judging_slot s ON s.id = f.slot_id""",
    """INSERT INTO judging_judgment (item_id, assessor_id, sequence, grade, slot_id, lease_token, client_token,
                                     active_milliseconds, comment, document_version, created_at)
       SELECT s.item_id, s.assessor_id, 1, f.grade, s.id, s.token, gen_random_uuid(), f.milliseconds, f.comment,
              d.version, clock_timestamp()
         FROM filled f JOIN judging_slot s ON s.id = f.slot_id JOIN judging_item i ON i.id = s.item_id
         JOIN judging_document d ON d.id = i.document_id""",
    """UPDATE judging_assessor a SET n_judged = n_judged + f.n
         FROM (SELECT assessor_id, count(*) AS n FROM filled GROUP BY assessor_id) f WHERE a.id = f.assessor_id""",
)


def fill(rows: Iterable[tuple[int, int, int]]) -> None:
    """Judge open slots: rows of (slot, assessor, grade)."""
    fill_timed((*row, MILLISECONDS_EACH, "") for row in rows)


def fill_timed(rows: Iterable[tuple[int, int, int, int, str]]) -> None:
    """Judge open slots: rows of (slot, assessor, grade, milliseconds, comment). Within a transaction."""
    from django.db import connection

    from judging.services.sources import copy_rows

    rows_copied = copy_rows("filled", FILLED, rows)
    with connection.cursor() as cursor:
        for number, sql in enumerate(AS_SUBMIT_LEAVES_THEM):
            cursor.execute(sql)
            if number < 3 and cursor.rowcount != rows_copied:
                raise RuntimeError(f"{cursor.rowcount} of {rows_copied} judgments were written")


@dataclass
class Judges:
    """Six simulated assessors and a gold assessor who is never wrong, in one campaign."""

    campaign: Any
    places: dict[tuple[int, int], int]  # (topic, document) keys to places in the population
    population: Population
    noise: str
    rng: np.random.Generator
    assessors: list[int] = field(default_factory=list)
    gold: int = 0
    met: dict[uuid.UUID, set[int]] = field(default_factory=lambda: defaultdict(set))

    def enrol(self, users: list[Any]) -> None:
        from judging.models import Assessor
        from judging.services.campaigns import add_assessor

        tiers = ["bronze"] * len(SKILLS) + ["gold"]
        keys = [
            add_assessor(campaign=self.campaign, user=user, tier=tier, kind=Assessor.Kind.SIMULATED).pk
            for user, tier in zip(users, tiers, strict=True)
        ]
        self.assessors, self.gold = keys[:-1], keys[-1]

    def judge(self, topic_ids: list[str], share: float = 1.0) -> None:
        """Judge what is wanted of the topics, and gold checks at the campaign's rate; no assessor gets an item twice.

        With a share below 1, each judgment that is wanted is given with this probability: a random part.
        """
        open_slots = [
            row for row in self._open("judge", topic_ids) if share == 1 or self.rng.random() < share
        ]
        n_checks = round(len(open_slots) * self.campaign.gold_check_rate)
        checks = self._open("check", topic_ids)
        chosen = [checks[place] for place in self.rng.permutation(len(checks))]
        given: list[tuple[int, int, int]] = []  # slot, place in the population, assessor
        for number, (slot, item, place) in enumerate([*open_slots, *chosen]):
            if number >= len(open_slots) + n_checks:
                break
            free = [who for who in range(len(SKILLS)) if who not in self.met[item]]
            if free:
                who = free[self.rng.integers(len(free))]
                self.met[item].add(who)
                given.append((slot, place, who))
        slots, places, who = (np.array(column) for column in zip(*given, strict=True))
        grades = self._grades(places, who)
        fill(
            (int(slot), self.assessors[w], int(grade))
            for slot, w, grade in zip(slots, who, grades, strict=True)
        )

    def judge_audit(self) -> None:
        rows = self._open("audit", None)
        fill((slot, self.gold, int(self.population.grade[place])) for slot, _, place in rows)

    def _open(self, purpose: str, topic_ids: list[str] | None) -> list[tuple[int, uuid.UUID, int]]:
        slots = self.campaign.slots.filter(purpose=purpose, state="open").order_by(
            "topic_id", "position", "id"
        )
        if topic_ids is not None:
            slots = slots.filter(topic__topic_id__in=topic_ids)
        rows = slots.values_list("id", "item_id", "topic_id", "item__document_id")
        return [(slot, item, self.places[topic, document]) for slot, item, topic, document in rows]

    def _grades(self, places: Ints, who: Ints) -> Ints:
        from touchstone.demo.simulated import simulated_grades

        share = self.population.share[places]
        if self.noise == "class_conditional":
            share = np.full(places.size, MIDDLE)
        return simulated_grades(self.rng, self.population.grade[places], share, np.array(SKILLS)[who])
