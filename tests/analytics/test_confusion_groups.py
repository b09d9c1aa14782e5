"""Assessor accuracy by group, as recomputations store it; the ways of joining grades; the page that shows both."""

import numpy as np
import pytest
from django.urls import reverse
from small_campaign import (
    DOCUMENTS,
    RUNS,
    TOPICS,
    doc_id,
    give,
    judge_all,
    judge_audit,
    make_assessor,
    make_campaign,
    returned,
    slots,
    true_grade,
    truth_of,
)

from analytics.frames import campaign_arrays
from analytics.models import ConfusionEstimate
from analytics.services.label_classes import bronze_classes, used_score
from analytics.services.recomputation import recompute
from judging.label_aggregation import label_score_keys
from sampling.services.auditing import audit
from touchstone.models import User

pytestmark = pytest.mark.django_db
Scope = ConfusionEstimate.Scope
PAIRS = [(topic, doc_id(t, d)) for t, topic in enumerate(TOPICS) for d in range(DOCUMENTS)]
N_RUNS = {pair: sum(pair in returned(run) for run in range(len(RUNS))) for pair in PAIRS}


@pytest.fixture
def campaign(tmp_path):
    return make_campaign(tmp_path)


def wrong_on_popular(slot, place):
    """The second assessor is one grade off wherever all three runs return the document."""
    pair = (slot.item.topic.topic_id, slot.item.document.doc_id)
    return (truth_of(slot) + 1) % 4 if place == 1 and N_RUNS[pair] == 3 else truth_of(slot)


def judged(campaign, grade=wrong_on_popular, tiers=("bronze", "silver")):
    people = [make_assessor(campaign, name, tier) for name, tier in zip(("ann", "ben"), tiers, strict=True)]
    judge_all(campaign, people, grade)
    gold = make_assessor(campaign, "greta", "gold")
    audit(campaign=campaign, items_each_time=42, items_in_total=42, seed=5)
    judge_audit(campaign, gold)
    return people


def accuracies(computation, scope):
    rows = computation.confusions.filter(scope=scope).order_by("id")
    return {row.key: row.accuracy for row in rows}


def test_groups_are_told_apart_where_errors_are(campaign):
    judged(campaign)
    computation = recompute(campaign=campaign)
    n_popular = sum(n == 3 for n in N_RUNS.values())
    right = 1 - n_popular / len(PAIRS)
    assert accuracies(computation, Scope.TIER) == pytest.approx({"bronze": 1.0, "silver": right})
    assert accuracies(computation, Scope.POOLED) == pytest.approx({"all": (1 + right) / 2})
    popularity = computation.confusions.filter(scope=Scope.POPULARITY).order_by("id")
    last = list(popularity)[-1]
    assert (last.label, last.accuracy) == ("returned by 3 runs", 0.5)
    assert [row.accuracy for row in popularity][:-1] == [1.0] * (popularity.count() - 1)
    assert set(accuracies(computation, Scope.TOPIC)) == set(TOPICS)


def test_counts_of_a_scope_sum_to_all_counts_and_rebuild_from_the_log(campaign):
    judged(campaign)
    computation = recompute(campaign=campaign)
    grades = [true_grade(*pair) for pair in PAIRS]
    of_grade = 2 * np.bincount(grades, minlength=4)  # two judgments an item, all audited with certainty
    for scope in (Scope.ASSESSOR, Scope.TIER, Scope.POOLED, Scope.POPULARITY, Scope.PERIOD, Scope.TOPIC):
        rows = computation.confusions.filter(scope=scope)
        total = sum(np.array(row.counts) for row in rows)
        assert total.sum(axis=1) == pytest.approx(of_grade), scope
    again = recompute(campaign=campaign)
    for old, new in zip(computation.confusions.order_by("id"), again.confusions.order_by("id"), strict=True):
        assert (old.scope, old.key, old.counts) == (new.scope, new.key, new.counts)


def test_periods_follow_the_time_of_judging(campaign):
    """Ann judges everything first, then Ben, who is always wrong."""
    people = [make_assessor(campaign, name) for name in ("ann", "ben")]
    for place, person in enumerate(people):
        for slot in slots(campaign, number=place + 1):
            give(person, slot, (truth_of(slot) + place) % 4)
    gold = make_assessor(campaign, "greta", "gold")
    audit(campaign=campaign, items_each_time=42, items_in_total=42, seed=5)
    judge_audit(campaign, gold)
    periods = accuracies(recompute(campaign=campaign), Scope.PERIOD)
    assert periods == {"1": 1.0, "2": 1.0, "3": 0.0, "4": 0.0}


def test_joined_grades_share_a_tie(campaign):
    judged(campaign)
    majority = recompute(campaign=campaign).confusions.get(scope=Scope.AGGREGATE)
    n_popular = sum(n == 3 for n in N_RUNS.values())
    assert majority.key == "majority"
    assert majority.accuracy == pytest.approx(1 - n_popular / 2 / len(PAIRS))


