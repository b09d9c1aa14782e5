"""Colluders who tell each other which documents they have seen, in a simulation of the claims without a database.

`plan_checks` is the product's own. The rest mirrors judging/services/statements.py: each slot has a random position,
each claim looks from a random one, a coin says whether a check comes, and no assessor gets an item twice.
`benchmarks/gold.py` compares the simulation with the product on a small campaign.
"""

import math
import random
from bisect import bisect_left, insort
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from judging.scheduler import CheckPlan, plan_checks

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
ORDINARY, GOLD, DECOY = "ordinary", "gold", "decoy"


@dataclass(frozen=True)
class Setting:
    """A campaign: so many assessors and topics, k judgments an item, so much gold a topic."""

    n_assessors: int
    judgments_per_item: int
    n_gold: int  # a topic
    decoys_per_check: int
    n_topics: int = 10
    n_items: int = 50  # a topic
    gold_rate: float = 0.1
    max_exposures: int = 20
    n_undrawn: int = 200

    def plan(self) -> CheckPlan:
        return plan_checks(
            n_items=self.n_items,
            judgments_per_item=self.judgments_per_item,
            gold_rate=self.gold_rate,
            n_gold=self.n_gold,
            max_exposures=self.max_exposures,
            decoys_per_check=self.decoys_per_check,
            n_undrawn=self.n_undrawn,
        )


@dataclass(frozen=True)
class Sighting:
    """That an assessor was shown an item: `time` counts the presentations of the whole campaign."""

    time: int
    assessor: int
    topic: int
    item: int


@dataclass
class Open:
    """The open slots of a purpose in a topic, in the order of their random positions."""

    slots: list[tuple[float, int]] = field(default_factory=list)

    def look(self, pivot: float, seen: set[int]) -> int | None:
        """Return the place of the first slot from the pivot on, and round, whose item the assessor does not know."""
        start = bisect_left(self.slots, (pivot, -1))
        for step in range(len(self.slots)):
            place = (start + step) % len(self.slots)
            if self.slots[place][1] not in seen:
                return place
        return None


class Campaign:
    """A simulated campaign that runs until no assessor has work."""

    def __init__(self, setting: Setting, seed: int) -> None:
        self.setting, self.rng = setting, random.Random(seed)
        self.plan = setting.plan()
        self.kind: list[str] = []
        self.ordinary = [
            self._open(ORDINARY, setting.n_items, setting.judgments_per_item) for _ in self._topics()
        ]
        self.checks = [self._checks() for _ in self._topics()]
        self.seen: list[set[int]] = [set() for _ in range(setting.n_assessors)]
        self.topic = [self.rng.randrange(setting.n_topics) for _ in range(setting.n_assessors)]
        self.sightings: list[Sighting] = []
        # By assessor the slots that they filled: topic, position, item.
        self.filled: list[list[tuple[int, float, int]]] = [[] for _ in range(setting.n_assessors)]

    def _topics(self) -> range:
        return range(self.setting.n_topics)

    def _open(self, kind: str, n_items: int, n_each: int) -> Open:
        made = Open()
        for _ in range(n_items):
            self.kind.append(kind)
            for _ in range(n_each):
                insort(made.slots, (self.rng.random(), len(self.kind) - 1))
        return made

    def _checks(self) -> Open:
        gold = self._open(GOLD, self.plan.n_checks, self.plan.exposures)
        decoys = self._open(DECOY, self.plan.n_decoys, self.plan.exposures)
        return Open(sorted(gold.slots + decoys.slots))

    def run(self) -> "Campaign":
        self.work(list(range(self.setting.n_assessors)))
        return self

    def work(self, people: list[int], at_most: float = math.inf) -> None:
        """Let these people judge in random turns, so many items at most, until nobody of them has work."""
        active, end = list(people), len(self.sightings) + at_most
        while active and len(self.sightings) < end:
            assessor = self.rng.choice(active)
            lease = self.claim(assessor)
            if lease is None:
                active.remove(assessor)
            else:
                topic, item = lease
                self.sightings.append(Sighting(len(self.sightings), assessor, topic, item))

    def claim(self, assessor: int) -> tuple[int, int] | None:
        seen = self.seen[assessor]
        for turn in range(self.setting.n_topics):
            topic = (self.topic[assessor] + turn) % self.setting.n_topics
            pivot = self.rng.random()
            ordinary = self.ordinary[topic].look(pivot, seen)
            check = self.checks[topic].look(pivot, seen)
            if turn and ordinary is None:  # an assessor goes on to topics with ordinary work only
                continue
            slots, place = self.ordinary[topic].slots, ordinary
            if check is not None and self._is_check(topic, pivot, ordinary, check):
                slots, place = self.checks[topic].slots, check
            if place is None:
                continue
            position, item = slots.pop(place)
            seen.add(item)
            self.filled[assessor].append((topic, position, item))
            self.topic[assessor] = topic
            return topic, item
        return None

    def _is_check(self, topic: int, pivot: float, ordinary: int | None, check: int) -> bool:
        """Checks that are shown as often as other items lie in one queue with them; for others a coin is thrown."""
        if self.plan.exposures > self.setting.judgments_per_item:
            return self.rng.random() < self.plan.rate
        if ordinary is None:
            return True
        to_check = self.checks[topic].slots[check][0] - pivot
        return to_check % 1 < (self.ordinary[topic].slots[ordinary][0] - pivot) % 1


