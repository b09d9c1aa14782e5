"""The adjudication queue: by Bayes' rule from measured errors, at a quarter or more, the first half of what matters."""

from itertools import product

import numpy as np
import pytest
import small_campaign
from small_campaign import give, judge_audit, make_assessor, make_campaign, slots, truth_of

from analytics.estimation.disputes import disputes, grade_shares
from analytics.estimation.estimate import Refusal
from analytics.estimation.relevance_errors import (
    RelevanceErrors,
    label_error_probability,
    relevance_errors,
)
from analytics.estimation.samples import Labels
from analytics.estimation.targets import TargetWeights
from analytics.frames import current_arrays
from analytics.models import DisputedItem
from analytics.services.confusions import ConfusionCounts, assessor_confusion_counts
from analytics.services.dispute_queue import newest_with_disputes
from analytics.services.disputed import doubtful_labels, why_unmeasured
from analytics.services.recomputation import recompute
from sampling.audit_plan import middle_grades
from sampling.measures.families import weights_of_runs
from sampling.measures.registry import parse_linear
from sampling.rejudging import rates_of_votes, shortest_queue, wrong_probability
from sampling.services.auditing import audit

RATES = 0.2, 0.1


def by_hand(votes, false_alarms, misses, prevalence):
    """Return P(relevant | votes) by multiplication."""
    relevant, other = prevalence, 1 - prevalence
    for vote, f, g in zip(votes, false_alarms, misses, strict=True):
        relevant *= 1 - g if vote else g
        other *= f if vote else 1 - f
    return relevant / (relevant + other)


@pytest.mark.parametrize("prevalence", [0.02, 0.3, 0.9])
def test_several_votes_follow_bayes_rule(prevalence):
    for votes in product((0, 1), repeat=3):
        f, g = [0.2, 0.05, 0.4], [0.1, 0.3, 0.2]
        wanted = by_hand(votes, f, g, prevalence)
        for label in (0, 1):
            found = wrong_probability([label], *rates_of_votes([label], [0] * 3, votes, f, g), prevalence)
            assert found[0] == pytest.approx(1 - wanted if label else wanted)


def test_one_vote_has_its_own_rates():
    for label in (0, 1):
        alone = wrong_probability([label], *RATES, 0.25)
        voted = wrong_probability([label], *rates_of_votes([label], [0], [label], [0.2], [0.1]), 0.25)
        assert voted == pytest.approx(alone)


def test_many_votes_neither_overflow_nor_become_certain():
    n = 2000
    f, g = rates_of_votes([1], [0] * n, [1] * n, [0.2] * n, [0.1] * n)
    assert 0 <= wrong_probability([1], f, g, 0.5)[0] < 1e-6
    f, g = rates_of_votes([0], [0] * n, [1] * n, [0.2] * n, [0.1] * n)
    assert wrong_probability([0], f, g, 0.5)[0] > 1 - 1e-6


def test_rates_come_from_gold_smoothed_and_each_assessor_leans_on_all():
    counts = np.zeros((2, 3, 3))
    counts[0] = [[40, 5, 5], [2, 20, 8], [0, 0, 20]]
    counts[1, 0, 0] = 1.0
    found = relevance_errors(counts, relevant_grade=1)
    assert isinstance(found, RelevanceErrors)
    assert found.false_alarm == pytest.approx(10.5 / 52)
    assert found.miss == pytest.approx(2.5 / 51)
    assert 0 < found.false_alarms[1] < found.false_alarms[0]  # one right answer does not make them perfect
    by_two = relevance_errors(counts, relevant_grade=2)
    assert isinstance(by_two, RelevanceErrors)
    assert by_two.false_alarm == pytest.approx(13.5 / 82)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (np.zeros((1, 2, 2)), "no gold label of a document that is not relevant"),
        ([[[3.0, 1.0], [0.0, 0.0]]], "no gold label of a document that is relevant"),
        ([], "nobody has judged yet"),
    ],
)
def test_without_gold_there_are_no_rates(given, reason):
    found = relevance_errors(given, 1)
    assert isinstance(found, Refusal)
    assert found.reason == reason


