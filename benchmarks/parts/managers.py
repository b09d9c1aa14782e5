"""Colluders in campaigns whose managers requeue, suspend, audit and top up, in any order, in a simulation.

What a manager does mirrors judging/services/leases.py (`requeue`) and judging/services/campaigns.py (`want_judgments`,
`add_check_slots`) as colluders.py mirrors the claim. The worst case for the gold: from the manager's first act on only
the colluders work, and they note what each of them saw before and after.
"""

import itertools
import math
import random
from bisect import insort
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from parts import presentations
from parts.colluders import GOLD, ORDINARY, Bools, Campaign, Floats, Setting
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from judging.scheduler import plan_checks

REQUEUE, SUSPEND, AUDIT, TOP_UP = "requeue", "suspend", "audit", "top up"
ACTS = (REQUEUE, SUSPEND, AUDIT, TOP_UP)
REQUEUED = (REQUEUE,)
TOPPED_UP = 0.4  # a later batch, as a share of the first
AUDITED = 0.12  # of the judged items
Script = tuple[str, ...]
SIZES = (2, 5, 10)  # colluders
MOST = 0.55
SETTINGS = tuple(
    Setting(
        10, k, 1000, 0, n_topics=5, n_items=60, gold_rate=0.2
    )  # the judgments of one: 30 and 7 or 8 checks
    for k in (1, 3)
)


def scripts() -> Iterator[Script]:
    """Return every order of some or all acts."""
    for n in range(1, len(ACTS) + 1):
        yield from itertools.permutations(ACTS, n)


class Managed(Campaign):
    """A campaign with gold enough whose manager acts; the control does not bring requeued checks back."""

    def __init__(self, setting: Setting, seed: int, *, brings_checks_back: bool = True) -> None:
        super().__init__(setting, seed)
        if self.plan.exposures != setting.judgments_per_item:
            raise ValueError("gold must be enough: a check is shown no more often than other items")
        self.brings_checks_back = brings_checks_back
        self.topic_of = {
            item: topic
            for topic in self._topics()
            for queue in (self.ordinary, self.checks)
            for _, item in queue[topic].slots
        }
        self.suspended: set[int] = set()
        self.audited: set[int] = set()
        self.requeued_items: set[int] = set()
        self.first_act = math.inf

    def play(self, script: Script, colluders: list[int]) -> "Managed":
        """Work, let the manager act on the first colluder, and go on: in the end until there is no work."""
        everybody = list(range(self.setting.n_assessors))
        n_slots = len(self.kind) * self.setting.judgments_per_item
        self.work(everybody, self.rng.uniform(0.6, 1.0) * n_slots)
        self.first_act = len(self.sightings)
        for act in script:
            self.act(act, colluders[0])
            self.work(
                [one for one in colluders if one not in self.suspended], self.rng.uniform(0, 0.2) * n_slots
            )
        self.work([one for one in colluders if one not in self.suspended])
        return self

    def act(self, act: str, assessor: int) -> None:
        acts: dict[str, Callable[[], None]] = {
            REQUEUE: lambda: self.requeue(assessor),
            SUSPEND: lambda: self.suspended.add(assessor),
            AUDIT: self.audit,
            TOP_UP: self.top_up,
        }
        acts[act]()

    def requeue(self, assessor: int) -> None:
        """Open every slot again that the assessor filled, at its place."""
        for topic, position, item in self.filled[assessor]:
            self.requeued_items.add(item)
            if self.kind[item] == ORDINARY:
                insort(self.ordinary[topic].slots, (position, item))
            elif self.brings_checks_back:
                insort(self.checks[topic].slots, (position, item))
        self.filled[assessor] = []

    def audit(self) -> None:
        """Let somebody of the gold tier judge a random part of the items that are completely judged."""
        waiting = {item for queue in self.ordinary for _, item in queue.slots}
        for item, kind in enumerate(self.kind):
            if kind == ORDINARY and item not in waiting and self.rng.random() < AUDITED:
                self.audited.add(item)

    def top_up(self) -> None:
        """Draw a later batch: former checks among it become ordinary items in place, and new checks come with it."""
        n_new = round(TOPPED_UP * self.setting.n_items)
        for topic in self._topics():
            checks = [item for item, of in self.topic_of.items() if of == topic and self.kind[item] == GOLD]
            chance = n_new / (self.setting.n_undrawn + len(checks))
            drawn = {item for item in checks if self.rng.random() < chance}
            for item in drawn:
                self.kind[item] = ORDINARY
            was = self.checks[topic].slots
            self.checks[topic].slots = [slot for slot in was if slot[1] not in drawn]
            for slot in was:
                if slot[1] in drawn:
                    insort(self.ordinary[topic].slots, slot)
            n_checks = plan_checks(
                n_items=n_new,
                judgments_per_item=self.setting.judgments_per_item,
                gold_rate=self.setting.gold_rate,
                n_gold=self.setting.n_gold,
                max_exposures=self.setting.max_exposures,
                decoys_per_check=0,
                n_undrawn=self.setting.n_undrawn,
            ).n_checks
            for kind, queue, n in (
                (ORDINARY, self.ordinary[topic], n_new - len(drawn)),
                (GOLD, self.checks[topic], n_checks),
            ):
                for slot in self._open(kind, n, self.setting.judgments_per_item).slots:
                    insort(queue.slots, slot)
                    self.topic_of[slot[1]] = topic


