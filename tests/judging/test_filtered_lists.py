"""Items and judgments by filters: alike on pages, in the API, in downloads and in the command."""

import csv
import io
import json
import uuid

import polars as pl
import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from quick_flush import unguarded
from small_campaign import give, lease, make_assessor, make_campaign, slots

from analytics.releases.pseudonyms import pseudonym
from analytics.services.exports import pseudonym_key
from judging.judgment_filters import KINDS, OBSTACLES, PURPOSES, TIERS
from judging.models import Adjudication, Assessor, Judgment, Slot
from judging.services import few
from judging.services.assign import revise, submit
from touchstone.api import pagination
from touchstone.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def campaign(db, tmp_path):
    """Bob judged three items (2, 0, and 1 with a comment, changed to 2), Dora the first with a 0; Eva gave one back."""
    made = make_campaign(tmp_path)
    bob, dora = make_assessor(made, "bob"), make_assessor(made, "dora", tier="silver")
    eva = make_assessor(made, "=eva()")
    wanted = slots(made)
    give(bob, wanted[0], 2)
    give(dora, wanted[1], 0)
    give(bob, wanted[2], 0)
    last = lease(bob, wanted[4])
    submit(assessor=bob, token=last, client_token=uuid.uuid4(), grade=1, comment="+1 unsure")
    revise(assessor=bob, token=last, client_token=uuid.uuid4(), grade=2)
    submit(assessor=eva, token=lease(eva, wanted[6]), client_token=uuid.uuid4(), grade=None, obstacle="topic")
    with unguarded(["judging_judgment"]):
        for n, pk in enumerate(Judgment.objects.order_by("id").values_list("pk", flat=True)):
            Judgment.objects.filter(pk=pk).update(active_milliseconds=1000 * (n + 1))
    alice = User.objects.create(username="alice", role="manager")
    Adjudication.objects.create(item_id=wanted[0].item_id, grade=1, decided_by=alice)
    return made


@pytest.fixture
def alice(campaign):
    client = Client()
    client.force_login(User.objects.get(username="alice"))
    return client


def judgments_of_page(client, campaign, **asked):
    answer = client.get(reverse("console:judgments", args=[campaign.pk]), asked)
    assert answer.status_code == 200, answer.context["faults"]
    return [one["row"].pk for one in answer.context["rows"]]


def log_of(client, campaign, **asked):
    answer = client.get(reverse("console:api-judgment-log", args=[campaign.pk]), asked)
    assert answer.status_code == 200, answer.content
    return [row["id"] for row in answer.json()["results"]]


def downloaded(client, campaign, **asked):
    answer = client.get(reverse("console:judgments", args=[campaign.pk]), {**asked, "format": "jsonl"})
    return [json.loads(line) for line in b"".join(answer.streaming_content).decode().splitlines()]


# Places in the order of arrival: bob 2, dora 0, bob 0, bob 1 "+1 unsure", bob changed to 2, eva gave back.
FILTERED = [
    ({}, [0, 1, 2, 3, 4, 5]),
    ({"assessor": "bob"}, [0, 2, 3, 4]),
    ({"assessor": "nobody"}, []),
    ({"grade": "0"}, [1, 2]),
    ({"grade": "2", "assessor": "bob"}, [0, 4]),
    ({"comment": "yes"}, [3]),
    ({"comment_words": "UNSURE +1"}, [3]),
    ({"comment_words": "sure"}, [3]),
    ({"comment_words": "sure %"}, []),
    ({"obstacle": "topic"}, [5]),
    ({"obstacle": "any"}, [5]),
    ({"obstacle": "language"}, []),
    ({"tier": "silver"}, [1]),
    ({"kind": "machine"}, []),
    ({"purpose": "judge"}, [0, 1, 2, 3, 4]),
    ({"purpose": "audit"}, []),
    ({"seconds_below": "2.5"}, [0, 1]),
    ({"seconds_above": "4"}, [4, 5]),
    ({"state": "decided"}, [0, 1]),
    ({"state": "complete"}, [0, 1]),
    ({"state": "partly"}, [2, 3, 4]),
    ({"state": "open"}, [5]),
    ({"since": "2020-01-01"}, [0, 1, 2, 3, 4, 5]),
    ({"before": "2020-01-01"}, []),
    ({"q": "no such words"}, []),
]


