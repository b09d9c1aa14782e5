"""The completion code, the market's names, and consent."""

import base64

import pytest
from django.apps import apps
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.urls import reverse
from entry_campaign import BOTH_SPELLINGS, WORKER, come_in, hit_page, set_entry, start_of, study_path, text_of
from small_campaign import give, make_assessor, make_campaign, slots, truth_of

from judging.models import Assessor, Campaign, Participant
from judging.services import crowd, entry
from touchstone.models import Event, User

pytestmark = pytest.mark.django_db


def judge(assessor, n):
    """Let the assessor judge n items, those not judged yet."""
    seen = set(assessor.judgments.values_list("item_id", flat=True))
    waiting = [slot for slot in slots(assessor.campaign, state="open", number=1) if slot.item_id not in seen]
    for slot in waiting[:n]:
        give(assessor, slot, truth_of(slot))


# -- the code -------------------------------------------------------------------------------------------------


def completed(client, campaign):
    return client.get(reverse("judging:complete", args=[campaign.pk]))


def test_the_code_of_a_study_comes_with_the_last_judgment_and_not_before(client, study_campaign):
    client.post(study_path(study_campaign), BOTH_SPELLINGS[0])
    bob = Assessor.objects.select_related("campaign").get()
    for done in range(3):
        page = text_of(completed(client, study_campaign))
        assert "CODE77" not in page
        assert f"You have judged {done} of 3" in page
        judge(bob, 1)
    page = text_of(completed(client, study_campaign))
    assert "CODE77" in page
    assert 'href="https://app.market.example/done?cc=CODE77"' in page
    assert Participant.objects.get().completed_at is not None
    assert Event.objects.filter(verb="completed", subject=f"assessor:{bob.pk}").count() == 1
    completed(client, study_campaign)
    assert Event.objects.filter(verb="completed").count() == 1


def test_a_hits_code_is_the_workers_own_and_the_manager_learns_whose_it_is(hit_campaign, manager):
    codes = {}
    for worker in ("A1", "A2"):
        client, _ = come_in(hit_campaign, workerId=worker)
        judge(Participant.objects.select_related("assessor__campaign").get(participant=worker).assessor, 3)
        codes[worker] = completed(client, hit_campaign).context["completion"].code
    assert len(set(codes.values())) == 2
    page = text_of(
        manager.post(
            reverse("console:entry-codes", args=[hit_campaign.pk]),
            {"codes-codes": f"{codes['A2'].lower()}\nAAAAA-AAAAA"},
        )
    )
    row = page.partition("Participants by completion code.")[2]
    assert "<td>A2</td>" in row
    assert "3</a> of 3</td>" in row
    assert "<td>A1</td>" not in row
    assert "unknown" in row


def test_the_manager_compares_who_came_with_the_markets_list(study_campaign, manager, client):
    client.post(study_path(study_campaign), BOTH_SPELLINGS[0])
    bob = Assessor.objects.select_related("campaign").get()
    judge(bob, 2)
    page = text_of(manager.get(reverse("console:manage-entry", args=[study_campaign.pk])))
    row = page.partition(f'<th scope="row">{WORKER}</th>')[2].partition("</tr>")[0]
    assert "6session" in row
    assert bob.user.username in row
    assert "2</a> of 3</td>" in row
    assert "not yet" in row


def test_a_code_is_of_one_campaign_only(hit_campaign, tmp_path):
    (tmp_path / "other").mkdir()
    other = set_entry(make_campaign(tmp_path / "other"), "hit")
    assert crowd.own_code(hit_campaign, 1) != crowd.own_code(other, 1)
    assert crowd.own_code(hit_campaign, 1) == crowd.own_code(hit_campaign, 1)


