"""The manager's page of leases: what is listed, what is released, what it costs."""

import re
import uuid
from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone
from manager_requests import LONG, NUL, assessors, page, post, said, statements
from quick_flush import unguarded
from small_campaign import lease, slots

from judging.models import (
    Assessor,
    Document,
    Slot,
    Topic,
)
from judging.services.assign import submit
from touchstone.models import Event

pytestmark = pytest.mark.django_db


def expire(*tokens: uuid.UUID) -> None:
    Slot.objects.filter(token__in=tokens).update(lease_until=timezone.now() - timedelta(minutes=5))


def test_leases_are_listed_oldest_first_with_who_what_and_whether_they_are_over(alice, campaign, bob, dora):
    first, second = slots(campaign, number=1)[:2]
    old, new = lease(bob, first), lease(dora, second)
    Slot.objects.filter(token=old).update(leased_at=timezone.now() - timedelta(hours=3))
    expire(old)
    text = page(alice, "console:manage-leases", campaign.pk)
    assert "2 documents are with an assessor, 1 of them past the time limit" in text
    assert text.index("bob</a>") < text.index("dora</a>")
    assert "3 hours ago" in text
    assert text.count('<span class="tag warn">expired</span>') == 1
    assert "Need t0" in text  # the topic's title
    assert first.item.document.doc_id in text  # these documents have no titles
    for token in (old, new):
        assert reverse("console:manage-lease-release", args=[campaign.pk, token]) in text


def test_titles_of_any_length_and_kind_are_shown_as_text(alice, campaign, bob):
    slot = slots(campaign)[0]
    title = "<img src=x onerror=alert(1)>" + "&" * 200
    with unguarded(["judging_document", "judging_topic"]):
        Document.objects.filter(pk=slot.item.document_id).update(title=title)
        Topic.objects.filter(pk=slot.topic_id).update(title="<b>" + "w" * 500)
    lease(bob, slot)
    text = page(alice, "console:manage-leases", campaign.pk)
    assert "<img src=x" not in text
    assert "&lt;img src=x onerror=alert(1)&gt;" + "&amp;" * 91 + "…" in text  # 28 + 91 + 1 characters
    assert "&lt;b&gt;" + "w" * 116 + "…" in text


def test_the_page_says_what_releasing_does(alice, campaign, bob):
    lease(bob, slots(campaign)[0])
    text = page(alice, "console:manage-leases", campaign.pk)
    assert "a judgment that the holder still submits is kept" in text
    assert "Release all expired" not in text  # none is


def test_without_leases_the_page_says_so(alice, campaign):
    assert "No open documents" in page(alice, "console:manage-leases", campaign.pk)


def test_a_released_document_is_free_and_what_its_holder_still_sends_is_kept(alice, campaign, bob):
    slot = slots(campaign)[0]
    token = lease(bob, slot)
    answer = post(alice, "console:manage-lease-release", campaign.pk, token)
    assert said(answer) == ["Released. A judgment that bob still submits is kept."]
    slot.refresh_from_db()
    assert (slot.state, slot.assessor, slot.token) == ("open", None, None)
    event = Event.objects.get(verb="released")
    assert event.actor.username == "alice"
    assert event.detail["assessor"] == bob.user_id
    late = submit(assessor=bob, token=token, client_token=uuid.uuid4(), grade=2)
    assert late.slot is not None  # the place was still free, so it counts


def test_releasing_twice_or_after_the_judgment_changes_nothing(alice, campaign, bob, dora):
    slot = slots(campaign)[0]
    token = lease(bob, slot)
    post(alice, "console:manage-lease-release", campaign.pk, token)
    theirs = lease(dora, slot)  # the same place, meanwhile with somebody else
    answer = post(alice, "console:manage-lease-release", campaign.pk, token)
    assert said(answer)[-1] == "Nothing to release: the document was judged or released meanwhile."
    assert Slot.objects.get(token=theirs).assessor == dora
    submit(assessor=dora, token=theirs, client_token=uuid.uuid4(), grade=1)
    post(alice, "console:manage-lease-release", campaign.pk, theirs)
    assert Slot.objects.get(pk=slot.pk).state == "done"
    assert Event.objects.filter(verb="released").count() == 1


