"""The documents and topics of a collection as pages: found by id and words, with versions, ranks, campaigns."""

import io

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from small_campaign import doc_id, give, make_assessor, make_campaign, returned, slots

from judging.models import CollectionMember, Document, Topic
from judging.rankings import first_documents, ranks_of_document, write_rankings
from judging.runs import read_run
from judging.services import browsing
from judging.services.corrections import correct_document, correct_topic
from touchstone.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def campaign(db, tmp_path):
    return make_campaign(tmp_path)


def client_of(name, role):
    client = Client()
    client.force_login(User.objects.create(username=name, role=role))
    return client


def rows_of(client, name, collection, **asked):
    answer = client.get(reverse(f"console:{name}", args=[collection.pk]), asked)
    assert answer.status_code == 200
    return list(answer.context["page"].rows)


def test_documents_and_topics_are_found_by_id_and_by_words(campaign):
    collection = campaign.collection
    rita = client_of("rita", "researcher")
    Document.objects.create(collection=collection, doc_id="lift", title="The wing's lift at low speed")
    Document.objects.create(collection=collection, doc_id="drag", title="Drag at high speed")
    Topic.objects.create(collection=collection, topic_id="heat", title="Heat transfer in a boundary layer")

    def documents(**asked):
        return [row.doc_id for row in rows_of(rita, "documents", collection, **asked)]

    assert documents(q="speed") == ["drag", "lift"]
    assert documents(q="SPEED low") == ["lift"]
    assert documents(q='"high speed"') == ["drag"]
    assert documents(q="lift") == ["lift"]
    assert documents(q="t0d03") == ["t0d03"]
    assert documents(q="spee") == []
    assert documents()[:2] == ["drag", "lift"]
    topics = rows_of(rita, "collection-topics", collection, q="boundary layer")
    assert [row.topic_id for row in topics] == ["heat"]
    for name, found in (("documents", "drag"), ("topics", "heat")):
        answer = rita.get(reverse(f"console:api-{name}", args=[collection.pk]), {"q": "speed -low heat"})
        assert answer.status_code == 200
        answer = rita.get(reverse(f"console:api-{name}", args=[collection.pk]), {"q": found})
        assert len(answer.json()["results"]) == 1


@pytest.mark.parametrize("asked", ["'", '"', "a & | !", "<b>", "%", "\\", ":*", "a" * 200, "\U0001f600"])
def test_whatever_is_looked_for_does_no_harm(campaign, asked):
    rita = client_of("rita", "researcher")
    for name in ("documents", "collection-topics"):
        answer = rita.get(reverse(f"console:{name}", args=[campaign.collection_id]), {"q": asked})
        assert answer.status_code == 200
    refused = rita.get(reverse("console:documents", args=[campaign.collection_id]), {"q": "a" * 201})
    assert refused.status_code == 400
    assert "At most 200 characters" in refused.content.decode()


def test_another_collection_is_not_searched_and_a_hidden_one_not_there(campaign, tmp_path):
    (tmp_path / "other").mkdir()
    other = make_campaign(tmp_path / "other").collection
    Document.objects.create(collection=other, doc_id="secret", title="A secret speed")
    rita = client_of("rita", "researcher")
    assert rows_of(rita, "documents", campaign.collection, q="secret") == []
    foreign = other.documents.get(doc_id="secret")
    address = reverse("console:document", args=[campaign.collection_id, foreign.pk])
    assert rita.get(address).status_code == 404

    other.is_restricted = True
    other.save()
    for name, arguments in (
        ("documents", []),
        ("collection-topics", []),
        ("document", [foreign.pk]),
        ("document-frame", [foreign.pk]),
        ("topic", [other.topics.first().pk]),
    ):
        address = reverse(f"console:{name}", args=[other.pk, *arguments])
        assert rita.get(address).status_code == 404
    CollectionMember.objects.create(collection=other, user=User.objects.get(username="rita"))
    assert rita.get(reverse("console:documents", args=[other.pk])).status_code == 200


def test_the_ranks_are_those_of_the_run_file(campaign):
    for place in range(3):
        run = campaign.collection.runs.get(run_id=f"run{place}")
        with run.rankings.open() as stream:
            payload = stream.read()
        expected = returned(place)
        for (topic, document), rank in expected.items():
            assert ranks_of_document(payload, document) == {topic: rank}
        assert ranks_of_document(payload, "none") == {}
        assert first_documents(payload, "t1", 3) == [doc_id(1, 2 * place + n) for n in range(3)]