def test_with_no_work_left_the_code_comes_after_one_judgment_but_not_after_none(study_campaign):
    others = [make_assessor(study_campaign, name) for name in ("ben", "bea")]
    bob_client, eve_client = Client(), Client()
    bob_client.post(study_path(study_campaign), BOTH_SPELLINGS[0])
    eve_client.post(study_path(study_campaign), {**BOTH_SPELLINGS[0], "PROLIFIC_PID": "eve"})
    bob = Assessor.objects.select_related("campaign").get(participant__participant=WORKER)
    judge(bob, 1)
    for slot in slots(study_campaign, state="open"):
        give(others[slot.number - 1], slot, truth_of(slot))
    assert "CODE77" in text_of(completed(bob_client, study_campaign))
    page = text_of(completed(eve_client, study_campaign))
    assert "CODE77" not in page
    assert "nothing to judge right now" in page


def test_a_campaign_that_closes_pays_who_has_judged_and_a_paused_worker_is_told(client, study_campaign):
    client.post(study_path(study_campaign), BOTH_SPELLINGS[0])
    bob = Assessor.objects.select_related("campaign").get()
    judge(bob, 1)
    Assessor.objects.update(status="suspended")
    page = text_of(completed(client, study_campaign))
    assert "CODE77" not in page
    assert "A manager has paused your judging" in page
    Assessor.objects.update(status="active")
    Campaign.objects.update(state="closed")
    assert "CODE77" in text_of(completed(client, study_campaign))
    answer = client.post(
        study_path(study_campaign), BOTH_SPELLINGS[0]
    )  # comes back later by the market's link
    assert answer.url == reverse("judging:complete", args=[study_campaign.pk])


def test_an_invited_assessor_needs_no_code_and_gets_none(client, study_campaign):
    bob = make_assessor(study_campaign, "bob")
    Assessor.objects.filter(pk=bob.pk).update(quota=1)
    client.force_login(bob.user)
    judge(bob, 1)
    page = text_of(completed(client, study_campaign))
    assert "Thank you" in page
    assert "CODE77" not in page


# -- the market's names ---------------------------------------------------------------------------------------


def tables_with(words):
    """Return the tables in which the words stand anywhere; sessions and signed texts are decoded first."""
    found = set()
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            name = connection.ops.quote_name(table)
            cursor.execute(f"SELECT t::text FROM {name} t")  # noqa: S608 (names of our own tables)
            for (row,) in cursor.fetchall():
                if words in row or any(words.encode() in decoded(part) for part in row.split(",")):
                    found.add(table)
    return found


def decoded(part):
    part = part.strip("()\"'").split(":")[0].lstrip(".")
    try:
        return base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except ValueError:
        return b""


def test_the_markets_names_stand_in_one_table_alone_and_erasing_empties_it(
    hit_campaign, manager, tmp_path, caplog
):
    client, answer = come_in(hit_campaign)
    bob = Participant.objects.select_related("assessor__campaign").get().assessor
    client.get(answer.url)
    judge(bob, 3)
    completed(client, hit_campaign)
    for name in (WORKER, "3ASSIGN"):
        assert tables_with(name) == {"judging_participant"}
    for kind in ("qrels", "qrels_jg", "prels"):
        call_command("export", str(hit_campaign.pk), kind, output=str(tmp_path / kind))
        assert WORKER not in (tmp_path / kind).read_text()
    assert WORKER not in caplog.text

    erase = reverse("console:entry-erase", args=[hit_campaign.pk])
    manager.post(erase)  # without the tick
    assert tables_with(WORKER) == {"judging_participant"}
    page = text_of(manager.post(erase, {"sure": "yes"}, follow=True))
    assert "Erased the market's names of 1 participant." in page.replace("&#x27;", "'")
    for name in (WORKER, "3ASSIGN"):
        assert tables_with(name) == set()
    assert bob.judgments.count() == 3
    assert Event.objects.get(verb="erased the market's names").detail == {"participants": 1}


def test_the_search_for_names_finds_one_that_is_planted(hit_campaign, client):
    User.objects.create(username=f"x{WORKER}y")
    session = client.session
    session["worker"] = WORKER
    session.save()
    assert tables_with(WORKER) == {"touchstone_user", "django_session"}
    assert "judging_participant" in {model._meta.db_table for model in apps.get_models()}


