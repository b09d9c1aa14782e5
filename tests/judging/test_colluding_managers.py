"""Colluders while a manager requeues, suspends, audits and tops up: benchmarks/gold.py --part managers in small."""

import sys
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).resolve().parents[2] / "benchmarks"))
from parts.colluders import GOLD, Setting
from parts.managers import ACTS, REQUEUED, Area, Managed, joined_notes, notes, scripts

sys.path.pop()

SMALL = Setting(4, 1, 1000, 0, n_topics=2, n_items=30, gold_rate=0.2)


def came_back(script, *, brings_checks_back=True, setting=SMALL):
    """Return the area of guessing that what nobody met again is a check, over 12 campaigns, for two colluders."""
    pools = []
    for seed in range(12):
        campaign = Managed(setting, seed, brings_checks_back=brings_checks_back)
        pools.append(notes(campaign.play(script, [0, 1]), [0, 1]))
    pool = joined_notes(pools)
    own = pool.was_requeued
    return Area.of(pool.is_gold[own], pool.features[own, 5])


def test_there_is_every_order_of_some_or_all_acts():
    assert len(set(scripts())) == 4 + 12 + 24 + 24
    assert all(set(script) <= set(ACTS) for script in scripts())


@pytest.mark.parametrize(
    "script", [REQUEUED, ("requeue", "suspend"), ("top up", "requeue", "audit"), ("requeue", "top up")]
)
def test_what_came_back_tells_nothing(script):
    area = came_back(script)
    assert area.either_way <= 0.55 + 2 * area.error


def test_checks_that_do_not_come_back_are_told_for_certain():
    assert came_back(REQUEUED, brings_checks_back=False).either_way == 1.0


@pytest.mark.parametrize("comes_back", [True, False])
def test_after_requeueing_each_document_has_as_many_open_places_as_it_lost(comes_back):
    campaign = Managed(SMALL, 3, brings_checks_back=comes_back)
    campaign.work([0, 1, 2, 3])
    own = {item for _, _, item in campaign.filled[0]}
    assert any(campaign.kind[item] == GOLD for item in own)
    campaign.requeue(0)
    opened = [
        item for queues in (campaign.ordinary, campaign.checks) for queue in queues for _, item in queue.slots
    ]
    assert len(opened) == len(set(opened))
    assert {item for item in own if item in opened} == (
        own if comes_back else {item for item in own if campaign.kind[item] != GOLD}
    )


def test_little_gold_is_not_simulated():
    with pytest.raises(ValueError, match="gold must be enough"):
        Managed(Setting(4, 1, 2, 1, n_topics=2, n_items=400), 1)
