"""The counts that pages show in place of counting: the same whether made at once or in steps, and as the log says."""

import uuid
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from django.db import transaction
from django.db.models import Sum
from small_campaign import give, judge_all, lease, make_assessor, make_campaign, slots

from analytics.services.activity import a_day, filled_days, filled_hours
from analytics.services.costs import costs
from analytics.services.recomputation import recompute
from judging.models import Assessor, Campaign, Judgment, MachineCall
from judging.services.assign import revise, submit

NOW = datetime(2026, 11, 21, 12, 30, tzinfo=UTC)


@pytest.fixture
def campaign(db, tmp_path):
    return make_campaign(tmp_path)


def test_counts_in_steps_are_those_of_the_log(campaign):
    bob, dora = make_assessor(campaign, "bob"), make_assessor(campaign, "dora")
    for slot in slots(campaign, number=1)[:7]:
        give(bob, slot, 1)
    first = recompute(campaign=campaign).activity
    assert first["series"] == {"bronze": [7, first["series"]["bronze"][1]]}
    judgment = give(dora, slots(campaign, number=2)[0], 2)
    revise(assessor=dora, token=judgment.lease_token, client_token=uuid.uuid4(), grade=1)
    second = recompute(campaign=campaign).activity
    assert second["assessors"][str(bob.pk)][0] == 7
    assert second["assessors"][str(dora.pk)][0] == 1  # a change of mind is no second judgment
    assert second["series"]["bronze"][0] == Judgment.objects.filter(sequence=1).count() == 8
    milliseconds = Judgment.objects.aggregate(n=Sum("active_milliseconds"))["n"]
    assert second["series"]["bronze"][1] == milliseconds
    assert second["until"] >= Judgment.objects.latest("id").pk
    assert sum(day["bronze"][0] for day in second["days"].values()) == 8
    assert sum(hour["bronze"][0] for hour in second["hours"].values()) == 8
    assert second["counted"] == 8
    assert recompute(campaign=campaign).activity["series"] == second["series"]  # nothing is counted twice


def test_agreement_is_the_share_of_others_with_the_same_grade(campaign):
    bob, dora = make_assessor(campaign, "bob"), make_assessor(campaign, "dora")
    judge_all(campaign, [bob, dora], lambda slot, place: place if slot.topic.topic_id == "t0" else 1)
    found = recompute(campaign=campaign).activity["agreement"]
    # 14 documents of t0 got 0 and 1, 28 of the other topics 1 and 1.
    assert found == {
        str(bob.pk): [pytest.approx(28 / 42, abs=1e-6), 42],
        str(dora.pk): [pytest.approx(28 / 42, abs=1e-6), 42],
    }


def test_machines_have_a_series_of_their_own_and_their_failures_are_no_judgments(campaign):
    robot = make_assessor(campaign, "robot")
    Assessor.objects.filter(pk=robot.pk).update(kind="machine")
    first, second = slots(campaign, number=1)[:2]
    give(robot, first, 1)
    token = lease(robot, second)
    submit(assessor=robot, token=token, client_token=uuid.uuid4(), grade=None, obstacle="failed")
    assert recompute(campaign=campaign).activity["series"]["machine"][0] == 1
    robot.refresh_from_db()
    assert (robot.n_judged, robot.n_failed) == (2, 1)


def test_requests_and_their_cost_are_counted_as_they_are_stored(campaign):
    robot, other = make_assessor(campaign, "robot"), make_assessor(campaign, "other")
    call = {"assessor": robot, "lease_token": uuid.uuid4(), "model": "m", "status": "answered"}
    for cost in ("0.25", "0.5"):
        MachineCall.objects.create(**call, cost=cost)
    robot.refresh_from_db()
    assert (robot.n_requests, robot.requests_cost) == (2, Decimal("0.75"))
    with transaction.atomic():
        MachineCall.objects.create(**call, cost="1")
        transaction.set_rollback(True)  # what is not stored is not counted
    robot.refresh_from_db()
    other.refresh_from_db()
    assert (robot.n_requests, other.n_requests) == (2, 0)


def test_days_and_hours_are_filled_with_zeros_from_the_first_that_has_any():
    counted = {
        "days": {
            "2026-10-01": {"gold": [9, 9]},
            "2026-11-19": {"bronze": [4, 4]},
            "2026-11-21": {"gold": [2, 2]},
        },
        "hours": {"2026-11-21T10": {"bronze": [3, 3]}},
    }
    days, series = filled_days(counted, NOW, 7)
    assert days == ["2026-11-19", "2026-11-20", "2026-11-21"]
    assert series == {"gold": [0, 0, 2], "bronze": [4, 0, 0]}
    hours, by_hour = filled_hours(counted, NOW, 48)
    assert hours == ["2026-11-21T10", "2026-11-21T11", "2026-11-21T12"]
    assert by_hour == {"bronze": [3, 0, 0]}
    assert filled_days({}, NOW, 7) == ([], {})
    # From midnight of the 19th to half past twelve on the 21st.
    assert a_day(counted, NOW) == pytest.approx(6 / (2 + 12.5 / 24))
    assert a_day({}, NOW) is None


@pytest.mark.parametrize(
    ("each", "gold", "wanted"),
    [
        (
            2.0,
            10.0,
            (100 * 2 + 5 * 10 + 3.0, 253 + 40 * 1.25 * (2 * 100 / 125 + 3.0 / 25 * 25 / 125) + 7 * 10),
        ),
        (None, 10.0, (None, None)),
        (2.0, None, (None, None)),
    ],
)
def test_costs_so_far_and_in_the_end(each, gold, wanted):
    campaign = Campaign(cost_per_judgment=each, cost_per_gold=gold)
    counts = {
        "series": {"bronze": [100, 1], "machine": [25, 1], "gold": [5, 1]},
    }
    found = costs(campaign, counts, counted=100, left=40, gold_left=7, of_machines=3.0)
    assert (found.so_far, found.expected) == (pytest.approx(wanted[0]), pytest.approx(wanted[1]))
    assert found.overhead == pytest.approx(1.25)  # 125 stored for 100 that count
    assert found.of_machines == 3.0


def test_costs_of_nothing_are_nothing():
    found = costs(Campaign(cost_per_judgment=1.0), {}, counted=0, left=0, gold_left=0)
    assert (found.so_far, found.expected) == (0.0, 0.0)
