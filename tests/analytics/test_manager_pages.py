"""The pages of a campaign: overview, assessors, a person, events, comments, the adjudication queue."""

import csv
import io
import re
import uuid
from copy import deepcopy

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from quick_flush import unguarded
from small_campaign import give, judge_all, lease, make_assessor, make_campaign, slots

from analytics.models import Flag
from analytics.services.recomputation import recompute
from judging.models import Adjudication, Assessor, Campaign, Document, Message, Topic
from judging.services.assign import submit
from touchstone.models import Event, User, record

pytestmark = pytest.mark.django_db
MOST_STATEMENTS = 12
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(autouse=True)
def plain_static_files(settings):
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}
    settings.MIDDLEWARE = [part for part in settings.MIDDLEWARE if "whitenoise" not in part]


@pytest.fixture(scope="module")
def made_once(module_world, tmp_path_factory) -> Campaign:
    return make_campaign(tmp_path_factory.mktemp("world"))


@pytest.fixture
def campaign(made_once, db) -> Campaign:
    return deepcopy(made_once)


@pytest.fixture(scope="module")
def judged_once(module_world, tmp_path_factory) -> Campaign:
    """Two assessors have judged everything; on the first document they differ by all they can."""
    campaign = make_campaign(tmp_path_factory.mktemp("judged"))
    people = [make_assessor(campaign, name) for name in ("bob", "dora")]
    first = slots(campaign, number=1)[0]
    give(people[0], first, 3)
    judge_all(campaign, people, lambda slot, place: 0)
    recompute(campaign=campaign)
    return campaign


@pytest.fixture
def judged(judged_once, db) -> Campaign:
    return deepcopy(judged_once)


@pytest.fixture
def alice() -> Client:
    client = Client()
    client.force_login(User.objects.create(username="alice", role="manager"))
    return client


def page(client: Client, view: str, /, *arguments, status=200, **query) -> str:
    answer = client.get(reverse(view, args=arguments), query)
    assert answer.status_code == status, answer.content.decode()[:500]
    return " ".join(answer.content.decode().split())


def names_in_order(text: str) -> list[str]:
    return re.findall(r'class="person"><a href="[^"]*">([^<]+)</a>', text)


# -- cost -----------------------------------------------------------------------------------------------------


def test_no_page_of_a_campaign_takes_more_than_twelve_statements_however_much_is_judged(alice, judged):
    bob = judged.assessors.get(user__username="bob")
    Flag.objects.create(assessor=bob, computation=judged.computations.last(), evidence="weak")
    addresses = [
        reverse("console:manage"),
        reverse("console:setup-new"),
        *(reverse(f"console:{name}", args=[judged.pk]) for name in (
            "campaign", "assessors", "adjudication", "events", "said", "setup", "audits", "errors", "design",
        )),
        reverse("console:assessor", args=[judged.pk, bob.pk]),
        *(reverse("console:setup-step", args=[judged.pk, step]) for step in (
            "collection", "documents", "runs", "scale", "people", "gold", "open",
        )),
        *(reverse(f"console:{name}", args=[judged.pk]) for name in (
            "manage-leases", "manage-topics", "manage-entry", "manage-campaign-edit", "manage-campaign-delete",
        )),
        reverse("console:manage-deleted"),
        reverse("console:manage-collection", args=[judged.collection_id]),
        reverse("console:manage-members", args=[judged.collection_id]),
    ]  # fmt: skip
    for address in addresses:
        assert alice.get(address).status_code == 200, address
        with CaptureQueriesContext(connection) as captured:
            alice.get(address)
        sent = [query["sql"] or "" for query in captured]
        assert len(sent) <= MOST_STATEMENTS, (address, len(sent))
        counting = [sql for sql in sent if re.search(r'COUNT\([^)]*\)[^)]*FROM "judging_judgment"', sql)]
        assert not [sql for sql in counting if "LIMIT" not in sql], address


# -- the overview ---------------------------------------------------------------------------------------------


def test_the_overview_counts_what_is_left_and_not_what_is_done(alice, campaign):
    bob = make_assessor(campaign, "bob")
    assert "0 of 84 judgments" in page(alice, "console:campaign", campaign.pk)
    for slot in slots(campaign, number=1)[:21]:
        give(bob, slot, 1)
    text = page(alice, "console:campaign", campaign.pk)
    assert "21 of 84 judgments, 63 still needed" in text
    assert "25 %" in text
    assert "Judgments have arrived; they are counted with the first numbers." in text
    recompute(campaign=campaign)
    text = page(alice, "console:campaign", campaign.pk)
    assert '<span class="tag bronze">bronze</span></th><td class="number">21</td>' in text


