"""The manager's side of the judging contract: leases, rules, topics of teams, what assessors say, what may change.

Alice manages, Bob and Dora judge; Charlie and everybody else who is no manager must not even see that it exists.
"""

import re
import uuid
from datetime import timedelta

import pytest
from django.contrib.messages import get_messages
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone
from small_campaign import TOPICS, give, lease, make_assessor, make_campaign, make_collection, slots

from analytics.views.events import event_words
from judging.forms import TopicTeamsForm, missing_kind
from judging.models import (
    Assessor,
    Campaign,
    CampaignTopic,
    Collection,
    Document,
    Judgment,
    Lease,
    MachineCall,
    Slot,
    Topic,
)
from judging.services.assign import revise, submit
from judging.services.campaigns import create_campaign, set_assessor_rules, set_topic_teams
from judging.views.manage import TOPICS_PER_PAGE
from touchstone.models import Event, Job, User

pytestmark = pytest.mark.django_db
NUL, LONG = "a\0b", "x" * 20_000


@pytest.fixture(autouse=True)
def plain_static_files(settings):
    """Pages name static files by their hash, which collectstatic alone knows; not so here."""
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}
    settings.MIDDLEWARE = [part for part in settings.MIDDLEWARE if "whitenoise" not in part]


@pytest.fixture
def campaign(db, tmp_path) -> Campaign:
    return make_campaign(tmp_path)


@pytest.fixture
def bob(campaign) -> Assessor:
    return make_assessor(campaign, "bob")


@pytest.fixture
def dora(campaign) -> Assessor:
    return make_assessor(campaign, "dora")


@pytest.fixture
def alice(db) -> Client:
    client = Client()
    client.force_login(User.objects.create(username="alice", role="manager"))
    return client


def page(client: Client, name: str, *arguments, status=200, **query) -> str:
    answer = client.get(reverse(name, args=arguments), query)
    assert answer.status_code == status
    return words(answer)


def post(client: Client, view: str, /, *arguments, status=302, query="", **fields):
    answer = client.post(reverse(view, args=arguments) + query, fields)
    assert answer.status_code == status, words(answer)
    return answer


def words(answer) -> str:
    return " ".join(answer.content.decode().split())


def body(answer) -> str:
    """Return the answer without the form's token, which is new in every answer."""
    return re.sub(r'(csrfmiddlewaretoken" value=|X-CSRFToken": |nonce=)"[^"]*"', "", answer.content.decode())


def said(answer) -> list[str]:
    """Return the messages that the answer leaves for the next page."""
    return [str(message) for message in get_messages(answer.wsgi_request)]


def expire(*tokens: uuid.UUID) -> None:
    Slot.objects.filter(token__in=tokens).update(lease_until=timezone.now() - timedelta(minutes=5))


def cannot_judge(assessor: Assessor, slot: Slot, obstacle: str, comment: str = "") -> Judgment:
    token = lease(assessor, slot)
    return submit(
        assessor=assessor, token=token, client_token=uuid.uuid4(), obstacle=obstacle, comment=comment
    )


def assessors(campaign: Campaign, n: int) -> list[Assessor]:
    return [make_assessor(campaign, f"person{number:02}") for number in range(n)]


# -- who may ------------------------------------------------------------------------------------------------


def routes(campaign: Campaign, assessor: int, token: uuid.UUID) -> list[tuple[str, str, dict[str, str]]]:
    """Return every route of the manager's side with the method that it takes and a valid form."""
    collection = campaign.collection_id
    edit = {"name": "x", "lease_seconds": 60, "break_minutes": 0}
    about_one = [campaign.pk, assessor]
    return [
        ("get", reverse("judging:manage"), {}),
        ("get", reverse("judging:manage-campaign-new"), {}),
        ("post", reverse("judging:manage-campaign-new"), {}),
        ("post", reverse("judging:manage-collection-new"), {"name": "mine"}),
        ("get", reverse("judging:manage-collection", args=[collection]), {}),
        ("post", reverse("judging:manage-collection", args=[collection]), {"kind": "topics"}),
        ("post", reverse("judging:manage-collection-edit", args=[collection]), {"name": "mine"}),
        ("get", reverse("judging:manage-campaign-edit", args=[campaign.pk]), {}),
        ("post", reverse("judging:manage-campaign-edit", args=[campaign.pk]), edit),
        ("post", reverse("judging:manage-campaign-state", args=[campaign.pk]), {"state": "closed"}),
        ("get", reverse("judging:manage-leases", args=[campaign.pk]), {}),
        ("post", reverse("judging:manage-lease-release", args=[campaign.pk, token]), {}),
        ("post", reverse("judging:manage-leases-release", args=[campaign.pk]), {}),
        ("get", reverse("judging:manage-topics", args=[campaign.pk]), {}),
        ("post", reverse("judging:manage-topics", args=[campaign.pk]), {}),
        ("post", reverse("judging:manage-assessor-add", args=[campaign.pk]), {"username": "eve", "tier": "gold"}),
        ("post", reverse("judging:manage-assessor-status", args=about_one), {"status": "suspended"}),
        ("get", reverse("analytics:campaign", args=[campaign.pk]), {}),
        ("get", reverse("analytics:assessor", args=about_one), {}),
        ("post", reverse("analytics:assessor", args=about_one), {"quota": "3"}),
        ("post", reverse("analytics:requeue", args=about_one), {"confirmation": "bob"}),
    ]  # fmt: skip


