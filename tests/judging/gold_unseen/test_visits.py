"""Gold unseen: whoever holds a gold check gets the very answers that whoever holds an ordinary item gets.

Gold and ordinary transcripts must be one; the comparison itself is shown to fail where something tells.
"""

import re

import pytest
from django.test import Client
from transcripts import visit

from judging.models import (
    Slot,
)
from judging.services import assign

pytestmark = pytest.mark.django_db

NUMBER_OF_A_ROW = re.compile(r"\b7[123]\d{5}\b")

WORDS = re.compile(r"\b(gold|golds|checks?|gold.?check|decoys?|audits?|audited|honeypots?)\b", re.IGNORECASE)


# -- the visit --------------------------------------------------------------------------------------------------


def test_a_whole_visit_answers_the_same_bytes_for_a_gold_check_and_an_ordinary_item(people):
    gold, ordinary = people
    for person in [*gold, *ordinary]:
        visit(person)
    expected = ordinary[0].transcript
    assert len(expected) > 25
    assert {answer.partition("\n")[0] for _, answer in expected} == {"200", "400", "404", "409"}
    for person in [*gold, *ordinary]:
        for (label, answer), (_, wanted) in zip(person.transcript, expected, strict=True):
            assert answer == wanted, f"{label} differs"


@pytest.mark.parametrize("campaign", ["topped up"], indirect=True)
def test_a_whole_visit_answers_the_same_bytes_after_a_later_batch(campaign, people):
    assert campaign.draws.count() == 2
    test_a_whole_visit_answers_the_same_bytes_for_a_gold_check_and_an_ordinary_item(people)


def test_a_visit_runs_the_same_statements_for_a_gold_check_and_an_ordinary_item(people):
    gold, ordinary = people
    for person in [*gold, *ordinary]:
        visit(person)
    # Submitting answers with what comes next. Once in a while that is in another topic, which has to be looked for:
    # the shortest list is the one of an assessor who stays on one page.
    for place, (label, _) in enumerate(ordinary[0].statements):
        shortest = [
            min((person.statements[place][1] for person in group), key=len) for group in (gold, ordinary)
        ]
        assert shortest[0] == shortest[1], label
    assert any("judging_slot" in sql for _, statements in ordinary[0].statements for sql in statements)


def test_no_answer_says_what_an_item_is_for_or_which_row_or_document_it_is(people):
    for person in [*people[0], *people[1]]:
        visit(person)
        for (label, _), raw in zip(person.transcript, person.raw, strict=True):
            assert not WORDS.search(raw), (label, WORDS.search(raw))
            assert not NUMBER_OF_A_ROW.search(raw), (label, NUMBER_OF_A_ROW.search(raw))
            if not label.startswith(("frame", "claim with text")):  # the text of a document here is its id
                assert "<document>" not in raw, label


# -- the comparison itself can fail ------------------------------------------------------------------------------


def telling_purpose(token) -> str:
    return Slot.objects.get(token=token).purpose


@pytest.mark.parametrize("leak", ["order of keys", "one key more", "a number", "other lease time"])
def test_a_body_that_tells_is_caught(people, leak, monkeypatch):
    from judging import serializers

    honest = serializers.item_json

    def telling(held, claimed):
        made = honest(held, claimed)
        if telling_purpose(held.token) == "check":
            return {
                "order of keys": dict(reversed(made.items())),
                "one key more": {**made, "kind": ""},
                "a number": {**made, "topic": {**made["topic"], "narrative": str(held.slot_id)}},
                "other lease time": {**made, "lease_seconds": claimed.lease_seconds - 1},
            }[leak]
        return made

    monkeypatch.setattr(serializers, "item_json", telling)
    gold, ordinary = people
    for person in (gold[0], ordinary[0]):
        person.post("claim again", "claim", n=1)
    assert gold[0].transcript[-1] != ordinary[0].transcript[-1]


@pytest.mark.parametrize("leak", ["a header", "a cookie", "a status"])
def test_a_header_that_tells_is_caught(people, leak, monkeypatch):
    gold, ordinary = people
    honest = Client.request

    def telling(self, **request):
        response = honest(self, **request)
        if self is gold[0].client:
            if leak == "a header":
                response.headers["ETag"] = '"1"'
            elif leak == "a cookie":
                response.set_cookie("seen", "1")
            else:
                response.status_code = 203
        return response

    monkeypatch.setattr(Client, "request", telling)
    for person in (gold[0], ordinary[0]):
        person.post("claim again", "claim", n=1)
    assert gold[0].transcript[-1] != ordinary[0].transcript[-1]


def test_a_statement_more_is_caught(people, monkeypatch):
    gold, ordinary = people
    honest = assign.claim_as

    def telling(**whose):
        claimed = honest(**whose)
        if telling_purpose(claimed.item.token) == "check":
            Slot.objects.exists()
        return claimed

    monkeypatch.setattr(assign, "claim_as", telling)
    for person in (gold[0], ordinary[0]):
        person.post("claim again", "claim", n=1)
    assert gold[0].transcript[-1] == ordinary[0].transcript[-1]
    assert gold[0].statements[-1] != ordinary[0].statements[-1]