def test_beyond_the_limit_the_newest_numbers_say_how_much_is_done(alice, judged, monkeypatch):
    monkeypatch.setattr("judging.services.progress.MOST_COUNTED", 0)
    text = page(alice, "console:campaign", judged.pk)
    assert "84 of 84 judgments, as of the newest numbers" in text


def test_the_overview_says_what_needs_the_manager_and_when_nothing_does(alice, judged):
    text = page(alice, "console:campaign", judged.pk)
    assert "There is no gold assessor." in text
    make_assessor(judged, "greta", "gold")
    assert "No audit is planned." in page(alice, "console:campaign", judged.pk)
    alice.post(
        reverse("console:setup-step", args=[judged.pk, "gold"]),
        {
            "every_seconds": 1,
            "every_unit": 86400,
            "items_each_time": 5,
            "items_in_total": 20,
            "is_active": "on",
        },
    )
    text = page(alice, "console:campaign", judged.pk)
    assert "One document is in question." in text
    assert "Nothing needs you now." not in text
    item = judged.computations.last().disputed_items.get().item_id
    alice.post(reverse("console:decide", args=[judged.pk]), {"item": item, "verdict": "stands"})
    assert "Nothing needs you now." in page(alice, "console:campaign", judged.pk)
    bob = judged.assessors.get(user__username="bob")
    Flag.objects.create(assessor=bob, computation=judged.computations.last(), evidence="weak")
    text = page(alice, "console:campaign", judged.pk)
    assert "One assessor is flagged." in text
    assert reverse("console:assessors", args=[judged.pk]) + "?only=flagged" in text


def test_costs_are_shown_once_the_manager_says_what_a_judgment_costs(alice, judged):
    assert "enter what judgments cost" in page(alice, "console:campaign", judged.pk)
    Campaign.objects.filter(pk=judged.pk).update(cost_per_judgment=0.5)
    text = page(alice, "console:campaign", judged.pk)
    assert '<span class="value">42</span>' in text  # 84 judgments
    assert "enter what judgments cost" not in text


# -- assessors ------------------------------------------------------------------------------------------------


def test_assessors_are_sorted_filtered_and_paged(alice, campaign, monkeypatch):
    monkeypatch.setattr("console.manager.assessors.PAGE", 2)
    for number, name in enumerate(["carl", "anna", "bert"]):
        person = make_assessor(campaign, name, "gold" if name == "bert" else "bronze")
        Assessor.objects.filter(pk=person.pk).update(n_judged=10 * (number % 2), status="active")
    address = ("console:assessors", campaign.pk)
    assert names_in_order(page(alice, *address, order="name")) == ["anna", "bert"]
    assert names_in_order(page(alice, *address, order="name", page=2)) == ["carl"]
    assert names_in_order(page(alice, *address, order="-name")) == ["carl", "bert"]
    assert names_in_order(page(alice, *address, order="-judged"))[0] == "anna"
    assert names_in_order(page(alice, *address, tier="gold")) == ["bert"]
    assert names_in_order(page(alice, *address, name="AR")) == ["carl"]
    assert "No matching assessor" in page(alice, *address, only="flagged")
    assert "The filter is not valid:" in page(alice, *address, order="password", status=400)
    assert 'aria-sort="descending"' in page(alice, *address, order="-name")


def test_who_has_no_such_number_comes_last_whichever_way_round(alice, judged):
    make_assessor(judged, "newcomer")
    for order in ("agreement", "-agreement", "seconds", "-seconds"):
        assert names_in_order(page(alice, "console:assessors", judged.pk, order=order))[-1] == "newcomer", (
            order
        )


def test_the_table_shows_agreement_and_a_flag_with_its_evidence(alice, judged):
    bob = judged.assessors.get(user__username="bob")
    Flag.objects.create(assessor=bob, computation=judged.computations.last(), evidence=HOSTILE)
    text = page(alice, "console:assessors", judged.pk)
    assert '98 % <span class="soft">on 42</span>' in text  # one of 42 differs
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert HOSTILE not in text
    assert names_in_order(text)[0] == "bob"  # what is wrong comes first