def facts() -> list[object]:
    """Return everything that a route of the manager could have changed."""
    tables = (Campaign, Collection, Assessor, Slot, CampaignTopic, Job, User, Event)
    ignored = {"last_login"}
    return [
        list(
            model.objects.order_by("pk").values(
                *(f.name for f in model._meta.fields if f.name not in ignored)
            )
        )
        for model in tables
    ]


@pytest.mark.parametrize("role", ["assessor", "researcher", None])
def test_no_route_exists_for_anybody_but_a_manager_and_none_changes_a_thing(role, campaign, bob):
    client = Client()
    if role:
        client.force_login(User.objects.create(username="charlie", role=role))
    token = lease(bob, slots(campaign)[0])
    before = facts()
    absent = body(client.get("/manage/nothing/"))
    for method, path, fields in routes(campaign, bob.pk, token):
        answer = getattr(client, method)(path, fields)
        if role is None:
            assert answer.status_code == 302, path
            assert answer.url.startswith("/login/"), path
        else:
            assert (answer.status_code, body(answer)) == (404, absent), path
    assert facts() == before


def test_an_assessor_of_the_campaign_sees_no_more_of_it_than_a_stranger(campaign, bob):
    client = Client()
    client.force_login(bob.user)
    for method, path, fields in routes(campaign, bob.pk, uuid.uuid4()):
        assert getattr(client, method)(path, fields).status_code == 404, path


def test_what_belongs_to_another_campaign_looks_like_what_does_not_exist(alice, campaign, bob, tmp_path):
    (tmp_path / "other").mkdir()
    other = make_campaign(tmp_path / "other")
    token = lease(bob, slots(campaign)[0])
    absent = body(alice.get("/manage/nothing/"))
    foreign = [
        ("get", reverse("analytics:assessor", args=[other.pk, bob.pk])),
        ("post", reverse("analytics:assessor", args=[other.pk, bob.pk])),
        ("post", reverse("analytics:requeue", args=[other.pk, bob.pk])),
        ("post", reverse("judging:manage-assessor-status", args=[other.pk, bob.pk])),
        ("post", reverse("judging:manage-lease-release", args=[other.pk, token])),
        ("post", reverse("judging:manage-lease-release", args=[campaign.pk, uuid.uuid4()])),
        ("get", reverse("analytics:assessor", args=[campaign.pk, 2**63])),
        ("get", reverse("analytics:assessor", args=[campaign.pk, 10**30])),
        *[(way, reverse(name, args=[uuid.uuid4()])) for way, name in (
            ("get", "judging:manage-leases"), ("get", "judging:manage-topics"), ("post", "judging:manage-topics"),
            ("post", "judging:manage-leases-release"), ("get", "judging:manage-campaign-edit"),
            ("post", "judging:manage-collection-edit"), ("get", "analytics:campaign"),
        )],
    ]  # fmt: skip
    for method, path in foreign:
        answer = getattr(alice, method)(path)
        assert (answer.status_code, body(answer)) == (404, absent), path
    assert Slot.objects.get(token=token).state == "leased"


def test_a_release_needs_the_token_of_the_form(campaign, bob):
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.create(username="alice", role="manager"))
    token = lease(bob, slots(campaign)[0])
    post(client, "judging:manage-lease-release", campaign.pk, token, status=403)
    assert client.get(reverse("judging:manage-lease-release", args=[campaign.pk, token])).status_code == 405
    assert Slot.objects.filter(token=token).exists()


# -- leases -------------------------------------------------------------------------------------------------


def test_leases_are_listed_oldest_first_with_who_what_and_whether_they_are_over(alice, campaign, bob, dora):
    first, second = slots(campaign, number=1)[:2]
    old, new = lease(bob, first), lease(dora, second)
    Slot.objects.filter(token=old).update(leased_at=timezone.now() - timedelta(hours=3))
    expire(old)
    text = page(alice, "judging:manage-leases", campaign.pk)
    assert "2 are with an assessor, 1 of them longer than agreed" in text
    assert text.index("bob</a>") < text.index("dora</a>")
    assert "3 hours ago" in text
    assert text.count('<span class="tag warn">expired</span>') == 1
    assert "Need t0" in text  # the topic's title
    assert first.item.document.doc_id in text  # these documents have no titles
    for token in (old, new):
        assert reverse("judging:manage-lease-release", args=[campaign.pk, token]) in text


def test_titles_of_any_length_and_kind_are_shown_as_text(alice, campaign, bob):
    slot = slots(campaign)[0]
    title = "<img src=x onerror=alert(1)>" + "&" * 200
    Document.objects.filter(pk=slot.item.document_id).update(title=title)
    Topic.objects.filter(pk=slot.topic_id).update(title="<b>" + "w" * 500)
    lease(bob, slot)
    text = page(alice, "judging:manage-leases", campaign.pk)
    assert "<img src=x" not in text
    assert "&lt;img src=x onerror=alert(1)&gt;" + "&amp;" * 91 + "…" in text  # 28 + 91 + 1 characters
    assert "&lt;b&gt;" + "w" * 116 + "…" in text


def test_the_page_says_what_releasing_does(alice, campaign, bob):
    lease(bob, slots(campaign)[0])
    text = page(alice, "judging:manage-leases", campaign.pk)
    assert "what the holder still submits is kept" in text
    assert "Release all expired" not in text  # none is


