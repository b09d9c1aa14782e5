"""The campaign to watch: programs judge it through claim and submit, and its audits as long as the demo runs."""

import contextlib
import time
import uuid
from typing import Any

import numpy as np
from django.db import close_old_connections

from analytics.services.recomputation import queue_recomputation
from judging.models import Assessor, Campaign, Slot
from judging.services.assign import claim
from judging.services.errors import Refused
from touchstone.demo import simulated
from touchstone.demo.simulated_campaign import SimulatedCampaign

GOLD, SILVER = "sim-gold", "sim-silver"
SILVER_ASSESSOR = simulated.SimulatedAssessor(SILVER, skill=1.0, median_seconds=35.0)
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


class Simulation(SimulatedCampaign):
    """Programs that judge a campaign through claim and submit, erring as real judges do (demo/simulated.py)."""

    def __init__(self, campaign: Campaign) -> None:
        super().__init__(campaign)
        self.rng = np.random.default_rng(20261121)

    def judge(self, say: Any) -> None:
        """Let the simulated assessors take turns until there is no more work."""
        people = [(self.assessor(who.username, Assessor.Tier.BRONZE), who) for who in simulated.ASSESSORS]
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
        gold = self.assessor(GOLD, Assessor.Tier.GOLD)
        n = sum(1 for _ in iter(lambda: self._judge_one(gold, None), False))
        say(f"{n} audited items judged by the gold tier")

    def judge_silver_audit(self, say: Any) -> None:
        """Let the simulated silver assessor, who errs as the best measured judge, judge what an audit selected."""
        silver = self.assessor(SILVER, Assessor.Tier.SILVER)
        n = sum(1 for _ in iter(lambda: self._judge_one(silver, SILVER_ASSESSOR), False))
        say(f"{n} audited items judged by the silver tier")

    def audits_wait(self) -> bool:
        """Return whether the gold tier has anything to judge; the cost follows what waits, by an index."""
        waiting = self.campaign.slots.filter(purpose=Slot.Purpose.AUDIT)
        return waiting.exclude(state=Slot.State.DONE).exists()

    def _judge_one(self, assessor: Assessor, who: simulated.SimulatedAssessor | None) -> bool:
        held = claim(assessor=assessor).item
        if held is None:
            return False
        pair = self.pair(held.item_id)
        grade, seconds = self.truth.get(pair, 0), 30.0
        if who is not None:
            grade = simulated.simulated_grade(self.rng, grade, self.share(pair), who.skill)
            seconds = float(simulated.simulated_seconds(self.rng, 1, who.median_seconds)[0])
        self.give(assessor, held, grade, seconds)
        return True