def test_who_comes_again_after_the_erasure_is_somebody_new(study_campaign, alice):
    visitor = crowd.study_visitor(BOTH_SPELLINGS[0])
    first = crowd.enter(campaign=study_campaign, visitor=visitor)
    crowd.erase_market_names(campaign=study_campaign, user=alice)
    second = crowd.enter(campaign=study_campaign, visitor=visitor)
    assert first.pk != second.pk
    crowd.erase_market_names(campaign=study_campaign, user=alice)
    assert list(Participant.objects.values_list("participant", "session")) == [("", "")] * 2


def test_addresses_with_names_leave_no_referer_and_no_copy(study_campaign, hit_campaign):
    set_entry(study_campaign, "study", completion_code="C")
    pages = [
        Client().get(study_path(study_campaign), BOTH_SPELLINGS[0]),
        Client().get(study_path(study_campaign)),
    ]
    set_entry(hit_campaign, "hit")
    pages += [hit_page(hit_campaign), Client().get(start_of(hit_campaign))]
    assert {(page["Referrer-Policy"], page["Cache-Control"]) for page in pages} == {
        ("strict-origin", "no-store")
    }


# -- consent --------------------------------------------------------------------------------------------------


def test_nothing_is_judged_before_one_agrees_and_agreeing_leads_on(client, campaign):
    bob = make_assessor(campaign, "bob")
    client.force_login(bob.user)
    Campaign.objects.update(consent="We keep **what you judge**. <script>alert(1)</script>")
    judge_path, path = (reverse(f"judging:{name}", args=[campaign.pk]) for name in ("judge", "consent"))
    assert client.get(judge_path).url == path
    page = text_of(client.get(path))
    assert "<strong>what you judge</strong>" in page
    assert "<script>alert" not in page
    assert Assessor.objects.get().consented_at is None
    assert client.post(path).url == judge_path
    agreed = Assessor.objects.get().consented_at
    assert agreed is not None
    assert client.get(judge_path).status_code == 200
    client.post(path)
    assert Assessor.objects.get().consented_at == agreed
    assert Event.objects.filter(verb="agreed", actor=bob.user).count() == 1


def test_the_records_tell_who_agreed_to_which_text(manager, campaign, client):
    bob = make_assessor(campaign, "bob")
    path = reverse("console:entry-consent", args=[campaign.pk])
    manager.post(path, {"consent-text": "First text"})
    bob = Assessor.objects.select_related("campaign", "user").get(pk=bob.pk)
    entry.agree(assessor=bob)
    manager.post(path, {"consent-text": "Second text"})
    texts = list(
        Event.objects.filter(verb="changed the consent text")
        .order_by("id")
        .values_list("detail__text", flat=True)
    )
    assert texts == [entry.text_mark("First text"), entry.text_mark("Second text")]
    assert Event.objects.get(verb="agreed").detail["text"] == texts[0]


def test_without_a_consent_text_nobody_is_asked(client, campaign):
    bob = make_assessor(campaign, "bob")
    client.force_login(bob.user)
    assert entry.next_gate(bob) is None
    assert client.get(reverse("judging:consent", args=[campaign.pk])).url == f"/judge/{campaign.pk}/"


def test_no_item_is_given_out_while_a_gate_stands_whichever_way_it_is_asked_for(client, campaign):
    bob = make_assessor(campaign, "bob")
    client.force_login(bob.user)
    Campaign.objects.update(consent="Do you agree?")
    path = reverse("judging:claim", args=[campaign.pk])
    refused = client.post(path, {}, content_type="application/json")
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/ConsentMissing")
    entry.agree(assessor=Assessor.objects.select_related("campaign", "user").get(pk=bob.pk))
    assert client.post(path, {}, content_type="application/json").json()["items"]


def test_a_crowd_worker_meets_the_consent_text_first(hit_campaign):
    Campaign.objects.update(consent="Do you agree?")
    client, answer = come_in(hit_campaign)
    assert answer.url == reverse("judging:consent", args=[hit_campaign.pk])
    assert "return the task" in text_of(client.get(answer.url))
    assert "Not done yet" in text_of(completed(client, hit_campaign))