def test_without_leases_the_page_says_so(alice, campaign):
    assert "Nobody has a document open" in page(alice, "judging:manage-leases", campaign.pk)


def test_a_released_document_is_free_and_what_its_holder_still_sends_is_kept(alice, campaign, bob):
    slot = slots(campaign)[0]
    token = lease(bob, slot)
    answer = post(alice, "judging:manage-lease-release", campaign.pk, token)
    assert said(answer) == ["Released. What bob still submits is kept."]
    slot.refresh_from_db()
    assert (slot.state, slot.assessor, slot.token) == ("open", None, None)
    event = Event.objects.get(verb="released")
    assert event.actor.username == "alice"
    assert event.detail["assessor"] == "bob"
    late = submit(assessor=bob, token=token, client_token=uuid.uuid4(), grade=2)
    assert late.slot is not None  # the place was still free, so it counts


def test_releasing_twice_or_after_the_judgment_changes_nothing(alice, campaign, bob, dora):
    slot = slots(campaign)[0]
    token = lease(bob, slot)
    post(alice, "judging:manage-lease-release", campaign.pk, token)
    theirs = lease(dora, slot)  # the same place, meanwhile with somebody else
    answer = post(alice, "judging:manage-lease-release", campaign.pk, token)
    assert said(answer)[-1] == "Nothing to release: it was judged or given back meanwhile."
    assert Slot.objects.get(token=theirs).assessor == dora
    submit(assessor=dora, token=theirs, client_token=uuid.uuid4(), grade=1)
    post(alice, "judging:manage-lease-release", campaign.pk, theirs)
    assert Slot.objects.get(pk=slot.pk).state == "done"
    assert Event.objects.filter(verb="released").count() == 1


def test_all_expired_leases_are_released_and_no_other(alice, campaign, bob, dora):
    over = [lease(bob, slot) for slot in slots(campaign, number=1)[:3]]
    running = lease(dora, slots(campaign, number=2)[0])
    expire(*over)
    assert "Release all expired" in page(alice, "judging:manage-leases", campaign.pk)
    answer = post(alice, "judging:manage-leases-release", campaign.pk)
    assert said(answer) == ["3 expired leases were released."]
    assert list(Slot.objects.filter(state="leased").values_list("token", flat=True)) == [running]
    answer = post(alice, "judging:manage-leases-release", campaign.pk)
    assert said(answer)[-1] == "No lease has expired."


def test_at_most_so_many_leases_are_shown_and_the_total_is_said(alice, campaign, bob, monkeypatch):
    monkeypatch.setattr("judging.views.manage.SHOWN_LEASES", 3)
    for slot in slots(campaign, number=1)[:5]:
        lease(bob, slot)
    text = page(alice, "judging:manage-leases", campaign.pk)
    assert "3 of 5 are shown" in text
    assert text.count(">Release</button>") == 3


def test_the_campaign_leads_to_its_leases_topics_and_changes(alice, campaign, bob):
    text = page(alice, "analytics:campaign", campaign.pk)
    for name in ("manage-leases", "manage-topics", "manage-campaign-edit", "manage-entry"):
        assert f'href="{reverse(f"judging:{name}", args=[campaign.pk])}"' in text
    lease(bob, slots(campaign)[0])
    assert "1 on screens now: who has which" in page(alice, "analytics:campaign", campaign.pk)


def statements(client: Client, name: str, *arguments) -> int:
    with CaptureQueriesContext(
        connection,
    ) as captured:
        page(client, name, *arguments)
    return len(captured)