def test_a_filter_finds_the_same_judgments_everywhere(campaign, alice):
    keys = list(Judgment.objects.order_by("id").values_list("pk", flat=True))
    for asked, places in FILTERED:
        expected = [keys[place] for place in places]
        assert sorted(judgments_of_page(alice, campaign, **asked)) == expected, asked
        assert sorted(log_of(alice, campaign, **asked)) == expected, asked
        assert [row["id"] for row in downloaded(alice, campaign, **asked)] == expected, asked


def test_the_command_writes_what_a_filter_finds_in_every_format(campaign, tmp_path):
    file, asked = tmp_path / "judgments", ["--filter=assessor=bob", "--filter=seconds_above=2"]
    expected = list(
        Judgment.objects.filter(assessor__user__username="bob")
        .order_by("id")
        .values_list("pk", flat=True)[1:]
    )

    call_command("export", campaign.name, "judgments", "--format=parquet", f"--output={file}", *asked)
    assert pl.read_parquet(file)["id"].to_list() == expected
    call_command("export", campaign.name, "judgments", "--format=jsonl", f"--output={file}", *asked)
    assert [json.loads(line)["id"] for line in file.read_text().splitlines()] == expected
    call_command("export", campaign.name, "judgments", f"--output={file}", *asked)
    assert [int(row["id"]) for row in csv.DictReader(file.read_text().splitlines())] == expected
    with pytest.raises(CommandError, match="needs --output"):
        call_command("export", campaign.name, "judgments", "--format=parquet")


def test_topics_documents_and_titles_find_their_judgments(campaign, alice):
    first = Judgment.objects.select_related("item__topic", "item__document").earliest("id")
    own = list(Judgment.objects.filter(item=first.item).order_by("id").values_list("pk", flat=True))
    about = {"topic_id": first.item.topic.topic_id, "doc_id": first.item.document.doc_id}

    assert (
        sorted(judgments_of_page(alice, campaign, **about)) == own == sorted(log_of(alice, campaign, **about))
    )
    titled = judgments_of_page(alice, campaign, q=first.item.topic.title)
    assert set(own) <= set(titled)
    assert judgments_of_page(alice, campaign, topic_id="no-such-topic") == []


def test_judgments_are_ordered_by_seconds_where_an_index_narrows_them(campaign, alice):
    keys = list(
        Judgment.objects.filter(assessor__user__username="bob").order_by("id").values_list("pk", flat=True)
    )

    assert judgments_of_page(alice, campaign, assessor="bob", order="seconds") == keys
    assert judgments_of_page(alice, campaign, assessor="bob", order="-seconds") == keys[::-1]
    refused = alice.get(reverse("console:judgments", args=[campaign.pk]), {"order": "seconds"})
    assert refused.status_code == 400
    assert "name an assessor" in refused.content.decode()


def test_what_is_no_filter_is_refused_with_its_name(campaign, alice):
    wrong = {"grade": ["12", "x"], "since": ["soon"], "seconds_below": ["nan"], "state": ["odd"]}
    for name, value in ((name, value) for name, values in wrong.items() for value in values):
        page = alice.get(reverse("console:judgments", args=[campaign.pk]), {name: value})
        answer = alice.get(reverse("console:api-judgment-log", args=[campaign.pk]), {name: value})
        assert page.status_code == answer.status_code == 400
        assert list(answer.json()["errors"]) == [name]


def test_the_command_names_a_filter_that_is_none(campaign):
    for wrong in ("grade=12", "colour=red"):
        with pytest.raises(CommandError, match=wrong.partition("=")[0]):
            call_command("export", campaign.name, "judgments", f"--filter={wrong}", stdout=io.StringIO())


@pytest.mark.parametrize("option", ["--format=jsonl", "--filter=grade=1"])
def test_what_is_for_judgments_alone_is_refused_elsewhere(campaign, option):
    with pytest.raises(CommandError, match="for judgments alone"):
        call_command("export", campaign.name, "qrels", option, stdout=io.StringIO())


def test_the_choices_of_filters_are_those_of_the_database():
    assert list(PURPOSES) == Slot.Purpose.values
    assert list(OBSTACLES) == ["any", *Judgment.Obstacle.values]
    assert list(TIERS) == Assessor.Tier.values
    assert list(KINDS) == Assessor.Kind.values


def test_a_file_tells_what_came_before_and_after_each_judgment(campaign, alice):
    rows = downloaded(alice, campaign)

    assert [row["is_latest"] for row in rows] == [True, True, True, False, True, True]
    assert [row["decision"] for row in rows] == [1, 1, None, None, None, None]
    assert all(row["batch"] == 1 and 0 < row["inclusion_probability"] <= 1 for row in rows)
    assert all(row["leased_at"] <= row["created_at"] for row in rows)


