"""The manager's pages of an assessor: the rules, judgments made again by others, and what assessors say."""

import uuid
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone
from manager_requests import LONG, NUL, assessors, page, post, said, statements, words
from small_campaign import give, lease, make_assessor, slots

from console.manager.events import event_words
from judging.models import (
    Assessor,
    Collection,
    Judgment,
    MachineCall,
    Slot,
    Topic,
)
from judging.services.assign import revise, submit
from judging.services.campaigns import set_assessor_rules
from touchstone.models import Event, Job

pytestmark = pytest.mark.django_db


def cannot_judge(assessor: Assessor, slot: Slot, obstacle: str, comment: str = "") -> Judgment:
    token = lease(assessor, slot)
    return submit(
        assessor=assessor, token=token, client_token=uuid.uuid4(), obstacle=obstacle, comment=comment
    )


# -- rules of an assessor -----------------------------------------------------------------------------------


def rules(assessor: Assessor) -> tuple[int | None, str, list[str]]:
    assessor = Assessor.objects.get(pk=assessor.pk)
    topics = assessor.first_topics.order_by("topic_id").values_list("topic_id", flat=True)
    return assessor.quota, assessor.team, list(topics)


def test_the_rules_of_an_assessor_are_shown_saved_and_recorded(alice, campaign, bob):
    answer = post(
        alice, "console:assessor", campaign.pk, bob.pk, quota="40", team=" blue ", first_topics="t2, t0"
    )
    assert said(answer) == [
        "Saved. The quota counts at once, team and first topics apply from the next topic on."
    ]
    assert rules(bob) == (40, "blue", ["t0", "t2"])
    event = Event.objects.get(verb="set rules")
    assert event.actor.username == "alice"
    text = page(alice, "console:assessor", campaign.pk, bob.pk)
    assert 'name="quota" value="40"' in text
    assert 'value="blue"' in text
    assert "t0 t2</textarea>" in text
    assert '<span class="tag bronze">bronze</span> judges the drawn items' in text
    assert "<small>of 40</small>" in text


def test_empty_rules_lift_all_limits(alice, campaign, bob):
    set_assessor_rules(assessor=bob, quota=3, team="blue", first_topics=Topic.objects.all(), actor=None)
    post(alice, "console:assessor", campaign.pk, bob.pk, quota="", team="", first_topics="")
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
        alice, "console:assessor", campaign.pk, bob.pk, first_topics=asked, status=302 if chosen else 400
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
        "console:assessor",
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
    answer = post(alice, "console:assessor", campaign.pk, bob.pk, first_topics="far", status=400)
    assert "the collection has no topic far" in words(answer)


def test_an_assessor_page_tells_dates_obstacles_comments_and_the_costs_of_a_machine(alice, campaign, bob):
    at = timezone.now().replace(year=2026, month=3, day=4, hour=5, minute=6)
    Assessor.objects.filter(pk=bob.pk).update(consented_at=at, trained_at=at + timedelta(days=1))
    first, second, third = slots(campaign, number=1)[:3]
    cannot_judge(bob, first, "language", comment="Is this Welsh?")
    cannot_judge(bob, second, "language")
    cannot_judge(bob, third, "harmful")
    text = page(alice, "console:assessor", campaign.pk, bob.pk)
    assert "2026-03-04 05:06 UTC" in text
    assert "2026-03-05 05:06 UTC" in text
    assert "2 × I do not understand its language<br>1 × The content is disturbing" in text
    assert reverse("console:said", args=[campaign.pk]) in text
    assert "Requests of the machine assessor" not in text
    robot = make_assessor(campaign, "robot")
    Assessor.objects.filter(pk=robot.pk).update(kind="machine")
    call = {"assessor": robot, "lease_token": uuid.uuid4(), "model": "small-1", "cost": "0.0125"}
    MachineCall.objects.create(**call, status="answered", prompt_tokens=1500, completion_tokens=3)
    MachineCall.objects.create(**call, status="answered", prompt_tokens=1500, completion_tokens=2)
    MachineCall.objects.create(**call, status="overloaded")
    text = page(alice, "console:assessor", campaign.pk, robot.pk)
    assert "3: 2 answered, 1 overloaded" in text
    assert "0.0375" in text
    assert "3,000 read, 5 written" in text
    assert "small-1" in text


# -- again, by others ---------------------------------------------------------------------------------------


