"""Forms of campaigns and collections: what may be chosen, what may change, what is refused."""

import pytest
from manager_requests import NUL, page, post, said, words
from small_campaign import lease, make_collection, slots

from judging.models import (
    Campaign,
    Collection,
    Import,
    Lease,
)
from judging.services.campaigns import create_campaign
from touchstone.models import Event

pytestmark = pytest.mark.django_db


def new_campaign(collection: Collection, **changes: object) -> dict[str, object]:
    return {
        "collection": collection.pk, "name": "A campaign", "judgments_per_item": 2, "lease_seconds": 600,
        "gold_check_rate": 0.1, "gold_check_exposures": 7, "decoys_per_check": 2, "highlights_terms": "on",
        "break_minutes": 30, "machine_prompt": "{topic_title}?\r\n{document_text}", "grades": "0 | No | 0\n1 | Yes | 1",
        "relevant_grade": 1,
    } | changes  # fmt: skip


def test_a_new_campaign_keeps_what_was_chosen_for_checks_the_screen_and_machines(alice, tmp_path):
    collection = make_collection(tmp_path)
    post(alice, "console:manage-campaign-new", **new_campaign(collection))
    made = Campaign.objects.get()
    assert (made.gold_check_exposures, made.decoys_per_check, made.break_minutes) == (7, 2, 30)
    assert made.highlights_terms is True
    assert made.machine_prompt == "{topic_title}?\n{document_text}"
    fields = new_campaign(collection, name="Another")
    del fields["highlights_terms"]
    post(alice, "console:manage-campaign-new", **fields)
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
    answer = post(alice, "console:manage-campaign-new", status=400, **fields)
    assert error in words(answer)
    assert not Campaign.objects.exists()


def changed(**changes: object) -> dict[str, object]:
    return {"name": "Renamed", "guidelines": "", "lease_seconds": 900, "break_minutes": 45} | changes


def test_what_may_change_after_the_draw_is_changed_and_recorded_and_nothing_else_is(alice, campaign):
    before = Campaign.objects.values().get(pk=campaign.pk)
    text = page(alice, "console:manage-campaign-edit", campaign.pk)
    assert "stored judgments refer to these labels" in text
    assert "the probabilities were recorded before the first judgment" in text
    smuggled = {
        "judgments_per_item": 9,
        "gold_check_rate": 0.5,
        "state": "closed",
        "collection": "x",
        "is_simulated": "on",
    }
    post(
        alice, "console:manage-campaign-edit", campaign.pk, **changed(guidelines="# New\r\nrules", **smuggled)
    )
    after = Campaign.objects.values().get(pk=campaign.pk)
    different = {name: after[name] for name in after if after[name] != before[name]}
    assert different == {
        "name": "Renamed", "guidelines": "# New\nrules", "lease_seconds": 900, "highlights_terms": False
    }  # fmt: skip
    event = Event.objects.get(verb="changed")
    assert event.detail["fields"] == ["guidelines", "highlights_terms", "lease_seconds", "name"]
    text = page(alice, "console:campaign", campaign.pk)
    assert "guidelines, highlights_terms, lease_seconds, name" in text


def test_changing_nothing_records_nothing(alice, campaign):
    Campaign.objects.filter(pk=campaign.pk).update(guidelines="one\ntwo")
    fields = {
        "name": campaign.name, "guidelines": "one\r\ntwo", "lease_seconds": campaign.lease_seconds,
        "break_minutes": campaign.break_minutes, "highlights_terms": "on", "machine_prompt": "",
    }  # fmt: skip
    answer = post(alice, "console:manage-campaign-edit", campaign.pk, **fields)
    assert said(answer) == ["Nothing was changed."]
    assert not Event.objects.filter(verb="changed").exists()


def test_a_change_does_not_write_over_what_somebody_else_changed_meanwhile(alice, campaign):
    Campaign.objects.filter(pk=campaign.pk).update(state="closed")
    post(alice, "console:manage-campaign-edit", campaign.pk, **changed())
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
        ({"pause_below": "0.5"}, "above 0 and at most 0.1"),
        ({"guidelines": "g" * 100_001}, "at most 100000 characters"),
    ],
)
def test_a_wrong_change_is_explained_and_the_page_keeps_the_campaigns_name(alice, campaign, change, error):
    answer = post(alice, "console:manage-campaign-edit", campaign.pk, status=400, **changed(**change))
    assert error in words(answer)
    assert f"{campaign.name}</a> › Change" in words(answer)
    assert Campaign.objects.get(pk=campaign.pk).name == campaign.name


def test_two_campaigns_never_share_a_name(alice, campaign):
    create_campaign(
        collection=campaign.collection, name="taken", user=None, grades=[(0, "No", 0), (1, "Yes", 1)]
    )
    answer = post(alice, "console:manage-campaign-edit", campaign.pk, status=400, **changed(name="taken"))
    assert "already taken" in words(answer)


def test_a_wrong_change_of_a_collection_is_explained_on_its_page_under_its_old_name(alice):
    made = Collection.objects.create(name="News")
    Collection.objects.create(name="Taken")
    before = set(Collection.objects.values_list("pk", "name"))
    for name, error in (
        ("Taken", "already taken"),
        ("", "required"),
        (NUL, "Null characters"),
        ("n" * 101, "at most 100"),
    ):
        answer = post(alice, "console:manage-collection-edit", made.pk, status=400, name=name)
        assert error in words(answer)
        assert "<h1>News</h1>" in words(answer)
        assert '<details class="more" open>' in words(answer)
    assert set(Collection.objects.values_list("pk", "name")) == before


def test_an_upload_without_files_is_refused_on_the_page_of_a_collection(alice):
    made = Collection.objects.create(name="News")
    answer = post(alice, "console:manage-collection", made.pk, status=400)
    assert "Nothing was uploaded" in words(answer)
    assert not Import.objects.filter(state="looked-at").exists()


def test_the_fixture_of_leases_is_real(campaign, bob):
    """What these tests lease by hand is what a claim leases: a slot with its lease."""
    token = lease(bob, slots(campaign)[0])
    assert Lease.objects.get(pk=token).slot.token == token