@dataclass(frozen=True)
class Notes:
    """What the colluders noted of each document that one of them saw, and whether it is gold."""

    # [document, (times seen, last minus first time, first time, seen in its topic, by the person the manager acted on
    # before that act, by others after it)]
    features: Floats
    is_gold: Bools
    was_requeued: Bools
    was_audited: Bools


def notes(campaign: Managed, colluders: list[int]) -> Notes:
    times: dict[int, list[int]] = {}
    by_first, after, in_topic = set(), Counter[int](), Counter[int]()
    for sighting in campaign.sightings:
        if sighting.assessor not in colluders:
            continue
        times.setdefault(sighting.item, []).append(sighting.time)
        in_topic[sighting.topic] += 1
        if sighting.assessor == colluders[0] and sighting.time < campaign.first_act:
            by_first.add(sighting.item)
        elif sighting.assessor != colluders[0] and sighting.time >= campaign.first_act:
            after[sighting.item] += 1
    total = len(campaign.sightings)
    rows = [
        (
            len(seen),
            (seen[-1] - seen[0]) / total,
            seen[0] / total,
            in_topic[campaign.topic_of[item]],
            item in by_first,
            after[item],
        )
        for item, seen in times.items()
    ]
    return Notes(
        np.array(rows, dtype=float),
        np.array([campaign.kind[item] == GOLD for item in times]),
        np.array([item in campaign.requeued_items and item in by_first for item in times]),
        np.array([item in campaign.audited for item in times]),
    )


def joined_notes(pools: list[Notes]) -> Notes:
    return Notes(
        np.concatenate([one.features for one in pools]),
        np.concatenate([one.is_gold for one in pools]),
        np.concatenate([one.was_requeued for one in pools]),
        np.concatenate([one.was_audited for one in pools]),
    )


@dataclass(frozen=True)
class Area:
    """The area under the ROC curve of an attack, and the standard error that knowing nothing has with so many."""

    auc: float
    error: float

    @classmethod
    def of(cls, is_gold: Bools, scores: Floats) -> "Area":
        n, m = int(is_gold.sum()), int((~is_gold).sum())
        return cls(float(roc_auc_score(is_gold, scores)), math.sqrt((n + m + 1) / (12 * n * m)))

    @property
    def either_way(self) -> float:
        return max(self.auc, 1 - self.auc)