def test_a_message_is_sent_shown_to_its_assessor_alone_and_marked_as_read(alice, judged):
    bob = judged.assessors.get(user__username="bob")
    address = reverse("console:message", args=[judged.pk, bob.pk])
    assert alice.post(address, {"text": "  "}).status_code == 400
    assert alice.post(address, {"text": "x" * 2001}).status_code == 400
    assert not Message.objects.exists()
    assert alice.post(address, {"text": f"Please read the guidelines. {HOSTILE}"}).status_code == 302
    sent = Message.objects.get()
    assert (sent.sender.username, sent.assessor) == ("alice", bob)
    assert "not read yet" in page(alice, "console:assessor", judged.pk, bob.pk)
    client, other = Client(), Client()
    client.force_login(bob.user)
    other.force_login(User.objects.get(username="dora"))
    for name, arguments in (("judging:home", []), ("judging:judge", [judged.pk])):
        text = page(client, name, *arguments)
        assert "Please read the guidelines. &lt;script&gt;" in text
        assert "Please read" not in page(other, name, *arguments)
    read = reverse("judging:message-read", args=[sent.pk])
    assert other.post(read).status_code == 404
    assert client.get(read).status_code == 405
    assert Message.objects.get().read_at is None
    answer = client.post(read, {"back": "judge"})
    assert answer.url == reverse("judging:judge", args=[judged.pk])
    assert client.post(read, headers={"accept": "application/json"}).status_code == 204  # twice is once
    assert "Please read" not in page(client, "judging:home")
    assert '<span class="tag ok">read</span>' in page(alice, "console:assessor", judged.pk, bob.pk)


def test_a_message_costs_the_judging_screen_one_statement_and_its_requests_none(judged):
    bob = judged.assessors.get(user__username="bob")
    client = Client()
    client.force_login(bob.user)
    counts = []
    for _ in range(3):
        with CaptureQueriesContext(connection) as captured:
            assert client.get(reverse("judging:judge", args=[judged.pk])).status_code == 200
            counts.append((len(captured), sum("judging_message" in (q["sql"] or "") for q in captured)))
        Message.objects.create(assessor=bob, sender=bob.user, text="hello")
    assert len(set(counts)) == 1  # however many messages
    assert counts[0][1] == 1
    with CaptureQueriesContext(connection) as captured:
        client.post(reverse("judging:claim", args=[judged.pk]), {}, "application/json")
    assert not any("judging_message" in (query["sql"] or "") for query in captured)


# -- events ---------------------------------------------------------------------------------------------------


def test_events_are_filtered_and_paged_by_a_cursor_without_losing_or_repeating_any(
    alice, campaign, monkeypatch
):
    monkeypatch.setattr("console.manager.events.PAGE", 3)
    eve = User.objects.create(username="eve", role="manager")
    for number in range(7):
        record("tested", campaign, actor=eve, number=number)
    address = reverse("console:events", args=[campaign.pk])
    seen, query = [], "?verb=tested&who=eve"
    while query:
        answer = alice.get(address + query)
        seen.append([shown["row"].detail["number"] for shown in answer.context["events"]])
        query = f"?{answer.context['older']}" if answer.context["older"] else ""
    assert seen == [[6, 5, 4], [3, 2, 1], [0]]
    back = alice.get(f"{address}?{answer.context['newer']}")
    assert [shown["row"].detail["number"] for shown in back.context["events"]] == [3, 2, 1]
    assert "No events" in page(alice, "console:events", campaign.pk, who="nobody")
    assert "No events" in page(alice, "console:events", campaign.pk, until="2001-01-01")
    assert "tested" in page(alice, "console:events", campaign.pk, since="2001-01-01")
    for wrong in (
        {"since": "yesterday"},
        {"before": "x"},
        {"before": "-1"},
        {"after": str(2**70)},
        {"verb": "x" * 51},
    ):
        assert "The filter is not valid" in page(alice, "console:events", campaign.pk, status=400, **wrong)


def test_events_of_another_campaign_are_not_shown(alice, campaign, tmp_path):
    (tmp_path / "other").mkdir()
    record("kept apart", make_campaign(tmp_path / "other"))
    assert "kept apart" not in page(alice, "console:events", campaign.pk)


def test_the_file_of_events_has_all_of_them_and_runs_no_formula(alice, campaign):
    record("=1+1", campaign, words=["a", 'say "hi"'])
    answer = alice.get(reverse("console:events", args=[campaign.pk]), {"format": "csv"})
    rows = list(csv.reader(io.StringIO(b"".join(answer.streaming_content).decode())))
    assert rows[0] == ["when", "who", "what", "of", "detail"]
    assert rows[1][2:] == ["'=1+1", f"campaign:{campaign.pk}", '{"words": ["a", "say \\"hi\\""]}']
    subjects = [f"campaign:{campaign.pk}", f"collection:{campaign.collection_id}"]
    assert len(rows) == 1 + Event.objects.filter(subject__in=subjects).count()


