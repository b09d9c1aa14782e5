"""Which item next: the decisions of a claim that need no database.

An assessor stays on a topic as long as it has work for them. Within a topic every slot has a random position, and each
claim starts to look at a random one: the order of presentation tells nothing, and no two assessors share it. Only a
campaign that judges by what it tells has an order, that of the positions.

Gold checks must not be told from other items by anything an assessor can see (Checco et al., HCOMP 2018: colluders
recognise gold because it repeats). So every presentation is a check with one probability, whatever came before it,
and a check is shown no more often in all than other items if there is gold enough; if not, decoys repeat like it.
"""

import hashlib
import hmac
import math
import random
from dataclasses import dataclass

N_POSITIONS = 2**31 - 1
# Coins fall unevenly: the slots of checks must outlast a run of them, or checks would become rare towards the end.
SPARE = 1.25
# An assessor sees a check once. A topic offers so many ordinary items at a sitting, and checks must last as long.
SITTING = 50
HIGHEST_RATE = 0.5


@dataclass(frozen=True)
class CheckPlan:
    """What hides the gold checks of one topic.

    ``n_checks`` items with a gold answer and ``n_decoys`` without one have ``exposures`` slots each; every
    presentation in the topic is one of them with probability ``rate``.
    """

    n_checks: int
    n_decoys: int
    exposures: int
    rate: float


NO_CHECKS = CheckPlan(0, 0, 1, 0.0)


def plan_checks(
    *,
    n_items: int,
    judgments_per_item: int,
    gold_rate: float,
    n_gold: int,
    max_exposures: int,
    decoys_per_check: int,
    n_undrawn: int,
) -> CheckPlan:
    """Return how many checks and decoys a topic needs, how often each may be shown, and how often one comes.

    With gold enough, in a short topic, or where the cap is k, a check has as many slots as every other item and lies in
    one queue with them: nothing tells it, to however many assessors who compare notes. With less gold in a long topic
    each check is shown more often, at most `max_exposures` times, among `decoys_per_check` decoys that repeat alike,
    and a coin decides when one comes; what the exposures do not allow lowers the rate.

    Parameters
    ----------
    n_items : ordinary items of the topic
    judgments_per_item : k, slots of an ordinary item
    gold_rate : wanted share of gold checks among all presentations, in [0, 0.5]
    n_gold : gold answers of the topic that may be shown
    max_exposures : cap on the slots of one check
    decoys_per_check : wanted decoys for each check that is shown more often than ordinary items
    n_undrawn : documents of the topic's pool that may serve as decoys

    Examples
    --------
    >>> plan_checks(n_items=40, judgments_per_item=1, gold_rate=0.1, n_gold=100, max_exposures=20,
    ...             decoys_per_check=1, n_undrawn=500)
    CheckPlan(n_checks=4, n_decoys=0, exposures=1, rate=0.09090909090909091)
    >>> plan = plan_checks(n_items=400, judgments_per_item=3, gold_rate=0.1, n_gold=2, max_exposures=20,
    ...             decoys_per_check=1, n_undrawn=500)
    >>> plan.n_checks, plan.n_decoys, plan.exposures, round(plan.rate, 3)
    (2, 2, 20, 0.052)
    """
    if not 0 <= gold_rate <= HIGHEST_RATE:
        raise ValueError(f"gold_rate must be in [0, {HIGHEST_RATE}], not {gold_rate}")
    if min(judgments_per_item, max_exposures) < 1:
        raise ValueError("judgments_per_item and max_exposures must be at least 1")
    if gold_rate == 0 or n_gold == 0 or n_items == 0:
        return NO_CHECKS
    odds = gold_rate / (1 - gold_rate)
    wanted = max(1, round(odds * n_items))
    is_enough = n_gold >= wanted or n_items <= SITTING or max_exposures == judgments_per_item
    if is_enough and max_exposures >= judgments_per_item:
        n_checks = min(n_gold, wanted)
        return CheckPlan(n_checks, 0, judgments_per_item, n_checks / (n_checks + n_items))
    needed = SPARE * odds * n_items * judgments_per_item  # exposures of gold in all, with some to spare
    ordinary = min(judgments_per_item, max_exposures)
    n_checks = min(n_gold, math.ceil(needed / ordinary))
    exposures = max(ordinary, min(max_exposures, math.ceil(needed / n_checks)))
    allowed = n_checks * exposures / (SPARE * n_items * judgments_per_item)
    odds = min(odds, allowed, n_checks / min(n_items, SITTING))
    n_decoys = min(n_undrawn, n_checks * decoys_per_check) if exposures > judgments_per_item else 0
    rate = odds / (1 + odds) * (1 + n_decoys / n_checks)
    return CheckPlan(n_checks, n_decoys, exposures, min(rate, HIGHEST_RATE))


def coins(key: bytes, moment: str, n: int) -> list[float]:
    """Return n numbers in [0, 1): the i-th item taken at this moment is a check if its number is below the rate.

    They follow from the moment alone: asking again, in another tab or after a lost answer, throws no new coin.
    Without the key nobody can foresee them.

    Examples
    --------
    >>> coins(b"key", "7 after lease x in topic 3", 3)[:2] == coins(b"key", "7 after lease x in topic 3", 2)
    True
    >>> 0.45 < sum(coins(b"key", "7", 10_000)) / 10_000 < 0.55
    True
    """
    return [_coin(key, f"item {i} of {moment}") for i in range(n)]


def _coin(key: bytes, message: str) -> float:
    digest = hmac.digest(key, message.encode(), hashlib.sha256)
    return int.from_bytes(digest[:6], "big") / (1 << 48)


def start_position(rng: random.Random, *, is_in_order: bool) -> int:
    """Return from which position on a claim looks: anywhere; in a campaign that judges by what it tells, the first.

    There the most telling documents lie at the first positions of those that are open, and gold checks where the
    layout put them.

    >>> start_position(random.Random(1), is_in_order=True)
    0
    """
    return 0 if is_in_order else rng.randrange(N_POSITIONS)


def positions(n: int, seed: int) -> list[int]:
    """Return n random places in the order of a topic."""
    rng = random.Random(seed)
    return [rng.randrange(N_POSITIONS) for _ in range(n)]
