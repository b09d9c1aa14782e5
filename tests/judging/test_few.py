"""What few rows meet is found as it is by looking at all, whichever filters are asked for together."""

import itertools

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from quick_flush import unguarded
from small_campaign import give, make_assessor, make_campaign, slots

from judging.models import Adjudication, Document, Item, Judgment, StuckItem
from judging.services import few
from judging.services.filtered import filtered_items, filtered_judgments
from touchstone.models import User

pytestmark = pytest.mark.django_db

MANY, SOME, ALL = 0, 2, 5000  # judgments or items that are few
ASKED = [
    {"grade": 0},
    {"grade": 9},
    {"assessor": "bob"},
    {"assessor": "nobody"},
    {"tier": "silver"},
    {"kind": "machine"},
    {"comment": "yes"},
    {"comment_words": "SO"},
    {"comment_words": "never"},
    {"obstacle": "any"},
    {"obstacle": "harmful"},
    {"purpose": "judge"},
    {"purpose": "check"},
    {"purpose": "void"},
    {"seconds_below": 2500},
    {"seconds_above": 2500},
    {"q": "t1 need"},
    {"q": "TITLE rare"},
    {"q": "nowhere"},
    {"q": "!"},
    *({"state": state} for state in ("open", "partly", "complete", "decided", "stuck")),
    {"topic_id": "t1"},
]


@pytest.fixture
def campaign(db, tmp_path):
    made = make_campaign(tmp_path)
    bob, dora = make_assessor(made, "bob"), make_assessor(made, "dora", tier="silver")
    wanted = slots(made)
    for n, (person, slot) in enumerate(
        [(bob, wanted[0]), (dora, wanted[1]), (bob, wanted[2]), (bob, wanted[5]), (dora, wanted[8])]
    ):
        give(person, slot, n % 3)
    with unguarded(["judging_judgment", "judging_document"]):
        for n, pk in enumerate(Judgment.objects.order_by("id").values_list("pk", flat=True)):
            changes = {"active_milliseconds": 1000 * (n + 1), "comment": "so so" if n == 1 else ""}
            Judgment.objects.filter(pk=pk).update(**changes)
        Document.objects.filter(item=wanted[2].item_id).update(title="A rare title")
    alice = User.objects.create(username="alice", role="manager")
    Adjudication.objects.create(item_id=wanted[0].item_id, grade=1, decided_by=alice)
    StuckItem.objects.create(item_id=wanted[5].item_id, campaign=made)
    return made


def keys_of(campaign, asked):
    """Return the judgments, and the items, that filters find."""
    who = (
        campaign.assessors.filter(user__username=asked.get("assessor", ""))
        .values_list("pk", flat=True)
        .first()
    )
    judgments = filtered_judgments(campaign.pk, asked, who).complete()
    of_items = {name: value for name, value in asked.items() if name not in OF_JUDGMENTS_ALONE}
    items = filtered_items(campaign.pk, of_items, who).complete()
    return sorted(judgments.values_list("pk", flat=True)), sorted(items.values_list("pk", flat=True))


OF_JUDGMENTS_ALONE = {"tier", "kind", "seconds_below", "seconds_above"}


def test_few_are_those_that_a_look_at_all_finds(campaign, monkeypatch):
    """Each filter, and each two of them."""
    several = [{**one, **other} for one, other in itertools.combinations(ASKED, 2)]
    found = {}
    for size in (MANY, SOME, ALL):
        monkeypatch.setattr(few, "FEW", size)
        found[size] = [keys_of(campaign, asked) for asked in ASKED + several]
    for asked, looked_at, some, at_once in zip(ASKED + several, *found.values(), strict=True):
        assert looked_at == some == at_once, asked
    assert sum(bool(judgments) for judgments, _ in found[ALL]) > 60


def test_words_are_those_of_one_title(campaign):
    title = Item.objects.get(document__title="A rare title")
    for asked, items in (("rare", 1), ("Title RARE", 1), ("rar", 0), ("rare t1", 0), ("-rare", 1), ("'", 0)):
        found = filtered_items(campaign.pk, {"q": asked}, None).complete()
        assert [item.pk for item in found] == [title.pk] * items, asked


def test_a_list_takes_twelve_statements_whatever_is_asked(campaign):
    client = Client()
    client.force_login(User.objects.get(username="alice"))
    asked = {
        "q": "rare",
        "state": "partly",
        "grade": "2",
        "spread": "1",
        "comment": "yes",
        "since": "2020-01-01",
    }
    asked |= {"assessor": "bob", "purpose": "judge", "topic_id": "t1", "doc_id": "d1", "obstacle": "any"}
    for name in ("items", "judgments"):
        for query in ({}, asked, {"spread": "1", "order": "-newest"}, {"state": "stuck"}, {"q": "rare"}):
            given = (
                query if name == "items" else {key: value for key, value in query.items() if key != "order"}
            )
            with CaptureQueriesContext(connection) as queries:
                answer = client.get(reverse(f"console:{name}", args=[campaign.pk]), given)
            assert answer.status_code == 200
            assert len(queries) <= 12, (name, query, [str(one["sql"])[:150] for one in queries])
