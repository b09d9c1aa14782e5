"""The campaign to watch: programs judge it through claim and submit, and its audits as long as the demo runs."""

import contextlib
import time
import uuid
from functools import cached_property
from typing import Any

import numpy as np
from django.db import close_old_connections

from analytics.services.recomputation import queue_recomputation
from judging.models import Assessor, Campaign, Document, GoldAnswer, Slot, Topic
from judging.rankings import read_rankings, top
from judging.services.assign import claim, submit
from judging.services.errors import Refused
from touchstone.demo import simulated
from touchstone.models import User

DEPTH = 20
GOLD = "sim-gold"
LOOK_EVERY = 2.0  # seconds


def judge_audits_for_ever(say: Any) -> None:
    """Let the simulated gold assessor judge whatever audits select in simulated campaigns, until the process ends."""
    simulations: dict[uuid.UUID, Simulation] = {}
    while True:
        for campaign in Campaign.objects.filter(is_simulated=True, state=Campaign.State.OPEN):
            if campaign.pk not in simulations:
                simulations[campaign.pk] = Simulation(campaign)
            if simulations[campaign.pk].audits_wait():
                with contextlib.suppress(
                    Refused
                ):  # a manager has paused the assessor, or closed the campaign
                    simulations[campaign.pk].judge_audit(say)
                queue_recomputation(campaign=campaign)  # at once: the demo's time is short
        close_old_connections()
        time.sleep(LOOK_EVERY)


class Simulation:
    """Programs that judge a campaign through claim and submit, erring as real judges do (demo/simulated.py)."""

    def __init__(self, campaign: Campaign) -> None:
        self.campaign = campaign
        self.rng = np.random.default_rng(20261121)
        self.truth = self._truth()
        self.pairs: dict[uuid.UUID, tuple[int, int]] = {}

    def _pair(self, item_id: uuid.UUID) -> tuple[int, int]:
        if item_id not in self.pairs:  # at first, or drawn since
            rows = self.campaign.items.values_list("pk", "topic_id", "document_id")
            self.pairs = {item: (topic, document) for item, topic, document in rows}
        return self.pairs[item_id]

    def _truth(self) -> dict[tuple[int, int], int]:
        answers = GoldAnswer.objects.filter(topic__collection=self.campaign.collection)
        return {(a, b): grade for a, b, grade in answers.values_list("topic_id", "document_id", "grade")}

    @cached_property
    def popularity(self) -> dict[tuple[int, int], float]:
        """Return per item the share of the runs that return it within the pool's depth."""
        collection = self.campaign.collection
        topics = dict(Topic.objects.filter(collection=collection).values_list("topic_id", "pk"))
        documents = dict(Document.objects.filter(collection=collection).values_list("doc_id", "pk"))
        runs = list(collection.runs.all())
        share: dict[tuple[int, int], float] = {}
        for run in runs:
            rows = top(read_rankings(run.rankings.path), DEPTH).select("topic_id", "doc_id")
            for topic_id, doc_id in rows.iter_rows():
                if topic_id in topics and doc_id in documents:
                    pair = topics[topic_id], documents[doc_id]
                    share[pair] = share.get(pair, 0.0) + 1 / len(runs)
        return share

    def _assessor(self, username: str, tier: str) -> Assessor:
        user, _ = User.objects.get_or_create(username=username)
        made, _ = Assessor.objects.get_or_create(
            campaign=self.campaign, user=user, defaults={"tier": tier, "kind": Assessor.Kind.SIMULATED}
        )
        return Assessor.objects.select_related("campaign__scale", "campaign__collection").get(pk=made.pk)

    def judge(self, say: Any) -> None:
        """Let the simulated assessors take turns until there is no more work."""
        people = [(self._assessor(who.username, Assessor.Tier.BRONZE), who) for who in simulated.ASSESSORS]
        done = 0
        while people:
            for entry in list(people):
                assessor, who = entry
                if not self._judge_one(assessor, who):
                    people.remove(entry)
                    continue
                done += 1
                if done % 500 == 0:
                    say(f"{done} simulated judgments")
        say(f"{done} simulated judgments, gold checks included")

    def judge_audit(self, say: Any) -> None:
        """Let the simulated gold assessor, who is never wrong, judge what the audit selected."""
        gold = self._assessor(GOLD, Assessor.Tier.GOLD)
        n = sum(1 for _ in iter(lambda: self._judge_one(gold, None), False))
        say(f"{n} audited items judged by the gold tier")

    def audits_wait(self) -> bool:
        """Return whether the gold tier has anything to judge; the cost follows what waits, by an index."""
        waiting = self.campaign.slots.filter(purpose=Slot.Purpose.AUDIT)
        return waiting.exclude(state=Slot.State.DONE).exists()

    def _judge_one(self, assessor: Assessor, who: simulated.SimulatedAssessor | None) -> bool:
        held = claim(assessor=assessor).item
        if held is None:
            return False
        pair = self._pair(held.item_id)
        grade, seconds = self.truth.get(pair, 0), 30.0
        if who is not None:
            grade = simulated.simulated_grade(self.rng, grade, self._share(pair), who.skill)
            seconds = float(simulated.simulated_seconds(self.rng, 1, who.median_seconds)[0])
        submit(
            assessor=assessor,
            token=held.token,
            client_token=uuid.uuid4(),
            grade=int(grade),
            active_milliseconds=int(1000 * seconds),
        )
        return True

    def _share(self, pair: tuple[int, int]) -> float:
        return min(1.0, self.popularity.get(pair, 0.0))
