"""Audits of a small real campaign: the recorded probabilities."""

import pytest
from small_campaign import DOCUMENTS, TOPICS, give, judge_all, make_assessor, make_campaign, slots

from sampling.models import AuditEntry
from sampling.services.auditing import audit

pytestmark = pytest.mark.django_db


@pytest.fixture
def campaign(tmp_path):
    return make_campaign(tmp_path, kind="pair")


@pytest.fixture
def people(campaign):
    return [make_assessor(campaign, "ann"), make_assessor(campaign, "ben")]


def entries(made):
    return list(AuditEntry.objects.filter(audit=made).select_related("item__document"))


def test_as_many_items_as_wanted_are_expected_and_all_when_all_are_wanted(campaign, people):
    judge_all(campaign, people)
    half = audit(campaign=campaign, items_each_time=21, items_in_total=1000, seed=5)
    assert sum(entry.inclusion_probability for entry in entries(half)) == pytest.approx(21)
    assert min(entry.inclusion_probability for entry in entries(half)) > 0
    whole = audit(campaign=campaign, items_each_time=21, items_in_total=1000)
    assert [entry.inclusion_probability for entry in entries(whole)] == [1.0] * len(TOPICS) * DOCUMENTS
    assert whole.n_selected == len(TOPICS) * DOCUMENTS
    assert audit(campaign=campaign, items_each_time=21, items_in_total=1000) is None


def test_items_that_tell_the_runs_apart_are_audited_rather_than_others(campaign, people):
    judge_all(campaign, people)
    made = audit(campaign=campaign, items_each_time=12, items_in_total=12, seed=5)
    by_document: dict = {}
    for entry in entries(made):
        by_document.setdefault(int(entry.item.document.doc_id[-2:]), entry.inclusion_probability)
    # run0 has document 0 at rank 1 and run2 not at all; document 9 is last of run0 and sixth of run2.
    assert by_document[0] > by_document[9] > 0


def test_while_no_judged_item_tells_the_runs_apart_the_audit_is_even(tmp_path):
    campaign = make_campaign(tmp_path, kind="pair", pair=("run0", "run1"))
    people = [make_assessor(campaign, "ann"), make_assessor(campaign, "ben")]
    judge_all(campaign, people, item__document__doc_id__regex="(12|13)$")  # neither run returns these
    made = audit(campaign=campaign, items_each_time=3, items_in_total=42, seed=5)
    assert [entry.inclusion_probability for entry in entries(made)] == pytest.approx([0.5] * 6)


def test_a_seed_that_is_the_draws_is_refused(campaign, people):
    judge_all(campaign, people)
    with pytest.raises(ValueError, match="must differ from the draw's"):
        audit(campaign=campaign, items_each_time=5, items_in_total=5, seed=campaign.draws.get().seed)


def test_without_a_completely_judged_item_there_is_no_audit(campaign, people):
    give(people[0], slots(campaign)[0], 1)
    assert audit(campaign=campaign, items_each_time=5, items_in_total=5) is None
