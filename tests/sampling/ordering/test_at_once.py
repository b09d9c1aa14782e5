"""Two orders of one campaign at once, beside an assessor: one after the other, and nothing is lost."""

import threading

import pytest
from django.db import connection, transaction
from ordered_campaign import judge_next, make_ordered
from small_campaign import N_FRAME, TOPICS, make_assessor

from judging.models import Judgment, Lease, Slot
from sampling.models import JudgingLook
from sampling.services.ordering import order_judging

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def campaign(tmp_path):
    return make_ordered(tmp_path)


def in_thread(work, faults):
    def run():
        try:
            work()
        except Exception as fault:
            faults.append(fault)
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def order(campaign):
    with transaction.atomic():
        order_judging(campaign=campaign)


def test_a_second_order_of_the_campaign_waits_for_the_first(campaign, tmp_path):
    (tmp_path / "other").mkdir()
    other, faults = make_ordered(tmp_path / "other"), []
    with transaction.atomic():
        order_judging(campaign=campaign)
        second = in_thread(lambda: order(campaign), faults)
        control = in_thread(lambda: order(other), faults)
        control.join(60)
        assert not control.is_alive()  # another campaign's order waits for nobody
        second.join(2)
        assert second.is_alive()
        assert JudgingLook.objects.filter(campaign=campaign).count() == 1
    second.join(60)
    assert not second.is_alive()
    assert faults == []
    assert JudgingLook.objects.filter(campaign=campaign).order_by("-id").first().n_moved == 0


def test_orders_beside_assessors_leave_every_document_to_be_judged_once(campaign):
    people, faults, is_over = (
        [make_assessor(campaign, name) for name in ("ann", "ben")],
        [],
        threading.Event(),
    )
    places = {
        t: sorted(campaign.slots.filter(topic__topic_id=t).values_list("position", flat=True)) for t in TOPICS
    }

    def judge(person):
        while Slot.objects.filter(campaign=campaign, state="open").exists():
            try:
                judge_next(person)
            except AttributeError:  # the other one holds the last document
                return

    def write():
        while not is_over.is_set():
            order(campaign)

    writers = [in_thread(write, faults) for _ in range(2)]
    judges = [in_thread(lambda person=person: judge(person), faults) for person in people]
    for thread in judges:
        thread.join(120)
    is_over.set()
    for thread in writers:
        thread.join(60)
    assert faults == []
    assert Judgment.objects.count() == Judgment.objects.filter(slot__isnull=False).count() == N_FRAME
    assert Lease.objects.count() == N_FRAME
    assert places == {
        t: sorted(campaign.slots.filter(topic__topic_id=t).values_list("position", flat=True)) for t in TOPICS
    }
    order(campaign)
    last = JudgingLook.objects.order_by("-id").first()
    assert (last.n_judged, last.n_pooled) == (N_FRAME, N_FRAME)
