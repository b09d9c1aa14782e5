"""The grades of checks on the pages of a campaign's settings, and in the API."""

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from manager_requests import page, post
from quick_flush import unguarded
from small_campaign import give, make_assessor, make_collection, make_undrawn, slots

from judging.models import Campaign, GoldAnswer
from judging.services.campaigns import open_campaign
from judging.services.check_gold import checks_by_grade, ordinary_grades
from sampling.questions import Design
from sampling.services.drawing import draw
from touchstone.models import Event

pytestmark = pytest.mark.django_db

NEW = {
    "name": "A campaign", "judgments_per_item": 2, "lease_seconds": 600, "gold_check_rate": 0.1,
    "gold_check_exposures": 7, "decoys_per_check": 2, "break_minutes": 30, "grades": "0 | No | 0\n1 | Yes | 1",
    "relevant_grade": 1,
}  # fmt: skip


def rare(folder, **fields):
    """Return an undrawn campaign with 42 gold answers, a seventh of grade 3, the others of grade 0."""
    campaign = make_undrawn(folder, gold_check_rate=0.5, decoys_per_check=0, **fields)
    with unguarded(["judging_goldanswer"]):
        GoldAnswer.objects.update(grade=0)
        GoldAnswer.objects.filter(document__doc_id__regex="(04|09)$").update(grade=3)
    return campaign


def rows(text):
    """Return the table of the choices: AUC and number of checks by name."""
    body = text.split('aria-label="Grades of checks"')[1].split("</tbody>")[0].split("<tbody>")[1]
    cells = [row.split("</tr>")[0] for row in body.split("<tr>")[1:]]
    found = {}
    for row in cells:
        name, auc, n = (part.split("</t")[0].rpartition(">")[2] for part in row.split("<t")[1:])
        found[name] = (auc, n)
    return found


def test_a_new_campaign_has_at_most_and_may_choose_another(alice, tmp_path):
    collection = make_collection(tmp_path)
    post(alice, "console:manage-campaign-new", collection=collection.pk, **NEW)
    assert Campaign.objects.get().check_grades == "at-most"
    fields = {**NEW, "name": "Another", "check_grades": "as-drawn"}
    post(alice, "console:manage-campaign-new", collection=collection.pk, **fields)
    assert Campaign.objects.get(name="Another").check_grades == "as-drawn"
    fields = {**NEW, "name": "Third", "check_grades": "by-luck"}
    answer = post(alice, "console:manage-campaign-new", status=400, collection=collection.pk, **fields)
    assert "by-luck is not one of the available choices" in answer.content.decode()


def test_a_campaign_from_before_the_choice_is_in_turn(db, tmp_path):
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT column_default FROM information_schema.columns "
            "WHERE table_name = 'judging_campaign' AND column_name = 'check_grades'"
        )
        assert cursor.fetchone()[0].startswith("'in-turn'")


def test_each_choice_shows_what_it_tells_and_the_checks_of_the_rarest_grade(alice, tmp_path):
    """By hand: p = 6/7, 1/7; equal shares tell 1/4 + 3/7 = .679; w = .05 / .179 = .28; q = .757, .243."""
    campaign = rare(tmp_path)
    text = page(alice, "console:manage-campaign-edit", campaign.pk)
    assert rows(text) == {
        "In turn": ("0.68", "50"),
        "As drawn": ("0.50", "14"),
        "At most .55": ("0.55", "24"),
    }
    assert "Grade 3 Highly relevant, of 100 checks" in text
    assert "the grades of 42 gold answers: no draw has recorded the grades of labels yet" in text
    set_up = page(alice, "console:setup-collection", campaign.collection_id, "scale")
    assert rows(set_up)["At most .55"] == ("0.55", "24")
    assert (
        page(alice, "console:manage-campaign-new", collection=str(campaign.collection_id)).count("0.68") == 1
    )
    assert "once the collection is chosen" in page(alice, "console:manage-campaign-new")


def drawn(campaign, budget, seed=None):
    return draw(campaign=campaign, design=Design("pool", (), "DCG@10", 10, budget), seed=seed)


def test_after_a_draw_the_page_shows_what_the_draw_recorded_and_says_so(alice, tmp_path):
    campaign = rare(tmp_path)
    drawn(campaign, 12, seed=20)
    open_campaign(campaign=campaign, actor=None)
    ann = make_assessor(campaign, "ann")
    for slot in slots(campaign, number=1):
        give(ann, slot, 1)
    n_checks = campaign.slots.filter(purpose="check", number=1).count()
    names = ("console:manage-campaign-edit", campaign.pk), ("console:setup-step", campaign.pk, "scale")
    for name, *arguments in names:
        text = page(alice, name, *arguments)
        assert "the grades of the gold answers when batch 1 was drawn" in text
        # 36 in 42 are of grade 0: at most .55, up to the one check by which so few miss their shares.
        assert f"The {n_checks} checks with that batch: AUC 0.5" in text
    made = drawn(campaign, 16)
    more = sum(map(sum, made.parameters["check_grades"]["numbers"].values()))
    assert more > 0
    for name, *arguments in names:
        text = page(alice, name, *arguments)
        assert "the aggregated labels when batch 2 was drawn" in text
        assert rows(text)["In turn"][0] == "1.00"
        # All labels are grade 1, of which there is no gold: any other grade tells a check for certain.
        assert f"The {n_checks + more} checks with that batch: AUC 1.00" in text


def test_no_page_of_the_settings_reads_judgments_or_slots(alice, tmp_path):
    """What is read for a page does not grow with what is judged; the control is what a draw reads."""
    campaign = rare(tmp_path)
    drawn(campaign, 12, seed=20)

    def has_read(captured):
        return [one["sql"] for one in captured if re.search("judging_(judgment|slot)", one["sql"] or "")]

    for name, *arguments in (
        ("console:manage-campaign-edit", campaign.pk),
        ("console:setup-step", campaign.pk, "scale"),
    ):
        with CaptureQueriesContext(connection) as captured:
            assert 'aria-label="Grades of checks"' in page(alice, name, *arguments)
        assert has_read(captured) == []
    with CaptureQueriesContext(connection) as captured:
        assert ordinary_grades(campaign).n == 42
        checks_by_grade(campaign)
    assert len(has_read(captured)) == 2


def test_without_gold_there_is_nothing_to_compare(alice, tmp_path):
    campaign = make_undrawn(tmp_path, gold=False)
    for name, *arguments in (
        ("console:manage-campaign-edit", campaign.pk),
        ("console:setup-collection", campaign.collection_id, "scale"),
    ):
        text = page(alice, name, *arguments)
        assert "no checks, and nothing to compare" in text
        assert 'aria-label="Grades of checks"' not in text


def test_the_choice_may_change_after_the_draw_and_is_recorded(alice, campaign):
    assert campaign.check_grades == "at-most"
    fields = {"name": campaign.name, "guidelines": "", "lease_seconds": 1800, "break_minutes": 45}
    post(alice, "console:manage-campaign-edit", campaign.pk, **fields, highlights_terms="on")
    assert Campaign.objects.get(pk=campaign.pk).check_grades == "at-most"
    post(
        alice,
        "console:manage-campaign-edit",
        campaign.pk,
        **fields,
        highlights_terms="on",
        check_grades="in-turn",
    )
    assert Campaign.objects.get(pk=campaign.pk).check_grades == "in-turn"
    assert Event.objects.get(verb="changed").detail["fields"] == ["check_grades"]
    assert "In turn (" in page(alice, "console:setup-step", campaign.pk, "gold")