def test_judgments_are_made_again_by_others_after_a_typed_confirmation(alice, campaign, bob):
    for slot in slots(campaign, number=1)[:4]:
        give(bob, slot, 1)
    text = page(alice, "console:assessor", campaign.pk, bob.pk)
    assert "<strong>4 judgments</strong> would be set aside" in text
    answer = post(alice, "console:requeue", campaign.pk, bob.pk, confirmation="bob")
    assert answer.url == reverse("console:assessor", args=[campaign.pk, bob.pk])
    assert said(answer) == [
        "4 judgments are requested again from other assessors. Nothing was deleted. The numbers will be recomputed."
    ]
    assert Slot.objects.filter(assessor=bob, purpose="void", state="done").count() == 4
    assert Slot.objects.filter(campaign=campaign, purpose="judge", state="open").count() == 84
    assert Judgment.objects.filter(assessor=bob).count() == 4
    event = Event.objects.get(verb="requeued")
    assert event.actor.username == "alice"
    assert event.detail["n_slots"] == 4
    assert Job.objects.filter(kind="estimate", state="queued").exists()
    assert "There is no judgment to request again" in page(alice, "console:assessor", campaign.pk, bob.pk)
    answer = post(alice, "console:requeue", campaign.pk, bob.pk, confirmation="bob")
    assert said(answer)[-1] == "There was no judgment to request again."


@pytest.mark.parametrize("typed", ["", "Bob", "dora", "bob; drop", NUL, LONG])
def test_without_the_right_name_nothing_is_set_aside(alice, campaign, bob, typed):
    give(bob, slots(campaign)[0], 1)
    answer = post(alice, "console:requeue", campaign.pk, bob.pk, confirmation=typed, status=400)
    assert "No judgment was requested again" in words(answer)
    assert 'aria-invalid="true"' in words(answer)
    assert not Slot.objects.filter(purpose="void").exists()
    assert not Job.objects.exists()


# -- what assessors say -------------------------------------------------------------------------------------


def test_the_campaign_counts_why_documents_were_not_judged_and_names_the_hardest(alice, campaign, bob, dora):
    assert "No assessor has answered “cannot judge”." in page(alice, "console:said", campaign.pk)
    hard, other, late = slots(campaign, number=1)[:3]
    cannot_judge(bob, hard, "unreadable")
    cannot_judge(dora, hard, "unreadable")
    cannot_judge(bob, other, "topic")
    second_thought = cannot_judge(bob, late, "language")
    revise(assessor=bob, token=second_thought.lease_token, client_token=uuid.uuid4(), grade=1)
    text = page(alice, "console:said", campaign.pk)
    assert '<th scope="row">The document cannot be read</th><td class="number">2</td>' in text
    assert '<th scope="row">The topic is unclear</th><td class="number">1</td>' in text
    assert "I do not understand its language" not in text  # a grade came afterwards
    found = text[text.index("most often returned") : text.index("No comments yet")]
    assert found.index(hard.item.document.doc_id) < found.index(other.item.document.doc_id)
    assert late.item.document.doc_id not in found


def test_only_the_ten_hardest_are_named(alice, campaign, bob):
    for slot in slots(campaign, number=1)[:12]:
        cannot_judge(bob, slot, "other")
    text = page(alice, "console:said", campaign.pk)
    table = text[text.index("at most ten") :]
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
    text = page(alice, "console:said", campaign.pk)
    assert text.count('<td class="comment">') == 2
    assert text.index("What is asked?") < text.index("line two")
    assert "&lt;script&gt;alert(1)&lt;/script&gt;<br>line two" in text
    assert '<span class="number">3</span>' in text
    assert "<script>alert" not in text


def test_more_obstacles_comments_and_assessors_take_no_more_statements(alice, campaign):
    people = assessors(campaign, 4)
    cannot_judge(people[0], slots(campaign)[0], "topic", comment="why?")
    few = statements(alice, "console:said", campaign.pk)
    for number, slot in enumerate(slots(campaign, number=1)[1:31]):
        cannot_judge(people[number % 4], slot, "other", comment=f"comment {number}")
    assert statements(alice, "console:said", campaign.pk) == few


def test_what_happened_is_said_in_words():
    detail = {"assessor": "bob", "n_slots": 2, "quota": None, "team": "", "fields": ["name", "guidelines"]}
    assert event_words(detail) == "bob, 2 slots, name, guidelines"
    assert event_words({}) == ""