def test_fifty_leases_take_as_many_statements_as_five(alice, campaign):
    people = assessors(campaign, 10)
    free = [slot for slot in slots(campaign) if slot.number == 1] + slots(campaign, number=2)
    for person, slot in zip(people[:5], free[:5], strict=True):
        lease(person, slot)
    five = statements(alice, "judging:manage-leases", campaign.pk)
    for number, slot in enumerate(free[5:50]):
        lease(people[(number + number // 42) % 10], slot)
    assert Slot.objects.filter(state="leased").count() == 50
    assert statements(alice, "judging:manage-leases", campaign.pk) == five


def test_pausing_takes_back_what_is_open_and_says_so(alice, campaign, bob):
    token = lease(bob, slots(campaign)[0])
    assert "Pausing takes the documents that somebody has open back at once" in page(
        alice, "analytics:assessors", campaign.pk
    )
    where = reverse("judging:manage-assessor-status", args=[campaign.pk, bob.pk])
    assert "documents still open went back at once" in said(alice.post(where, {"status": "suspended"}))[0]
    assert not Slot.objects.filter(token=token).exists()
    for status in ("", "removed", NUL, LONG):
        assert alice.post(where, {"status": status}).status_code == 302
    assert Assessor.objects.get(pk=bob.pk).status == "suspended"
    assert said(alice.post(where, {"status": "active"}))[-1] == "bob judges again."


# -- rules of an assessor -----------------------------------------------------------------------------------


def rules(assessor: Assessor) -> tuple[int | None, str, list[str]]:
    assessor = Assessor.objects.get(pk=assessor.pk)
    topics = assessor.first_topics.order_by("topic_id").values_list("topic_id", flat=True)
    return assessor.quota, assessor.team, list(topics)


def test_the_rules_of_an_assessor_are_shown_saved_and_recorded(alice, campaign, bob):
    answer = post(
        alice, "analytics:assessor", campaign.pk, bob.pk, quota="40", team=" blue ", first_topics="t2, t0"
    )
    assert said(answer) == ["Saved. The quota counts at once, team and first topics from the next topic on."]
    assert rules(bob) == (40, "blue", ["t0", "t2"])
    event = Event.objects.get(verb="set rules")
    assert event.actor.username == "alice"
    text = page(alice, "analytics:assessor", campaign.pk, bob.pk)
    assert 'name="quota" value="40"' in text
    assert 'value="blue"' in text
    assert "t0 t2</textarea>" in text
    assert '<span class="tag bronze">bronze</span> judges the drawn items' in text
    assert "<small>of 40</small>" in text


def test_empty_rules_lift_all_limits(alice, campaign, bob):
    set_assessor_rules(assessor=bob, quota=3, team="blue", first_topics=Topic.objects.all(), actor=None)
    post(alice, "analytics:assessor", campaign.pk, bob.pk, quota="", team="", first_topics="")
    assert rules(bob) == (None, "", [])


@pytest.mark.parametrize(
    ("asked", "chosen"),
    [
        ("t0", ["t0"]),
        ("t0,t1", ["t0", "t1"]),
        (" t1 ,\n t0,", ["t0", "t1"]),
        ("a,b", ["a,b"]),
        ("a,b,t0", None),
    ],
)
def test_topics_are_parted_by_spaces_or_commas_and_an_id_may_hold_a_comma(
    alice, campaign, bob, asked, chosen
):
    Topic.objects.create(collection=campaign.collection, topic_id="a,b", title="With a comma")
    answer = post(
        alice, "analytics:assessor", campaign.pk, bob.pk, first_topics=asked, status=302 if chosen else 400
    )
    if chosen is None:
        assert "the collection has no topic a, b" in words(answer)
    else:
        assert rules(bob)[2] == chosen


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"first_topics": "t0 t77 t1 t78"}, "the collection has no topic t77, t78"),
        ({"first_topics": " ".join(f"q{n}" for n in range(40))}, "no topic q0, q1, q2, q3, q4 and 35 more"),
        ({"first_topics": "<script>alert(1)</script>"}, "no topic &lt;script&gt;alert(1)&lt;/script&gt;"),
        ({"first_topics": "y" * 19_000}, "the collection has no topic " + "y" * 60 + "<"),
        ({"first_topics": "y" * 20_001}, "at most 20000 characters"),
        ({"first_topics": NUL}, "Null characters are not allowed."),
        ({"team": "z" * 61}, "at most 60 characters"),
        ({"team": NUL}, "Null characters are not allowed."),
        ({"quota": "-1"}, "greater than or equal to 1"),
        ({"quota": "0"}, "greater than or equal to 1"),
        ({"quota": "9" * 40}, "less than or equal to 2147483647"),
        ({"quota": "9" * 5000}, "Enter a whole number."),
        ({"quota": "many"}, "Enter a whole number."),
        ({"quota": NUL}, "Enter a whole number."),
    ],
)  # fmt: skip
def test_wrong_rules_are_explained_beside_the_field_and_nothing_is_saved(alice, campaign, bob, fields, error):
    answer = post(
        alice,
        "analytics:assessor",
        campaign.pk,
        bob.pk,
        **{"team": "blue", "quota": "3"} | fields,
        status=400,
    )
    assert error in words(answer)
    assert "The rules were not saved" in words(answer)
    assert rules(bob) == (None, "", [])


def test_topics_of_another_collection_are_unknown_here(alice, campaign, bob, tmp_path):
    other = Collection.objects.create(name="elsewhere")
    Topic.objects.create(collection=other, topic_id="far", title="Far away")
    answer = post(alice, "analytics:assessor", campaign.pk, bob.pk, first_topics="far", status=400)
    assert "the collection has no topic far" in words(answer)


def test_an_assessor_page_tells_dates_obstacles_comments_and_the_costs_of_a_machine(alice, campaign, bob):
    at = timezone.now().replace(year=2026, month=3, day=4, hour=5, minute=6)
    Assessor.objects.filter(pk=bob.pk).update(consented_at=at, trained_at=at + timedelta(days=1))
    first, second, third = slots(campaign, number=1)[:3]
    cannot_judge(bob, first, "language", comment="Is this Welsh?")
    cannot_judge(bob, second, "language")
    cannot_judge(bob, third, "harmful")
    text = page(alice, "analytics:assessor", campaign.pk, bob.pk)
    assert "2026-03-04 05:06 UTC" in text
    assert "2026-03-05 05:06 UTC" in text
    assert "2 × I do not understand its language<br>1 × The content is disturbing" in text
    assert reverse("analytics:said", args=[campaign.pk]) in text
    assert "The machine" not in text
    robot = make_assessor(campaign, "robot")
    Assessor.objects.filter(pk=robot.pk).update(kind="machine")
    call = {"assessor": robot, "lease_token": uuid.uuid4(), "model": "small-1", "cost": "0.0125"}
    MachineCall.objects.create(**call, status="answered", prompt_tokens=1500, completion_tokens=3)
    MachineCall.objects.create(**call, status="answered", prompt_tokens=1500, completion_tokens=2)
    MachineCall.objects.create(**call, status="overloaded")
    text = page(alice, "analytics:assessor", campaign.pk, robot.pk)
    assert "3: 2 answered, 1 overloaded" in text
    assert "0.0375" in text
    assert "3,000 read, 5 written" in text
    assert "small-1" in text