def test_without_gold_there_is_a_row_and_no_accuracy(campaign):
    judge_all(campaign, [make_assessor(campaign, name) for name in ("ann", "ben")])
    computation = recompute(campaign=campaign)
    pooled = computation.confusions.get(scope=Scope.POOLED)
    assert (pooled.accuracy, pooled.matrix) == (None, [None] * 4)
    assert not computation.confusions.filter(
        scope__in=[Scope.TOPIC, Scope.POPULARITY, Scope.AGGREGATE]
    ).exists()
    assert "no audit is complete yet" in computation.assumption["refusal"]


def test_the_assumption_is_tested_and_too_little_gold_is_a_refusal_in_words(campaign):
    judged(campaign)
    stored = recompute(campaign=campaign).assumption
    assert stored["refusal"].startswith("42 audited items; at least 50")
    assert stored["words"].startswith("Whether judges err alike on all documents of one grade was not tested")


# -- bronze scores ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("score", [key for key in label_score_keys() if key != "machine"])
def test_the_corrected_value_is_the_truth_under_every_score_when_all_is_audited(campaign, score):
    judged(campaign)
    campaign.bronze_score = score
    campaign.save()
    computation = recompute(campaign=campaign)
    rows = computation.estimates.filter(measure="DCG@10", run_b=None)
    truth = {row.run_id: row.value for row in rows.filter(method="true")}
    corrected = {row.run_id: row.value for row in rows.filter(method="corrected")}
    assert corrected == pytest.approx(truth)
    # no gold checks here: matrices measured on them cannot be had, and the number says which score it used
    assert computation.bronze_score == ("vote-share" if score == "empirical-bayes" else score)


def test_scores_that_nobody_gave_fall_back_to_the_mean_of_grades(campaign):
    judged(campaign)
    campaign.bronze_score = "machine"
    arrays = campaign_arrays(campaign)
    assert used_score(arrays, campaign) == "vote-share"
    campaign.bronze_score = "vote-share"
    means = [
        (2 * true_grade(*pair) + (0 if N_RUNS[pair] < 3 else (1 if true_grade(*pair) < 3 else -3))) / 2
        for pair in sorted(PAIRS)
    ]
    assert bronze_classes(arrays, campaign).tolist() == [round(12 * mean) for mean in means]


def test_one_label_takes_the_grade_that_was_given_first(campaign):
    people = [make_assessor(campaign, name) for name in ("ann", "ben")]
    for place in (1, 0):  # Ben, who has the second slots, comes first
        for slot in slots(campaign, number=place + 1):
            give(people[place], slot, 3 * place)
    campaign.bronze_score = "one-label"
    assert set(bronze_classes(campaign_arrays(campaign), campaign).tolist()) == {36}


def test_a_fitted_score_trusts_the_assessor_who_agrees_with_the_gold_checks(tmp_path):
    """With gold checks anchored, the one who is always right there decides where two assessors differ."""
    campaign = make_campaign(tmp_path, budget=15, gold_check_rate=0.1)
    people = [make_assessor(campaign, name) for name in ("ann", "ben")]
    for slot in slots(campaign, "check"):
        if not slot.item.slots.filter(assessor__in=people, state="done").exists():
            give(people[0], slot, truth_of(slot))
    for slot in slots(campaign, "check", state="open"):
        if not slot.item.slots.filter(assessor=people[1], state="done").exists():
            give(people[1], slot, (truth_of(slot) + 2) % 4)
    judge_all(campaign, people, lambda slot, place: (truth_of(slot) + 2 * place) % 4)
    arrays = campaign_arrays(campaign)
    true = [
        true_grade(*pair) for pair in arrays.frame[arrays.judged].select("topic_id", "doc_id").iter_rows()
    ]
    campaign.bronze_score = "vote-share"
    votes = bronze_classes(arrays, campaign)
    campaign.bronze_score = "dawid-skene"
    assert used_score(arrays, campaign) == "dawid-skene"
    fitted = bronze_classes(arrays, campaign)
    wanted = 12 * np.array(true)
    assert np.abs(fitted - wanted).mean() < np.abs(votes - wanted).mean()


# -- the page -----------------------------------------------------------------------------------------------


def page(client, campaign, role="manager"):
    user = User.objects.create_user(f"{role}-{campaign.pk}", password="x", role=role)
    client.force_login(user)
    return client.get(reverse("console:errors", args=[campaign.pk]))


def test_the_page_shows_groups_and_says_when_there_is_nothing_yet(client, campaign):
    assert "No numbers yet" in page(client, campaign).content.decode()
    judged(campaign)
    recompute(campaign=campaign)
    url = reverse("console:errors", args=[campaign.pk])
    text = client.get(url).content.decode()
    for words in (
        "By how many runs return the document",
        "returned by 3 runs",
        "By topic",
        "majority of an item",
    ):
        assert words in text
    assert "50 %" in text


def test_the_page_needs_a_manager(client, campaign):
    assert page(client, campaign, role="researcher").status_code == 404  # not even that it is there
