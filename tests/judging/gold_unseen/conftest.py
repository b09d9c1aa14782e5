"""A campaign with gold checks, and its people."""

import uuid

import pytest
from django.db import connection
from small_campaign import DEPTH, make_assessor, make_campaign
from transcripts import Person, is_gold

from judging.models import (
    Lease,
    Slot,
)
from judging.services import assign
from sampling.questions import Design
from sampling.services.drawing import draw

# Rows get numbers that nothing else in an answer looks like.
SEQUENCES = {"judging_slot": 7_100_001, "judging_judgment": 7_200_001, "judging_document": 7_300_001}

SAME_LENGTH = {"touchstone_user": 8_100_001, "judging_assessor": 8_200_001, "judging_topic": 8_300_001}

MOST_PEOPLE, N_COMPARED = 40, 3


def slot_of(token) -> Slot:
    return Lease.objects.select_related("slot__item").get(token=token).slot


@pytest.fixture
def campaign(tmp_path, request):
    with connection.cursor() as cursor:
        for table, start in {**SEQUENCES, **SAME_LENGTH}.items():
            cursor.execute(
                "SELECT setval(pg_get_serial_sequence(%s, 'id'), %s)",
                [table, start],
            )
    if not hasattr(request, "param"):
        return make_campaign(tmp_path, budget=24, kind="pool", gold_check_rate=0.4)
    made = make_campaign(tmp_path, budget=12, kind="pool", gold_check_rate=0.4)
    bob = make_assessor(made, "bob99")
    for _ in range(5):
        assign.submit(
            assessor=bob, token=assign.claim(assessor=bob).item.token, client_token=uuid.uuid4(), grade=1
        )
    draw(campaign=made, design=Design("pool", (), measure="DCG@10", depth=DEPTH, budget=24))
    return made


@pytest.fixture
def people(campaign):
    """Return those who got a gold check as their first item, and those who got an ordinary one."""
    gold, ordinary = [], []
    for number in range(10, 10 + MOST_PEOPLE):
        person = Person(make_assessor(campaign, f"bob{number}"))
        person.items = person.post("claim", "claim", n=1).json()["items"]
        (gold if is_gold(slot_of(person.items[0]["token"])) else ordinary).append(person)
        if min(len(gold), len(ordinary)) == N_COMPARED:
            return gold[:N_COMPARED], ordinary[:N_COMPARED]
    raise AssertionError("the coin fell too unevenly: less than once in 10,000 runs")