# -- again, by others ---------------------------------------------------------------------------------------


def test_judgments_are_made_again_by_others_after_a_typed_confirmation(alice, campaign, bob):
    for slot in slots(campaign, number=1)[:4]:
        give(bob, slot, 1)
    text = page(alice, "analytics:assessor", campaign.pk, bob.pk)
    assert "<strong>4 judgments</strong> would be set aside" in text
    answer = post(alice, "analytics:requeue", campaign.pk, bob.pk, confirmation="bob")
    assert answer.url == reverse("analytics:assessor", args=[campaign.pk, bob.pk])
    assert said(answer) == [
        "4 judgments are wanted again, from others. Nothing was deleted; the numbers follow."
    ]
    assert Slot.objects.filter(assessor=bob, purpose="void", state="done").count() == 4
    assert Slot.objects.filter(campaign=campaign, purpose="judge", state="open").count() == 84
    assert Judgment.objects.filter(assessor=bob).count() == 4
    event = Event.objects.get(verb="requeued")
    assert event.actor.username == "alice"
    assert event.detail["n_slots"] == 4
    assert Job.objects.filter(kind="estimate", state="queued").exists()
    assert "no judgment that counts and could be made again" in page(
        alice, "analytics:assessor", campaign.pk, bob.pk
    )
    answer = post(alice, "analytics:requeue", campaign.pk, bob.pk, confirmation="bob")
    assert said(answer)[-1] == "There was nothing to make again."


@pytest.mark.parametrize("typed", ["", "Bob", "dora", "bob; drop", NUL, LONG])
def test_without_the_right_name_nothing_is_set_aside(alice, campaign, bob, typed):
    give(bob, slots(campaign)[0], 1)
    answer = post(alice, "analytics:requeue", campaign.pk, bob.pk, confirmation=typed, status=400)
    assert "Nothing was made again" in words(answer)
    assert 'aria-invalid="true"' in words(answer)
    assert not Slot.objects.filter(purpose="void").exists()
    assert not Job.objects.exists()


# -- topics kept for teams ----------------------------------------------------------------------------------


def topic_pk(campaign: Campaign, topic_id: str) -> int:
    return campaign.collection.topics.get(topic_id=topic_id).pk


def team_fields(campaign: Campaign, **teams: str) -> dict[str, str]:
    return {TopicTeamsForm.name_of(topic_pk(campaign, topic_id)): team for topic_id, team in teams.items()}


def test_topics_are_kept_for_teams_and_opened_again(alice, campaign, bob):
    set_assessor_rules(assessor=bob, quota=None, team="blue", first_topics=[], actor=None)
    rates = dict(campaign.topic_rules.values_list("topic__topic_id", "check_rate"))
    post(alice, "judging:manage-topics", campaign.pk, **team_fields(campaign, t0="blue", t1=" ", t2="blue"))
    kept = dict(campaign.topic_rules.exclude(team="").values_list("topic__topic_id", "team"))
    assert kept == {"t0": "blue", "t2": "blue"}
    text = page(alice, "judging:manage-topics", campaign.pk)
    assert '<option value="blue">' in text
    assert "“blue” keeps 2 topics and has no active gold member: audits of them would wait." in text
    answer = post(alice, "judging:manage-topics", campaign.pk, **team_fields(campaign, t0="", t2="blue"))
    assert said(answer)[-1] == "1 topic was changed."
    assert list(campaign.topic_rules.exclude(team="").values_list("topic__topic_id", flat=True)) == ["t2"]
    after = dict(campaign.topic_rules.values_list("topic__topic_id", "check_rate"))
    assert {topic: after[topic] for topic in rates} == rates  # the share of checks is another matter


def test_saving_without_a_change_says_so_and_records_nothing(alice, campaign):
    answer = post(alice, "judging:manage-topics", campaign.pk, **team_fields(campaign, t0="", t1="", t2=""))
    assert said(answer) == ["No topics were changed."]
    assert not Event.objects.filter(verb="set teams").exists()


def test_topics_show_what_is_done_and_the_share_of_checks(alice, campaign, bob):
    CampaignTopic.objects.update_or_create(
        campaign=campaign, topic_id=topic_pk(campaign, "t1"), defaults={"check_rate": 0.25}
    )
    give(bob, slots(campaign, item__topic__topic_id="t1")[0], 1)
    text = page(alice, "judging:manage-topics", campaign.pk)
    row = text[text.index("t1<br>") : text.index("t2<br>")]
    assert "1 of 28" in row  # 14 documents, two judgments each
    assert "25 %" in row


@pytest.mark.parametrize(
    ("change", "warning"),
    [
        ({}, ""),
        ({"status": "suspended"}, "no active bronze or silver member: nobody can judge them"),
        ({"team": "red"}, "no active bronze or silver member: nobody can judge them"),
    ],
)
def test_topics_that_nobody_can_judge_are_warned_of(alice, campaign, bob, change, warning):
    """Greta of the gold tier is of the team, but judges audits alone."""
    Assessor.objects.filter(pk=make_assessor(campaign, "greta", "gold").pk).update(team="blue")
    Assessor.objects.filter(pk=bob.pk).update(**{"team": "blue"} | change)
    topics = {topic_pk(campaign, name): "blue" for name in ("t0", "t1")}
    set_topic_teams(campaign=campaign, teams=topics, actor=None)
    text = page(alice, "judging:manage-topics", campaign.pk)
    assert ("wait for members of their team" in text) == bool(warning)
    assert f"“blue” keeps 2 topics and has {warning}." in text or not warning