@dataclass(frozen=True)
class Pool:
    """What a group of colluders knows of each document that one of them has seen, and whether it is gold."""

    features: Floats  # [document, (times seen, spread in time, first seen, seen by them in its topic)]
    is_gold: Bools
    is_checked: Bools  # gold or decoy

    @property
    def times_seen(self) -> Floats:
        return self.features[:, 0]


def pool(campaign: Campaign, colluders: set[int]) -> Pool:
    """Return what the colluders know when the campaign is over."""
    times: dict[int, list[int]] = defaultdict(list)
    topic_of: dict[int, int] = {}
    in_topic: dict[int, int] = defaultdict(int)
    for sighting in campaign.sightings:
        if sighting.assessor in colluders:
            times[sighting.item].append(sighting.time)
            topic_of[sighting.item] = sighting.topic
            in_topic[sighting.topic] += 1
    total = len(campaign.sightings)
    rows = [
        (len(seen), (seen[-1] - seen[0]) / total, seen[0] / total, in_topic[topic_of[item]])
        for item, seen in times.items()
    ]
    kinds = [campaign.kind[item] for item in times]
    return Pool(
        np.array(rows, dtype=float),
        np.array([kind == GOLD for kind in kinds]),
        np.array([kind != ORDINARY for kind in kinds]),
    )


def joined(pools: list[Pool]) -> Pool:
    return Pool(
        np.concatenate([one.features for one in pools]),
        np.concatenate([one.is_gold for one in pools]),
        np.concatenate([one.is_checked for one in pools]),
    )


@dataclass(frozen=True)
class Gain:
    """What colluders gain: areas under the ROC curve; and, of the documents seen more than k times, what they are."""

    auc_count: float  # the document seen more often is gold
    auc_trained: float  # a classifier trained on other campaigns of the same setting
    flagged: float  # share of the gold checks the colluders met that they saw more than k times
    precision: float  # share of gold among all documents they saw more than k times


def gain(pools: list[Pool], judgments_per_item: int, seed: int) -> Gain | None:
    """Return the colluders' gain; the trained attacker learns on the first half of the campaigns."""
    half = len(pools) // 2
    learned, attacked, everything = joined(pools[:half]), joined(pools[half:]), joined(pools)
    if not (learned.is_gold.any() and attacked.is_gold.any()):
        return None
    model = HistGradientBoostingClassifier(
        max_iter=60, max_leaf_nodes=8, min_samples_leaf=40, random_state=seed
    ).fit(learned.features, learned.is_gold)
    scores = model.predict_proba(attacked.features)[:, 1]
    often = everything.times_seen > judgments_per_item
    return Gain(
        auc_count=float(roc_auc_score(everything.is_gold, everything.times_seen)),
        auc_trained=float(roc_auc_score(attacked.is_gold, scores)),
        flagged=float(often[everything.is_gold].mean()),
        precision=float(everything.is_gold[often].mean()) if often.any() else float("nan"),
    )


def collude(setting: Setting, n_campaigns: int, sizes: tuple[int, ...], seed: int) -> dict[int, Gain | None]:
    """Return by number of colluders what they gain, over so many simulated campaigns."""
    campaigns = [Campaign(setting, seed + number).run() for number in range(n_campaigns)]
    rng = random.Random(seed)
    people = range(setting.n_assessors)
    return {
        size: gain(
            [pool(campaign, set(rng.sample(people, size))) for campaign in campaigns],
            setting.judgments_per_item,
            seed,
        )
        for size in sizes
        if size <= setting.n_assessors
    }