def test_all_expired_leases_are_released_and_no_other(alice, campaign, bob, dora):
    over = [lease(bob, slot) for slot in slots(campaign, number=1)[:3]]
    running = lease(dora, slots(campaign, number=2)[0])
    expire(*over)
    assert "Release all expired" in page(alice, "console:manage-leases", campaign.pk)
    answer = post(alice, "console:manage-leases-release", campaign.pk)
    assert said(answer) == ["3 expired leases were released."]
    assert list(Slot.objects.filter(state="leased").values_list("token", flat=True)) == [running]
    answer = post(alice, "console:manage-leases-release", campaign.pk)
    assert said(answer)[-1] == "No lease has expired."


def test_at_most_so_many_leases_are_shown_and_the_total_is_said(alice, campaign, bob, monkeypatch):
    monkeypatch.setattr("console.manager.campaigns.SHOWN_LEASES", 3)
    for slot in slots(campaign, number=1)[:5]:
        lease(bob, slot)
    text = page(alice, "console:manage-leases", campaign.pk)
    assert "3 of 5 are shown" in text
    assert text.count(">Release</button>") == 3


SECTIONS = {
    "Items": ["items", "judgments", "adjudication", "manage-leases"],
    "People": ["assessors", "manage-topics", "manage-entry", "messages", "said"],
    "Audits": ["audits", "topic-checks", "errors"],
    "Settings": ["manage-campaign-edit", "events"],
}


def links(text, label):
    """Return the links of the navigation with this label: the end of the address, and aria-current."""
    nav = text.partition(f'aria-label="{label}"')[2].partition("</nav>")[0]
    return re.findall(r'<a href="([^"]+)"(?: aria-current="(\w+)")?>([^<]+)</a>', nav)


@pytest.mark.parametrize("section", SECTIONS)
def test_each_section_of_a_campaign_has_its_pages(alice, campaign, section):
    own = [reverse(f"console:{name}", args=[campaign.pk]) for name in SECTIONS[section]]
    for name, address in zip(SECTIONS[section], own, strict=True):
        text = page(alice, f"console:{name}", campaign.pk)
        first = links(text, "Sections of this campaign")
        assert [words for _, _, words in first] == [
            "Overview",
            "Items",
            "People",
            "Audits",
            "Results",
            "Settings",
        ]
        assert [words for _, current, words in first if current] == [section]
        second = links(text, "Pages of this section")
        assert [link for link, _, _ in second] == own
        assert [link for link, current, _ in second if current == "page"] == [address]


def test_the_campaign_leads_to_its_sections_and_open_documents(alice, campaign, bob):
    text = page(alice, "console:campaign", campaign.pk)
    assert [words for _, current, words in links(text, "Sections of this campaign") if current] == [
        "Overview"
    ]
    assert links(text, "Pages of this section") == []
    lease(bob, slots(campaign)[0])
    assert "1 open documents: see their assessors" in page(alice, "console:campaign", campaign.pk)


def test_fifty_leases_take_as_many_statements_as_five(alice, campaign):
    people = assessors(campaign, 10)
    free = [slot for slot in slots(campaign) if slot.number == 1] + slots(campaign, number=2)
    for person, slot in zip(people[:5], free[:5], strict=True):
        lease(person, slot)
    five = statements(alice, "console:manage-leases", campaign.pk)
    for number, slot in enumerate(free[5:50]):
        lease(people[(number + number // 42) % 10], slot)
    assert Slot.objects.filter(state="leased").count() == 50
    assert statements(alice, "console:manage-leases", campaign.pk) == five


def test_pausing_takes_back_what_is_open_and_says_so(alice, campaign, bob):
    token = lease(bob, slots(campaign)[0])
    assert "Pausing an assessor reassigns their open documents at once" in page(
        alice, "console:assessors", campaign.pk
    )
    where = reverse("console:manage-assessor-status", args=[campaign.pk, bob.pk])
    assert "Open documents were released at once" in said(alice.post(where, {"status": "suspended"}))[0]
    assert not Slot.objects.filter(token=token).exists()
    for status in ("", "removed", NUL, LONG):
        assert alice.post(where, {"status": status}).status_code == 302
    assert Assessor.objects.get(pk=bob.pk).status == "suspended"
    assert said(alice.post(where, {"status": "active"}))[-1] == "bob can judge again."