def attacks(pools: list[Notes], seed: int) -> dict[str, Area]:
    """Return what colluders gain by each attack.

    "came back": of what the requeued person had judged, what others met again afterwards is no check, or is one.
    "trained": a classifier on all notes, learned on the first half of the campaigns. "audited": an auditor is among the
    colluders, and what they audited is no check.
    """
    everything, half = joined_notes(pools), len(pools) // 2
    own = everything.was_requeued
    found = {"seen": Area.of(everything.is_gold, everything.features[:, 0])}
    if own.any():
        found["came back"] = Area.of(everything.is_gold[own], everything.features[own, 5])
    learned, attacked = joined_notes(pools[:half]), joined_notes(pools[half:])
    model = HistGradientBoostingClassifier(
        max_iter=60, max_leaf_nodes=8, min_samples_leaf=40, random_state=seed
    ).fit(learned.features, learned.is_gold)
    found["trained"] = Area.of(attacked.is_gold, model.predict_proba(attacked.features)[:, 1])
    if everything.was_audited.any():
        found["audited"] = Area.of(everything.is_gold, -everything.was_audited.astype(float))
    return found


def under_managers(
    setting: Setting,
    script: Script,
    n_colluders: int,
    n_campaigns: int,
    seed: int,
    *,
    brings_checks_back: bool = True,
) -> dict[str, Area]:
    """Return the attacks' areas over so many campaigns of the script."""
    rng = random.Random(f"{seed} {script} {n_colluders}")
    pools = []
    for _ in range(n_campaigns):
        campaign = Managed(setting, rng.randrange(2**40), brings_checks_back=brings_checks_back)
        group = rng.sample(range(setting.n_assessors), n_colluders)
        pools.append(notes(campaign.play(script, group), group))
    return attacks(pools, seed)


def measure(n_campaigns: int, seed: int) -> list[dict[str, Any]]:
    """Return a row for every script, k and number of colluders, and for the control: checks do not come back."""
    rows = []
    for setting, script, n, comes_back in itertools.product(SETTINGS, scripts(), SIZES, (True, False)):
        if not comes_back and script != REQUEUED:
            continue
        areas = under_managers(setting, script, n, n_campaigns, seed, brings_checks_back=comes_back)
        rows.append(
            {
                "script": list(script),
                "k": setting.judgments_per_item,
                "colluders": n,
                "checks_come_back": comes_back,
                "attacks": {
                    name: {"auc": round(area.either_way, 3), "standard_error": round(area.error, 3)}
                    for name, area in areas.items()
                },
            }
        )
    return rows


def verdict(rows: list[dict[str, Any]], met: dict[str, dict[str, int]]) -> dict[str, bool]:
    """Return which demands are met; what an auditor among the colluders tells is shown, and has no limit."""
    areas = [
        area
        for row in rows
        if row["checks_come_back"]
        for name, area in row["attacks"].items()
        if name != "audited"
    ]
    controls = [
        row["attacks"]["came back"]["auc"] for row in rows if not row["checks_come_back"] and row["k"] == 1
    ]
    now, before = met["checks come back"], met["control"]
    return {
        "managers: no attack tells": all(area["auc"] <= MOST + 2 * area["standard_error"] for area in areas),
        "managers: all checks are met again": now["checks"] == now["checks_met"] > 0,
        "control: checks that do not come back are told": min(controls) == 1.0 and before["checks_met"] == 0,
    }


def met_again(*, brings_checks_back: bool) -> dict[str, int]:
    """Let A judge 120 documents and 30 checks in the product, have them made again, and count what B meets."""
    from judging.models import Slot
    from judging.services import leases
    from judging.services.campaigns import set_status

    kept = list(leases.REQUEUED)
    world = presentations.make_world(
        f"requeued, {brings_checks_back}", 2, n_topics=6, n_items=20, k=1, rate=0.2, n_gold=10
    )
    first, second = world.assessors
    by_first = presentations.judge_all_there_is(first)
    set_status(assessor=first, status="suspended", actor=None)
    try:
        if not brings_checks_back:
            leases.REQUEUED.remove(Slot.Purpose.CHECK)
        leases.requeue(assessor=first, actor=None)
    finally:
        leases.REQUEUED[:] = kept
    by_second = presentations.judge_all_there_is(second)
    return {
        "ordinary": len(by_first - world.gold),
        "ordinary_met": len(by_first & by_second - world.gold),
        "checks": len(by_first & world.gold),
        "checks_met": len(by_first & by_second & world.gold),
    }