def test_a_spreadsheet_runs_nothing_of_a_file(campaign, alice):
    answer = alice.get(reverse("console:judgments", args=[campaign.pk]), {"format": "csv"})
    rows = list(csv.DictReader(io.StringIO(b"".join(answer.streaming_content).decode())))

    assert rows[3]["comment"] == "'+1 unsure"
    assert rows[5]["assessor"] == "'=eva()"


def test_items_are_found_by_what_was_said_of_them(campaign, alice):
    def found(**asked):
        page = alice.get(reverse("console:items", args=[campaign.pk]), {**asked, "page_size": 50})
        answer = alice.get(reverse("console:api-items", args=[campaign.pk]), asked)
        of_page = {str(one["item"].pk) for one in page.context["rows"]}
        assert of_page == {row["id"] for row in answer.json()["results"]}
        return of_page

    items = [str(row.item_id) for row in Judgment.objects.order_by("id")]
    assert found(assessor="bob") == {items[0], items[2], items[3]}
    assert found(grade="0") == {items[0], items[2]}
    assert found(grade="0", assessor="bob") == {items[2]}
    assert found(state="decided") == {items[0]}
    assert found(obstacle="topic") == {items[5]}
    assert len(found()) == campaign.items.count()


def test_a_page_looks_at_a_bounded_number_of_rows_and_goes_on_from_there(campaign, alice, monkeypatch):
    """The positive control: without the bound, or where few are found at once, one page has both."""
    wanted = list(Judgment.objects.filter(grade=0).order_by("id").values_list("pk", flat=True))
    monkeypatch.setattr(pagination, "LOOKED_AT", 2)
    assert log_of(alice, campaign, grade="0") == wanted
    monkeypatch.setattr(few, "FEW", 0)
    monkeypatch.setattr(pagination, "LOOKED_AT", 20)
    assert log_of(alice, campaign, grade="0") == wanted

    monkeypatch.setattr(pagination, "LOOKED_AT", 2)
    address = reverse("console:api-judgment-log", args=[campaign.pk]) + "?grade=0"
    found, pages = [], 0
    while address:
        answer = alice.get(address).json()
        found += [row["id"] for row in answer["results"]]
        address, pages = answer["next"], pages + 1
    assert found == wanted
    assert pages == 4  # six judgments, two at a time, and one page that finds the end


def test_one_item_shows_its_history_in_order(campaign, alice):
    item = Judgment.objects.get(comment="+1 unsure").item
    page = alice.get(reverse("console:item", args=[campaign.pk, item.pk]))

    steps = page.context["steps"]
    assert [step["what"].split(":")[0].split(" to ")[0].split(" ")[0] for step in steps] == [
        "Drawn",
        "Given",
        "Graded",
        "Changed",
    ]
    assert [step["at"] for step in steps] == sorted(step["at"] for step in steps)
    assert "+1 unsure" in page.content.decode()
    decided = alice.post(
        reverse("console:decide", args=[campaign.pk]), {"item": str(item.pk), "grade": 2, "back": "item"}
    )
    assert decided.url.partition("?")[0] == reverse("console:item", args=[campaign.pk, item.pk])
    assert alice.get(decided.url).context["steps"][-1]["what"].startswith("Decided")


def test_others_are_asked_where_all_judgments_are_in(campaign, alice):
    item = Judgment.objects.earliest("id").item
    address = reverse("console:item-ask", args=[campaign.pk, item.pk])
    before = item.slots.count()

    assert alice.post(address).status_code == 302
    assert item.slots.count() == before + 1
    alice.post(address)
    assert item.slots.count() == before + 1


def test_researchers_ask_by_pseudonym_and_never_by_purpose_or_comment(campaign):
    rita = Client()
    rita.force_login(User.objects.create(username="rita", role="researcher"))
    bob = campaign.assessors.get(user__username="bob")
    address = reverse("console:api-judgment-log", args=[campaign.pk])

    name = pseudonym(pseudonym_key(campaign.pk), bob.pk)
    assert {row["assessor"] for row in rita.get(address, {"assessor": name}).json()["results"]} == {name}
    for asked in ({"purpose": "check"}, {"comment": "yes"}, {"comment_words": "sure"}):
        assert rita.get(address, asked).status_code == 400
    assert rita.get(reverse("console:judgments", args=[campaign.pk])).status_code == 404
