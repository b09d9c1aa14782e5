"""Claims beside the job that puts open slots in another order: nothing given twice, nothing lost, nobody stuck."""

import threading
import time
import uuid

import pytest
from django.db import OperationalError, connection, transaction
from django.db.models import F
from queue_campaign import claimed, expire, make_assessor, make_campaign

from judging.models import Campaign, Judgment, Lease, Slot
from judging.scheduler import N_POSITIONS
from judging.services.assign import claim, submit, submit_and_claim
from judging.services.campaigns import set_status
from judging.services.leases import release_all
from judging.services.places import exchange_places

pytestmark = pytest.mark.django_db(transaction=True)

# What a careless writer would do: read the slots, and write them back as they were, with another place.
CARELESS = """
UPDATE judging_slot s SET position = %(position)s, state = old.state, assessor_id = NULL, token = NULL,
       leased_at = NULL, lease_until = NULL
  FROM (SELECT %(id)s::bigint AS id, 'open' AS state) old WHERE s.id = old.id AND s.state <> 'done'
"""


def informative(items, topics=1):
    made = make_campaign(items=items, topics=topics)
    Campaign.objects.filter(pk=made.pk).update(judging_order="informative")
    spread_out(made)
    return made


def spread_out(campaign):
    """Let positions be far apart, as the layout makes them: else every claim starts behind the last one."""
    slots = Slot.objects.filter(campaign=campaign)
    slots.update(position=F("position") * (N_POSITIONS // slots.count()))


def open_slots(campaign):
    rows = Slot.objects.filter(campaign=campaign, state="open")
    return list(rows.order_by("position", "pk").values_list("pk", flat=True))


def careless_exchange(slots):
    for position, pk in enumerate(slots):
        with connection.cursor() as cursor:
            cursor.execute(CARELESS, {"id": pk, "position": position})


def run_beside(campaign, people, exchange):
    """Let the people judge until nothing is left, while the order is turned round again and again; return faults."""
    faults, is_over = [], threading.Event()

    def judge(person):
        try:
            held = claim(assessor=person).item
            while held is not None:
                sent = {"token": held.token, "client_token": uuid.uuid4(), "grade": 1}
                _, answer = submit_and_claim(user_id=person.user_id, campaign_id=campaign.pk, n=2, **sent)
                held = answer.item
        except Exception as fault:
            faults.append(fault)
        finally:
            connection.close()

    def turn_round():
        try:
            while not is_over.is_set():
                slots = open_slots(campaign)
                time.sleep(0.005)  # it thinks about what it read
                exchange(slots[::-1])
        except Exception as fault:
            faults.append(fault)
        finally:
            connection.close()

    judges = [threading.Thread(target=judge, args=[person]) for person in people]
    writers = [threading.Thread(target=turn_round) for _ in range(2)]
    for thread in [*writers, *judges]:
        thread.start()
    for thread in judges:
        thread.join(120)
    is_over.set()
    for thread in writers:
        thread.join(30)
    assert not any(thread.is_alive() for thread in [*writers, *judges])
    return faults


def given_twice(campaign):
    """Return how many judgments there are beyond one an item."""
    rows = Judgment.objects.filter(item__campaign=campaign)
    return rows.count() - rows.values("item").distinct().count()


def test_two_assessors_and_two_orders_at_once_lose_nothing_and_give_nothing_twice():
    campaign = informative(items=120)
    people = [make_assessor(campaign, name) for name in ("ann", "ben")]
    places = sorted(Slot.objects.values_list("position", flat=True))
    assert run_beside(campaign, people, exchange_places) == []
    assert given_twice(campaign) == 0
    assert (
        Slot.objects.filter(state="done").count()
        == Judgment.objects.filter(slot__isnull=False).count()
        == 120
    )
    assert Lease.objects.count() == 120  # nothing was taken from anybody
    assert sorted(Slot.objects.values_list("position", flat=True)) == places
    assert all(Judgment.objects.filter(assessor=person).exists() for person in people)


def test_a_writer_that_locks_nothing_gives_documents_twice():
    """The control: the same load, the same check."""
    campaign = informative(items=120)
    people = [make_assessor(campaign, name) for name in ("ann", "ben")]
    run_beside(campaign, people, careless_exchange)
    assert given_twice(campaign) or Lease.objects.count() > 120


def test_the_first_open_slot_is_claimed_whatever_its_number():
    campaign = informative(items=30)
    ann = make_assessor(campaign)
    slots = open_slots(campaign)
    exchange_places([slots[17], *slots[:17], *slots[18:]])
    assert claimed(ann).pk == slots[17]


def test_a_campaign_of_random_order_starts_anywhere():
    """The control: of 60 slots the first is met by chance only."""
    campaign = make_campaign(items=60)
    spread_out(campaign)
    firsts = {claimed(make_assessor(campaign, f"a{n}")).position for n in range(8)}
    assert firsts != {n * (N_POSITIONS // 60) for n in range(8)}


def test_whoever_claims_while_the_order_is_written_waits_for_nobody():
    campaign = informative(items=4)
    ann = make_assessor(campaign)
    slots = open_slots(campaign)
    got = []

    def work():
        with connection.cursor() as cursor:
            cursor.execute("SET lock_timeout = '2s'")
        try:
            got.append(claim(assessor=ann).item.slot_id)
        except OperationalError as fault:
            got.append(fault)
        finally:
            connection.close()

    with transaction.atomic():
        assert exchange_places([slots[1], slots[0]]) == 2
        thread = threading.Thread(target=work)
        thread.start()
        thread.join(20)
        assert got == [slots[2]]
    assert claim(assessor=make_assessor(campaign, "ben")).item.slot_id == slots[1]


def test_the_order_waits_for_nobody_either():
    campaign = informative(items=3)
    slots = open_slots(campaign)
    is_held, may_end = threading.Event(), threading.Event()

    def hold():
        with transaction.atomic():
            Slot.objects.select_for_update().get(pk=slots[0])
            is_held.set()
            may_end.wait(20)
        connection.close()

    thread = threading.Thread(target=hold)
    thread.start()
    assert is_held.wait(20)
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL lock_timeout = '1s'")
        assert exchange_places(slots[::-1]) == 2
    may_end.set()
    thread.join(20)
    assert [Slot.objects.get(pk=pk).position for pk in slots] == [0, 2 * (N_POSITIONS // 3), N_POSITIONS // 3]


def test_leases_late_work_and_pauses_are_as_before():
    campaign = informative(items=6)
    ann, ben = make_assessor(campaign, "ann"), make_assessor(campaign, "ben")
    slot = claimed(ann)
    exchange_places(open_slots(campaign)[::-1])
    slot.refresh_from_db()
    assert (slot.state, slot.assessor_id, slot.position) == ("leased", ann.pk, 0)
    expire(slot)
    assert claimed(ben).pk == slot.pk  # an expired lease keeps its place: the first
    late = submit(assessor=ann, token=slot.token, client_token=uuid.uuid4(), grade=1)
    assert late.slot_id is None  # kept as surplus
    set_status(assessor=ben, status="suspended", actor=None)
    assert release_all(assessor=ben) == 0
    assert len(open_slots(campaign)) == 6


def test_gold_checks_come_where_the_layout_put_them():
    """Six documents and a check at the third place: whatever the order of the documents, it comes third."""
    campaign = informative(items=6)
    check = Slot.objects.filter(campaign=campaign).order_by("position")[2]
    Slot.objects.filter(pk=check.pk).update(purpose="check")
    ann = make_assessor(campaign)
    came = []
    for _ in range(6):
        slots = open_slots(campaign)
        exchange_places([pk for pk in slots[::-1] if pk != check.pk])
        slot = claimed(ann)
        came.append(slot.purpose)
        submit(assessor=ann, token=slot.token, client_token=uuid.uuid4(), grade=1)
    assert came == ["judge", "judge", "check", "judge", "judge", "judge"]