def test_a_topic_of_a_team_without_anybody_is_warned_of_once(alice, campaign):
    set_topic_teams(campaign=campaign, teams={topic_pk(campaign, "t0"): "blue"}, actor=None)
    text = page(alice, "judging:manage-topics", campaign.pk)
    assert "“blue” keeps 1 topic and has no active member: nobody can judge it." in text


@pytest.mark.parametrize("team", ["t" * 61, NUL])
def test_a_wrong_team_is_explained_beside_the_topic_and_no_topic_is_saved(alice, campaign, team):
    fields = team_fields(campaign, t0="blue", t1=team)
    answer = post(alice, "judging:manage-topics", campaign.pk, status=400, **fields)
    assert "Not saved" in words(answer)
    assert words(answer).count('aria-invalid="true"') == 1
    assert not campaign.topic_rules.exclude(team="").exists()


def test_a_topic_of_another_collection_is_not_touched(alice, campaign):
    other = Topic.objects.create(
        collection=Collection.objects.create(name="elsewhere"), topic_id="far", title="Far away"
    )
    fields = {TopicTeamsForm.name_of(other.pk): "blue", "team-x": "blue", "team--1": "blue"}
    post(alice, "judging:manage-topics", campaign.pk, **fields)
    assert not CampaignTopic.objects.filter(topic=other).exists()
    assert not CampaignTopic.objects.exclude(team="").exists()


def test_many_topics_have_pages_and_a_save_leaves_the_other_pages_alone(alice, campaign):
    add_topics(campaign, TOPICS_PER_PAGE)
    set_topic_teams(
        campaign=campaign, teams={topic_pk(campaign, "t2"): "red"}, actor=None
    )  # on the last page
    text = page(alice, "judging:manage-topics", campaign.pk)
    assert f"Topics 1 to {TOPICS_PER_PAGE} of {TOPICS_PER_PAGE + 3}" in text
    assert text.count('list="teams"') == TOPICS_PER_PAGE
    answer = post(
        alice, "judging:manage-topics", campaign.pk, query="?page=1", **team_fields(campaign, m000="blue")
    )
    assert answer.url.endswith("?page=1")
    kept = dict(campaign.topic_rules.exclude(team="").values_list("topic__topic_id", "team"))
    assert kept == {"m000": "blue", "t2": "red"}
    for odd in ("2", "999", "-1", "x", "9" * 5000):
        assert page(alice, "judging:manage-topics", campaign.pk, page=odd)


def add_topics(campaign: Campaign, n: int) -> None:
    topics = Topic.objects.bulk_create(
        Topic(collection=campaign.collection, topic_id=f"m{number:03}", title=f"More {number}")
        for number in range(n)
    )
    document = campaign.collection.documents.first()
    for topic in topics:
        item = campaign.items.create(topic=topic, document=document)
        item.slots.create(purpose="judge", number=1, campaign=campaign, topic=topic, position=1)


def test_a_page_of_topics_takes_as_many_statements_for_three_as_for_fifty(alice, campaign):
    three = statements(alice, "judging:manage-topics", campaign.pk)
    add_topics(campaign, 47)
    assert statements(alice, "judging:manage-topics", campaign.pk) == three


def test_before_the_draw_the_page_of_topics_leads_to_the_design(alice, campaign):
    undrawn = create_campaign(
        collection=campaign.collection, name="undrawn", user=None, grades=[(0, "No", 0), (1, "Yes", 1)]
    )
    text = page(alice, "judging:manage-topics", undrawn.pk)
    assert "No topics yet" in text
    assert reverse("analytics:design", args=[undrawn.pk]) in text


# -- what assessors say -------------------------------------------------------------------------------------


def test_the_campaign_counts_why_documents_were_not_judged_and_names_the_hardest(alice, campaign, bob, dora):
    assert "Nobody has said “cannot judge”." in page(alice, "analytics:said", campaign.pk)
    hard, other, late = slots(campaign, number=1)[:3]
    cannot_judge(bob, hard, "unreadable")
    cannot_judge(dora, hard, "unreadable")
    cannot_judge(bob, other, "topic")
    second_thought = cannot_judge(bob, late, "language")
    revise(assessor=bob, token=second_thought.lease_token, client_token=uuid.uuid4(), grade=1)
    text = page(alice, "analytics:said", campaign.pk)
    assert '<th scope="row">The document cannot be read</th><td class="number">2</td>' in text
    assert '<th scope="row">The topic is unclear</th><td class="number">1</td>' in text
    assert "I do not understand its language" not in text  # a grade came afterwards
    found = text[text.index("most often given back") : text.index("No comments yet")]
    assert found.index(hard.item.document.doc_id) < found.index(other.item.document.doc_id)
    assert late.item.document.doc_id not in found


def test_only_the_ten_hardest_are_named(alice, campaign, bob):
    for slot in slots(campaign, number=1)[:12]:
        cannot_judge(bob, slot, "other")
    text = page(alice, "analytics:said", campaign.pk)
    table = text[text.index("ten at most") :]
    assert table[: table.index("</table>")].count('<th scope="row"') == 10


