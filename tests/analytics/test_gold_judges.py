"""Where gold judges judge every document: corrected numbers from their labels, and none once another tier judges."""

import numpy as np
import pytest
from django.test import Client
from django.urls import reverse
from enumeration import exactly, poisson_samples, summary
from small_campaign import RUNS, give, judge_all, make_assessor, make_campaign, slots, truth_of

from analytics.estimation import audit_correction, naive
from analytics.estimation.evidence import Evidence, LinearTargets
from analytics.estimation.gold_prediction import GoldPrediction
from analytics.estimation.pseudolabels import corrected_pseudo_labels, pseudo_labels
from analytics.estimation.samples import AuditSample, Frame, Labels
from analytics.estimation.targets import TargetWeights
from analytics.services.recomputation import recompute
from sampling.measures.registry import parse_linear
from sampling.measures.sparse import from_dense
from touchstone.models import User

# Fourteen items of two topics: ten are certain to be drawn, so that no draw has too few for an interval.
N, GAINS = 14, np.array([0.0, 1.0, 3.0])
PI = np.concatenate([np.ones(10), [0.8, 0.5, 0.4, 0.6]])
TOPIC = np.arange(N) % 2
WEIGHTS = np.random.default_rng(4).random((2, N)) / 7
PREDICTION = np.random.default_rng(5).random(N)
# Two gold judges; item by item one label or two.
GIVEN = [
    [grade, other] if item % 3 else [grade]
    for item, (grade, other) in enumerate(np.random.default_rng(6).integers(0, 3, (N, 2)).tolist())
]
GOLD = np.array([GAINS[grades].mean() for grades in GIVEN])


def labels_of(items):
    rows = [(place, who, grade) for place, item in enumerate(items) for who, grade in enumerate(GIVEN[item])]
    item, assessor, grade = np.array(rows).T
    return Labels(item, assessor, grade, n_items=len(items), n_assessors=2, n_grades=3)


def evidence_and_targets(mask, prediction=PREDICTION):
    """Return a campaign in which gold judges judged these items, and two runs and their difference."""
    judged = np.flatnonzero(mask)
    labels = labels_of(judged)
    frame = Frame(2, TOPIC, judged, PI[judged])
    audit = AuditSample.of_gold_judges(labels, PI[judged])
    evidence = Evidence(
        frame=frame,
        gold_grade=np.full(N, -1),
        inclusion_probability=PI[judged],
        n_waiting=0,
        has_fixed_sizes=False,
        single_draws=None,
        labels=labels,
        confusion_counts=np.zeros((2, 3, 3)),
        not_judged=None,
        audit=audit,
        seed=1,
    )
    weights = TargetWeights(from_dense(WEIGHTS))
    targets = LinearTargets(
        measure=parse_linear("DCG@10"),
        gains=GAINS,
        relevant_grade=1,
        weights=weights,
        judged=weights.over(judged),
        utility=labels.means(GAINS[labels.grade]),
        prediction=prediction,
        predicted=weights.run_totals(prediction, TOPIC, 2),
        gold=GoldPrediction(prediction, audit.gains(GAINS)[1], np.zeros(judged.size)),
    )
    return evidence, targets


@pytest.mark.parametrize("target", [0, 1, 2])
def test_value_and_variance_are_exactly_unbiased_over_all_draws(target):
    outcomes = []
    for mask, chance in poisson_samples(PI[10:]):
        found = audit_correction.estimate(*evidence_and_targets(np.concatenate([np.ones(10, bool), mask])))
        outcomes.append((found.these_topics[target], chance))
    w = [*WEIGHTS, WEIGHTS[0] - WEIGHTS[1]][target]
    mean, variance, expected = summary(outcomes)
    assert mean == pytest.approx((w * GOLD).sum(), **exactly)
    assert expected == pytest.approx(variance, **exactly)
    assert variance > 0.001


def test_with_another_chance_recorded_the_enumeration_is_off():
    """The positive control of the test above."""
    total = 0.0
    for mask, chance in poisson_samples(PI[10:] / 2):
        found = audit_correction.estimate(*evidence_and_targets(np.concatenate([np.ones(10, bool), mask])))
        total += chance * found.these_topics[0].value
    assert abs(total - (WEIGHTS[0] * GOLD).sum()) > 0.01