def test_the_ranks_of_one_document_in_several_topics_with_equal_scores():
    """By hand: trec_eval's order is by falling score, and of equal scores the later document id first."""
    lines = b"b Q0 x 1 5 r\nb Q0 y 2 7 r\na Q0 x 1 1 r\na Q0 z 2 1 r\na Q0 w 3 9 r\n"
    stream = io.BytesIO()
    write_rankings(read_run(io.BytesIO(lines), "r"), stream)
    assert ranks_of_document(stream.getvalue(), "x") == {"a": 3, "b": 2}
    assert ranks_of_document(stream.getvalue(), "z") == {"a": 2}


def test_a_document_shows_its_ranks_its_versions_and_its_items(campaign):
    alice = client_of("alice", "manager")
    document = campaign.collection.documents.get(doc_id="t1d04")
    bob = make_assessor(campaign, "bob")
    slot = next(one for one in slots(campaign) if one.item.document_id == document.pk)
    give(bob, slot, 2)
    user = User.objects.get(username="alice")
    correct_document(document=document, user=user, why="a column was missing", text="Corrected words")
    address = reverse("console:document", args=[campaign.collection_id, document.pk])

    page = alice.get(address)
    ranks = {one["run"].run_id: one["ranks"][0]["rank"] for one in page.context["runs"]}
    assert ranks == {"run0": 5, "run1": 3, "run2": 1}
    assert [one["grades"] for one in page.context["places"]] == [[2]]
    words = page.content.decode()
    assert "a column was missing" in words
    assert reverse("console:item", args=[campaign.pk, slot.item_id]) in words
    frame = reverse("console:document-frame", args=[campaign.collection_id, document.pk])
    assert "Corrected words" in alice.get(frame).content.decode()
    assert "Text of t1d04" in alice.get(frame, {"version": "1"}).content.decode()
    assert "Corrected words" in alice.get(frame, {"version": "2"}).content.decode()
    assert alice.get(address, {"version": "1"}).status_code == 200
    assert alice.get(address, {"version": "7"}).status_code == 404
    answer = alice.get(frame)
    assert answer.headers["Content-Security-Policy"].startswith("sandbox;")


def test_a_researcher_sees_neither_grades_nor_managers(campaign):
    rita = client_of("rita", "researcher")
    document = campaign.collection.documents.get(doc_id="t1d04")
    page = rita.get(reverse("console:document", args=[campaign.collection_id, document.pk]))
    words = page.content.decode()
    assert page.status_code == 200
    assert "/manage/" not in words
    assert "Grades" not in words


def test_a_topic_shows_its_words_its_versions_and_the_first_documents(campaign):
    alice = client_of("alice", "manager")
    topic = campaign.collection.topics.get(topic_id="t2")
    correct_topic(
        topic=topic, user=User.objects.get(username="alice"), why="too short", narrative="Long words"
    )
    page = alice.get(reverse("console:topic", args=[campaign.collection_id, topic.pk]))

    first = {one["run"].run_id: [found["doc_id"] for found in one["first"]] for one in page.context["runs"]}
    assert first == {f"run{place}": [doc_id(2, 2 * place + n) for n in range(5)] for place in range(3)}
    words = page.content.decode()
    assert "too short" in words
    assert "Long words" in words
    assert f"{reverse('console:items', args=[campaign.pk])}?topic_id=t2" in words


def test_more_runs_than_a_page_may_read_follow_on_the_next(campaign, monkeypatch):
    alice = client_of("alice", "manager")
    monkeypatch.setattr(browsing, "MOST_LINES", 60)  # of 30 lines a run: two of the three
    document = campaign.collection.documents.get(doc_id="t1d04")
    address = reverse("console:document", args=[campaign.collection_id, document.pk])
    page = alice.get(address)
    assert [one["run"].run_id for one in page.context["runs"]] == ["run0", "run1"]
    assert page.context["more_after"] == "run1"
    rest = alice.get(address, {"after": "run1"})
    assert [one["run"].run_id for one in rest.context["runs"]] == ["run2"]
    assert rest.context["more_after"] is None


def test_each_page_takes_at_most_twelve_statements(campaign):
    rita = client_of("rita", "manager")
    document, topic = campaign.collection.documents.first(), campaign.collection.topics.first()
    for name, arguments in (
        ("documents", []),
        ("collection-topics", []),
        ("document", [document.pk]),
        ("document-frame", [document.pk]),
        ("topic", [topic.pk]),
    ):
        with CaptureQueriesContext(connection) as queries:
            answer = rita.get(
                reverse(f"console:{name}", args=[campaign.collection_id, *arguments]), {"q": "a"}
            )
        assert answer.status_code == 200
        assert len(queries) <= 12, (name, [query["sql"][:120] for query in queries])