def test_comments_are_shown_newest_first_as_text_with_who_said_them(alice, campaign, bob, dora):
    first, second = slots(campaign, number=1)[:2]
    token = lease(bob, first)
    submit(
        assessor=bob,
        token=token,
        client_token=uuid.uuid4(),
        grade=3,
        comment="<script>alert(1)</script>\nline two",
    )
    cannot_judge(dora, second, "topic", comment="What is asked?")
    text = page(alice, "analytics:said", campaign.pk)
    assert text.count('<td class="comment">') == 2
    assert text.index("What is asked?") < text.index("line two")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;<br>line two" in text
    assert '<span class="number">3</span>' in text
    assert "<script>alert" not in text


def test_more_obstacles_comments_and_assessors_take_no_more_statements(alice, campaign):
    people = assessors(campaign, 4)
    cannot_judge(people[0], slots(campaign)[0], "topic", comment="why?")
    few = statements(alice, "analytics:said", campaign.pk)
    for number, slot in enumerate(slots(campaign, number=1)[1:31]):
        cannot_judge(people[number % 4], slot, "other", comment=f"comment {number}")
    assert statements(alice, "analytics:said", campaign.pk) == few


def test_what_happened_is_said_in_words():
    detail = {"assessor": "bob", "n_slots": 2, "quota": None, "team": "", "fields": ["name", "guidelines"]}
    assert event_words(Event(detail=detail)) == "bob, 2 places, name, guidelines"
    assert event_words(Event(detail={})) == ""


# -- forms of campaigns and collections ---------------------------------------------------------------------


def new_campaign(collection: Collection, **changes: object) -> dict[str, object]:
    return {
        "collection": collection.pk, "name": "A campaign", "judgments_per_item": 2, "lease_seconds": 600,
        "gold_check_rate": 0.1, "gold_check_exposures": 7, "decoys_per_check": 2, "highlights_terms": "on",
        "break_minutes": 30, "machine_prompt": "{topic_title}?\r\n{document_text}", "grades": "0 | No | 0\n1 | Yes | 1",
        "relevant_grade": 1,
    } | changes  # fmt: skip


def test_a_new_campaign_keeps_what_was_chosen_for_checks_the_screen_and_machines(alice, tmp_path):
    collection = make_collection(tmp_path)
    post(alice, "judging:manage-campaign-new", **new_campaign(collection))
    made = Campaign.objects.get()
    assert (made.gold_check_exposures, made.decoys_per_check, made.break_minutes) == (7, 2, 30)
    assert made.highlights_terms is True
    assert made.machine_prompt == "{topic_title}?\n{document_text}"
    fields = new_campaign(collection, name="Another")
    del fields["highlights_terms"]
    post(alice, "judging:manage-campaign-new", **fields)
    assert Campaign.objects.get(name="Another").highlights_terms is False


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"gold_check_exposures": 0}, "1 to 100 times in all"),
        ({"gold_check_exposures": 101}, "1 to 100 times in all"),
        ({"gold_check_exposures": -1}, "greater than or equal to 0"),
        ({"decoys_per_check": 6}, "0 to 5 decoys"),
        ({"decoys_per_check": "9" * 30}, "less than or equal to"),
        ({"break_minutes": -5}, "greater than or equal to 0"),
        ({"break_minutes": 10**9}, "less than or equal to"),
        ({"lease_seconds": 0}, "1 second to 1 day"),
        ({"machine_prompt": "p" * 100_001}, "at most 100000 characters"),
        ({"guidelines": "g" * 100_001}, "at most 100000 characters"),
        ({"machine_prompt": NUL}, "Null characters are not allowed."),
        ({"machine_prompt": "{document_txt}"}, "the prompt has no field {document_txt}"),
        ({"machine_prompt": "{document_text} Grade it."}, "the prompt must end with {document_text}"),
        ({"name": NUL}, "Null characters are not allowed."),
        ({"name": "n" * 101}, "at most 100 characters"),
    ],
)
def test_wrong_fields_of_a_new_campaign_are_explained(alice, tmp_path, change, error):
    fields = new_campaign(make_collection(tmp_path), **change)
    answer = post(alice, "judging:manage-campaign-new", status=400, **fields)
    assert error in words(answer)
    assert not Campaign.objects.exists()


def changed(**changes: object) -> dict[str, object]:
    return {"name": "Renamed", "guidelines": "", "lease_seconds": 900, "break_minutes": 45} | changes


def test_what_may_change_after_the_draw_is_changed_and_recorded_and_nothing_else_is(alice, campaign):
    before = Campaign.objects.values().get(pk=campaign.pk)
    text = page(alice, "judging:manage-campaign-edit", campaign.pk)
    assert "stored judgments mean these words" in text
    assert "the probabilities were recorded before the first judgment" in text
    smuggled = {
        "judgments_per_item": 9,
        "gold_check_rate": 0.5,
        "state": "closed",
        "collection": "x",
        "is_simulated": "on",
    }
    post(
        alice, "judging:manage-campaign-edit", campaign.pk, **changed(guidelines="# New\r\nrules", **smuggled)
    )
    after = Campaign.objects.values().get(pk=campaign.pk)
    different = {name: after[name] for name in after if after[name] != before[name]}
    assert different == {
        "name": "Renamed", "guidelines": "# New\nrules", "lease_seconds": 900, "highlights_terms": False
    }  # fmt: skip
    event = Event.objects.get(verb="changed")
    assert event.detail["fields"] == ["guidelines", "highlights_terms", "lease_seconds", "name"]
    text = page(alice, "analytics:campaign", campaign.pk)
    assert "guidelines, highlights_terms, lease_seconds, name" in text