# -- adjudication ---------------------------------------------------------------------------------------------


def test_the_queue_shows_the_document_safely_with_all_grades_and_why(alice, judged):
    item = slots(judged, number=1)[0].item
    with unguarded(["judging_document", "judging_topic"]):
        Document.objects.filter(pk=item.document_id).update(title=HOSTILE, text=HOSTILE)
        Topic.objects.filter(pk=item.topic_id).update(narrative=HOSTILE)
    text = page(alice, "console:adjudication", judged.pk)
    assert HOSTILE not in text
    assert "Your grade goes into the qrels, and nowhere else." in text
    assert "The aggregated label is <strong>0 Not relevant</strong>" in text
    assert "bob</a>" in text
    assert "dora</a>" in text
    assert "3 Highly relevant" in text
    frame = reverse("console:adjudication-document", args=[judged.pk, item.pk])
    assert f'sandbox="" src="{frame}"' in text
    answer = alice.get(frame)
    assert "sandbox;" in answer.headers["Content-Security-Policy"]
    assert "script-src" not in answer.headers["Content-Security-Policy"]  # default-src 'none'
    assert HOSTILE not in answer.content.decode()


def test_one_post_decides_and_the_next_item_follows(alice, judged):
    here = reverse("console:adjudication", args=[judged.pk])
    first = alice.get(here).context["shown"]["place"]
    n = alice.get(here).context["n_left"]
    sent = {"item": first.item_id, "grade": 3, "reason": " both read it again ", "position": first.position}
    answer = alice.post(reverse("console:decide", args=[judged.pk]), sent)
    made = Adjudication.objects.get()
    assert answer.url == f"{here}?done={made.pk}&after={first.position}"
    assert (made.grade, made.reason, made.decided_by.username) == (3, "both read it again", "alice")
    answer = alice.get(answer.url)
    assert answer.context["n_left"] == n - 1
    text = " ".join(answer.content.decode().split())
    assert "both read it again" in text
    if n > 1:
        assert answer.context["shown"]["place"].position > first.position


def test_a_grade_off_the_scale_or_an_item_of_elsewhere_is_refused_and_nothing_is_stored(
    alice, judged, tmp_path
):
    (tmp_path / "other").mkdir()
    foreign = slots(make_campaign(tmp_path / "other"))[0].item
    item, address = slots(judged)[0].item, reverse("console:decide", args=[judged.pk])
    assert alice.post(address, {"item": item.pk, "grade": 4}).status_code == 400
    assert alice.post(address, {"item": item.pk, "grade": "x"}).status_code == 302
    assert alice.post(address, {"item": foreign.pk, "grade": 1}).status_code == 404
    assert alice.post(address, {"item": uuid.uuid4(), "grade": 1}).status_code == 404
    assert alice.get(address).status_code == 405
    frame = reverse("console:adjudication-document", args=[judged.pk, foreign.pk])
    assert alice.get(frame).status_code == 404
    assert not Adjudication.objects.exists()


def test_the_queue_has_an_end_a_beginning_and_an_empty_state(alice, judged):
    assert "The end of the queue" in page(alice, "console:adjudication", judged.pk, after=9999)
    for strange in ("x", "-1", "²", "9" * 40):
        assert "Your grade" in page(alice, "console:adjudication", judged.pk, after=strange)
    boss = User.objects.get(username="alice")
    assert "Let it stand" in page(alice, "console:adjudication", judged.pk)
    for one in judged.computations.last().disputed_items.all():
        Adjudication.objects.create(item=one.item, grade=0, decided_by=boss)
    assert "No document is in question" in page(alice, "console:adjudication", judged.pk)


def test_without_numbers_the_queue_says_so(alice, campaign):
    assert "No numbers yet" in page(alice, "console:adjudication", campaign.pk)


def test_comments_have_a_page_of_their_own(alice, campaign):
    bob = make_assessor(campaign, "bob")
    assert "No comments yet." in page(alice, "console:said", campaign.pk)
    slot = slots(campaign)[0]
    submit(assessor=bob, token=lease(bob, slot), client_token=uuid.uuid4(), grade=1, comment=HOSTILE)
    text = page(alice, "console:said", campaign.pk)
    assert "&lt;script&gt;" in text
    assert HOSTILE not in text
