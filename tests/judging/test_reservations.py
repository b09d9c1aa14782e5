"""Items in question before managers' eyes: two who ask at the same moment never get the same one."""

import threading
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.utils import timezone
from small_campaign import make_campaign

from judging.models import Reservation
from judging.services.adjudication import adjudicate
from judging.services.reservations import RESERVED_FOR, reserve_first
from touchstone.models import User

N_MANAGERS, N_ROUNDS = 6, 8


def managers(n):
    return [User.objects.create(username=f"manager {number}", role="manager") for number in range(n)]


def at_once(people, take):
    """Return what each gets who asks at the same moment, in a thread and a transaction of their own."""
    start, got = threading.Barrier(len(people)), [None] * len(people)

    def run(place, person):
        try:
            start.wait()
            with transaction.atomic():
                got[place] = take(person)
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(people)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return got


@pytest.mark.django_db(transaction=True)
def test_managers_who_ask_at_the_same_moment_get_different_items(tmp_path):
    campaign, people = make_campaign(tmp_path), managers(N_MANAGERS)
    items = list(campaign.items.order_by("id").values_list("pk", flat=True)[:N_MANAGERS])
    for _ in range(N_ROUNDS):
        Reservation.objects.all().delete()
        got = at_once(people, lambda person: reserve_first(campaign=campaign, items=items, manager=person)[0])
        assert sorted(got) == sorted(items)  # nobody twice, nobody without


@pytest.mark.django_db(transaction=True)
def test_the_control_that_looks_before_it_takes_gives_an_item_twice(tmp_path):
    campaign, people = make_campaign(tmp_path), managers(N_MANAGERS)
    items = list(campaign.items.order_by("id").values_list("pk", flat=True)[:N_MANAGERS])
    taken, everybody_has_looked = set(), threading.Barrier(N_MANAGERS)

    def look_and_take(_person):
        found = next(item for item in items if item not in taken)
        everybody_has_looked.wait()
        taken.add(found)
        return found

    got = at_once(people, look_and_take)
    assert len(set(got)) < len(got)


@pytest.mark.django_db
def test_a_reservation_lasts_ten_minutes_and_is_given_back_with_the_next_item_or_a_decision(tmp_path):
    campaign, (ann, ben) = make_campaign(tmp_path), managers(2)
    ann.is_superuser = True
    first, second = campaign.items.order_by("id")[:2]
    items = [first.pk, second.pk]
    got, until = reserve_first(campaign=campaign, items=items, manager=ann)
    assert got == first.pk
    assert abs(until - timezone.now() - RESERVED_FOR) < timedelta(seconds=30)
    assert (
        reserve_first(campaign=campaign, items=items, manager=ann)[0] == first.pk
    )  # a second tab, the same item
    assert reserve_first(campaign=campaign, items=items, manager=ben)[0] == second.pk
    assert reserve_first(campaign=campaign, items=[first.pk], manager=ben) is None  # and second is free again
    assert reserve_first(campaign=campaign, items=[second.pk], manager=ann)[0] == second.pk
    assert reserve_first(campaign=campaign, items=items, manager=ben)[0] == first.pk
    Reservation.objects.filter(item=first).update(until=timezone.now() - timedelta(seconds=1))
    assert reserve_first(campaign=campaign, items=items, manager=ann)[0] == first.pk
    adjudicate(item=first, grade=1, reason="", actor=ann)
    assert not Reservation.objects.exists()