def test_changing_nothing_records_nothing(alice, campaign):
    Campaign.objects.filter(pk=campaign.pk).update(guidelines="one\ntwo")
    fields = {
        "name": campaign.name, "guidelines": "one\r\ntwo", "lease_seconds": campaign.lease_seconds,
        "break_minutes": campaign.break_minutes, "highlights_terms": "on", "machine_prompt": "",
    }  # fmt: skip
    answer = post(alice, "judging:manage-campaign-edit", campaign.pk, **fields)
    assert said(answer) == ["Nothing was changed."]
    assert not Event.objects.filter(verb="changed").exists()


def test_a_change_does_not_write_over_what_somebody_else_changed_meanwhile(alice, campaign):
    Campaign.objects.filter(pk=campaign.pk).update(state="closed")
    post(alice, "judging:manage-campaign-edit", campaign.pk, **changed())
    assert Campaign.objects.get(pk=campaign.pk).state == "closed"


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"name": ""}, "This field is required."),
        ({"name": "n" * 101}, "at most 100 characters"),
        ({"name": NUL}, "Null characters are not allowed."),
        ({"lease_seconds": 86_401}, "1 second to 1 day"),
        ({"lease_seconds": "-1"}, "greater than or equal to 0"),
        ({"break_minutes": "1e3"}, "Enter a whole number."),
        ({"guidelines": "g" * 100_001}, "at most 100000 characters"),
    ],
)
def test_a_wrong_change_is_explained_and_the_page_keeps_the_campaigns_name(alice, campaign, change, error):
    answer = post(alice, "judging:manage-campaign-edit", campaign.pk, status=400, **changed(**change))
    assert error in words(answer)
    assert f"{campaign.name}</a> › Change" in words(answer)
    assert Campaign.objects.get(pk=campaign.pk).name == campaign.name


def test_two_campaigns_never_share_a_name(alice, campaign):
    create_campaign(
        collection=campaign.collection, name="taken", user=None, grades=[(0, "No", 0), (1, "Yes", 1)]
    )
    answer = post(alice, "judging:manage-campaign-edit", campaign.pk, status=400, **changed(name="taken"))
    assert "already exists" in words(answer)


def test_how_a_collection_is_shown_is_changed_on_its_page_and_recorded(alice):
    made = Collection.objects.create(name="News", description="old")
    text = page(alice, "judging:manage-collection", made.pk)
    assert "now: text alone" in text
    post(alice, "judging:manage-collection-edit", made.pk, name="News", description="old", shows_html="on")
    assert Collection.objects.get().shows_html is True
    assert Event.objects.get(verb="changed").detail["fields"] == ["shows_html"]
    assert "now: HTML as HTML" in page(alice, "judging:manage-collection", made.pk)


def test_a_wrong_change_of_a_collection_is_explained_on_its_page_under_its_old_name(alice):
    made = Collection.objects.create(name="News")
    Collection.objects.create(name="Taken")
    for name, error in (
        ("Taken", "already exists"),
        ("", "required"),
        (NUL, "Null characters"),
        ("n" * 101, "at most 100"),
    ):
        answer = post(alice, "judging:manage-collection-edit", made.pk, status=400, name=name)
        assert error in words(answer)
        assert "<h1>News</h1>" in words(answer)
        assert '<details class="more" open>' in words(answer)
    assert {row.name for row in Collection.objects.all()} == {"News", "Taken"}


@pytest.mark.parametrize(
    ("n_topics", "n_documents", "n_runs", "n_gold", "kind"),
    [
        (0, 0, 0, 0, "topics"), (0, 9, 2, 9, "topics"), (9, 0, 0, 0, "documents"), (9, 9, 0, 0, "runs"),
        (9, 9, 1, 0, "runs"), (9, 9, 2, 0, "judgments"), (9, 9, 2, 9, "runs"),
    ],
)  # fmt: skip
def test_the_upload_asks_for_what_is_missing(n_topics, n_documents, n_runs, n_gold, kind):
    counts = {"n_topics": n_topics, "n_documents": n_documents, "n_runs": n_runs, "n_gold": n_gold}
    assert missing_kind(**counts) == kind


def test_the_page_of_a_collection_preselects_what_is_missing_but_keeps_what_was_chosen(alice):
    made = Collection.objects.create(name="News")
    assert '<option value="topics" selected>' in page(alice, "judging:manage-collection", made.pk)
    Topic.objects.create(collection=made, topic_id=TOPICS[0], title="A need")
    assert '<option value="documents" selected>' in page(alice, "judging:manage-collection", made.pk)
    answer = post(alice, "judging:manage-collection", made.pk, status=400, kind="runs")
    assert '<option value="runs" selected>' in words(answer)
    odd = SimpleUploadedFile("x.tsv", b"t9\tmore\n")
    answer = post(alice, "judging:manage-collection", made.pk, status=400, kind="everything", files=odd)
    assert "Nothing was uploaded" in words(answer)


def test_the_fixture_of_leases_is_real(campaign, bob):
    """What these tests lease by hand is what a claim leases: a slot with its lease."""
    token = lease(bob, slots(campaign)[0])
    assert Lease.objects.get(pk=token).slot.token == token