def test_it_is_the_number_as_judged_with_an_interval_of_its_own_words():
    given = evidence_and_targets(np.ones(N, bool))
    corrected, as_judged = audit_correction.estimate(*given), naive.estimate(*given)
    for mine, other in (
        (corrected.these_topics, as_judged.these_topics),
        (corrected.over_topics, as_judged.over_topics),
    ):
        for name in ("value", "standard_error", "low", "high", "degrees_of_freedom", "n"):
            assert getattr(mine, name) == pytest.approx(getattr(other, name), **exactly), name
    assert corrected.these_topics.sources == ("drawing",)
    assert corrected.these_topics.components["gold"].tolist() == [0, 0, 0]
    assert not any("bias is unknown" in words for words in corrected.these_topics.warnings)


def test_the_sequence_counts_every_document_of_the_frame_that_gold_judges_could_still_be_given():
    mask = np.arange(N) < 12
    evidence, targets = evidence_and_targets(mask)
    found = audit_correction.estimate(evidence, targets)
    assert found.n_items.tolist() == [N, N, N]
    assert found.these_topics.n.tolist() == [12, 12, 12]


def test_pseudo_labels_of_gold_judges_are_those_of_their_labels():
    evidence, _ = evidence_and_targets(np.ones(N, bool))
    made = corrected_pseudo_labels(evidence.frame, evidence.audit, GAINS, prediction=PREDICTION)
    reached = np.array([[np.mean([g >= stair for g in grades]) for grades in GIVEN] for stair in (1, 2)])
    plain = pseudo_labels(evidence.frame, prediction=PREDICTION, label=reached, steps=[1.0, 2.0])
    assert made.utility == pytest.approx(plain.utility, **exactly)
    assert made.sources == ("drawing",)
    assert not made.audit_noise.any()


# -- a campaign -----------------------------------------------------------------------------------------------


def numbers(computation, method="corrected", measure="DCG@10"):
    return {
        (one.run.run_id, one.run_b.run_id if one.run_b else ""): one
        for one in computation.estimates.filter(method=method, measure=measure).select_related("run", "run_b")
    }


@pytest.fixture
def campaign(db, tmp_path):
    made = make_campaign(tmp_path, budget=37)
    made.refresh_from_db()
    return made


def experts(campaign, n=2):
    return [make_assessor(campaign, f"expert{number}", "gold") for number in range(n)]


def test_the_numbers_are_those_as_judged_with_p_and_every_interval(campaign):
    judge_all(campaign, experts(campaign))
    computation = recompute(campaign=campaign)
    assert computation.is_by_gold_judges
    assert computation.n_audited == 0
    corrected, as_judged = numbers(computation), numbers(computation, "naive")
    assert len(corrected) == len(RUNS) * (len(RUNS) + 1) // 2
    for key, one in corrected.items():
        other = as_judged[key]
        assert one.refusal == ""
        assert (one.value, one.low, one.high, one.topics_low) == pytest.approx(
            (other.value, other.low, other.high, other.topics_low), **exactly
        )
        assert (one.p_value is None) == (key[1] == "")
        assert other.p_value is None
        assert one.always_low < one.low < one.high < one.always_high


def test_one_judgment_of_another_tier_and_there_is_no_number_without_an_audit(campaign):
    expert, _ = experts(campaign)
    student = make_assessor(campaign, "student")
    last = slots(campaign)[-1]
    judge_all(campaign, [expert, expert], number=1)
    before = recompute(campaign=campaign)
    assert before.is_by_gold_judges
    give(student, last, truth_of(last))
    after = recompute(campaign=campaign)
    assert not after.is_by_gold_judges
    assert {one.refusal for one in numbers(after).values()} == {"no audit is complete yet"}


def test_while_a_topic_has_no_judgment_the_refusal_names_it(campaign):
    expert, _ = experts(campaign)
    judge_all(campaign, [expert, expert], number=1, topic__topic_id__in=["t0", "t1"])
    computation = recompute(campaign=campaign)
    assert computation.is_by_gold_judges
    reasons = {one.refusal for one in numbers(computation).values()}
    assert all("1 of 3 topics have no judgment yet" in reason for reason in reasons)


def test_api_and_page_say_whose_grades_they_are(campaign):
    judge_all(campaign, experts(campaign))
    recompute(campaign=campaign)
    client = Client()
    client.force_login(User.objects.create(username="rhea", role="researcher"))
    told = client.get(f"/api/v1/campaigns/{campaign.pk}/comparisons", {"measure": "DCG@10"}).json()
    rows = told["results"]
    assert len(rows) == 3
    assert all(row["other"]["p_adjusted"] is not None for row in rows)
    measures = client.get(f"/api/v1/campaigns/{campaign.pk}/measures").json()
    assert measures["computation"]["is_by_gold_judges"] is True
    page = client.get(reverse("console:campaign-results", args=[campaign.pk])).content.decode()
    assert "every one graded by a gold judge" in page
    assert "audited by the gold tier" not in page