def test_the_prior_counts_by_its_decile():
    rng = np.random.default_rng(5)
    n = 1000
    prior = np.repeat([0.1, 0.9], n // 2)
    truth = rng.random(n) < prior
    vote = np.where(truth, rng.random(n) >= 0.1, rng.random(n) < 0.2).astype(int)
    labels = Labels(np.arange(n), np.zeros(n, int), vote, n, 1, 2)
    errors = RelevanceErrors(*RATES, np.array([0.2]), np.array([0.1]))
    wrong = label_error_probability(labels, vote, prior, errors)
    for guess in (0.1, 0.9):
        for label in (0, 1):
            chosen = (prior == guess) & (vote == label)
            assert wrong[chosen].mean() == pytest.approx((truth != vote)[chosen].mean(), abs=0.12)
    rare = wrong[(prior == 0.1) & (vote == 1)].mean()
    assert rare > 3 * wrong[(prior == 0.9) & (vote == 1)].mean()


# -- a campaign of 97 items --------------------------------------------------------------------------------------

DOUBTFUL = 7  # every seventh document: the two disagree about relevance


@pytest.fixture
def campaign(db, tmp_path, monkeypatch):
    monkeypatch.setattr(small_campaign, "TOPICS", [f"t{number}" for number in range(7)])
    made = make_campaign(tmp_path, budget=98)
    people = [make_assessor(made, name) for name in ("bob", "dora")]
    for place, slot in enumerate(slots(made)[:-2]):
        grade = truth_of(slot)
        if slot.number == 2 and (place // 2) % DOUBTFUL == 0:
            grade = 0 if grade else 2
        give(people[slot.number - 1], slot, grade)
    made.people = people
    return made


def why(campaign):
    """Return why the newest computation has no error rates."""
    return why_unmeasured(newest_with_disputes(campaign).pooled_counts, campaign.scale.relevant_grade)


def measured(n_assessors):
    """Return counts of gold checks: each is wrong about relevance once in ten."""
    counts = np.zeros((n_assessors, 4, 4))
    counts[:, 0] = [27, 1, 1, 1]
    for grade in (1, 2, 3):
        counts[:, grade, grade], counts[:, grade, 0] = 9, 1
    return ConfusionCounts(counts, np.zeros_like(counts), np.zeros(n_assessors))


def listed_before(arrays, campaign, counts):
    """Return how many items the queue had when every grade that might be wrong and matter was listed."""
    weights = weights_of_runs(parse_linear("DCG@10"), arrays.returned, arrays.n_topics)
    shares = grade_shares(arrays.labels)
    joint = middle_grades(arrays.label_item, arrays.label_grade, arrays.judged.size)
    runs = TargetWeights(weights, paired=False).over(arrays.judged).runs
    everything = np.ones(joint.size, dtype=bool)
    return disputes(runs, shares, joint, np.array(campaign.scale.gains()), everything, 200).item.size


def test_of_97_items_the_queue_lists_what_matters(campaign):
    arrays = current_arrays(campaign)
    assert arrays.judged.size == 97
    counts = measured(len(arrays.assessors))
    assert listed_before(arrays, campaign, counts) >= 96
    doubtful = doubtful_labels(arrays, campaign, counts, np.ones(97, dtype=bool))
    queue = shortest_queue(doubtful.priority, doubtful.error_probability)
    table = arrays.labels.table()
    differ = (table[:, 0] == 1) & (table.sum(axis=1) == 2)
    assert 0 < len(queue) < 14
    assert differ[queue].all()
    assert (doubtful.error_probability[queue] >= 0.25).all()
    assert (np.diff(doubtful.priority[queue]) <= 0).all()
    may = doubtful.error_probability >= 0.25
    assert doubtful.priority[queue[:-1]].sum() < doubtful.priority[may].sum() / 2
    assert doubtful.priority[queue].sum() >= doubtful.priority[may].sum() / 2


def test_without_gold_the_queue_goes_by_disagreement_and_says_why(campaign):
    computation = recompute(campaign=campaign)
    stored = list(DisputedItem.objects.filter(computation=computation))
    assert 0 < len(stored) < 49
    assert min(one.error_probability for one in stored) >= 0.25
    assert why(campaign) == "no gold label of a document that is not relevant"
    arrays = current_arrays(campaign)
    assert assessor_confusion_counts(arrays).total.sum() == 0


def test_an_audit_gives_the_rates_and_what_it_decided_is_not_asked_again(campaign):
    audited = audit(campaign=campaign, items_each_time=40, items_in_total=40, seed=1)
    judge_audit(campaign, make_assessor(campaign, "greta", "gold"))
    computation = recompute(campaign=campaign)
    assert why(campaign) == ""
    chosen = set(audited.entries.filter(selected=True).values_list("item_id", flat=True))
    queued = set(DisputedItem.objects.filter(computation=computation).values_list("item_id", flat=True))
    assert chosen
    assert queued
    assert not queued & chosen
