"""Numbers where judging goes by what it tells: refused until all is judged, then exact; releases say method 0."""

import pytest
from ordered_campaign import judge_next, make_ordered
from small_campaign import (
    N_FRAME,
    TOPICS,
    judge_all,
    judge_audit,
    make_assessor,
    make_campaign,
    returned,
    true_grade,
)
from small_release import release_of, unpacked

from analytics.frames import campaign_arrays, forget
from analytics.frames.screening import screening_evidence
from analytics.releases.verify import verify
from analytics.screening.screens import NOT_RANDOM, screen
from analytics.services.exports import prels_lines
from analytics.services.recomputation import recompute
from analytics.services.screening import screen_campaign
from analytics.services.simulations import SimulationRefused, sampled_topics
from judging.services.campaigns import DEFAULT_GRADES
from sampling.services.auditing import audit
from sampling.services.ordering import order_judging

pytestmark = pytest.mark.django_db

WHY = "3 topics are judged in part, and by what they tell: what is judged so far is not a random part"


def judge_part(campaign, ann):
    """Judge documents of every topic, not all of one."""
    for topic_id in TOPICS:
        topic = campaign.collection.topics.get(topic_id=topic_id)
        ann.first_topics.set([topic])
        type(ann).objects.filter(pk=ann.pk).update(quota=None)
        own = campaign.slots.filter(topic=topic).order_by("position")[:5]
        judge_all(campaign, [ann], pk__in=[slot.pk for slot in own])


def estimates(campaign, **conditions):
    return list(recompute(campaign=campaign).estimates.filter(measure="DCG@10", **conditions))


def dcg(run):
    """Return DCG@10 of a run by the true grades: gain / log2(rank + 1), the mean over topics."""
    from math import log2

    gain = {value: number for value, _, number in DEFAULT_GRADES}
    return sum(gain[true_grade(t, d)] / log2(rank + 1) for (t, d), rank in returned(run).items()) / len(
        TOPICS
    )


def test_until_everything_is_judged_every_design_based_number_is_refused(campaign, ann):
    judge_part(campaign, ann)
    found = [one for one in estimates(campaign) if one.method != "true"]  # which needs no judgment
    assert {one.method for one in found} >= {"naive", "corrected"}
    assert [(one.method, one.value) for one in found if one.value is not None] == []
    assert {one.refusal for one in found if one.method == "naive"} == {WHY}


def test_simulations_of_a_part_are_refused_too(campaign, ann):
    judge_part(campaign, ann)
    with pytest.raises(SimulationRefused, match="by what they tell"):
        sampled_topics(campaign_arrays(campaign))
    judge_all(campaign, [ann])
    assert sum(topic.is_relevant.size for topic in sampled_topics(campaign_arrays(campaign))[0]) == N_FRAME


def test_in_random_order_the_same_judgments_have_numbers(tmp_path):
    """The control."""
    campaign = make_campaign(tmp_path)
    people = [make_assessor(campaign, name) for name in ("ann", "ben")]
    for topic_id in TOPICS:
        own = campaign.slots.filter(topic__topic_id=topic_id).order_by("position")[:10]
        judge_all(campaign, people, pk__in=[slot.pk for slot in own])
    assert all(one.value is not None for one in estimates(campaign, method="naive"))


def test_once_everything_is_judged_the_numbers_are_exact(campaign, ann):
    for _ in range(N_FRAME):
        judge_next(ann)
    for one in estimates(campaign, method="naive", run_b=None):
        assert one.value == pytest.approx(dcg(int(one.run.run_id[-1])), abs=1e-9)
        assert one.standard_error == pytest.approx(0, abs=1e-9)
    arrays = campaign_arrays(campaign)
    assert not arrays.order_is_random
    assert set(arrays.inclusion_probability) == {1.0}


def test_an_audit_of_a_part_corrects_nothing_until_all_is_judged(campaign, ann):
    greta = make_assessor(campaign, "greta", tier="gold")
    judge_part(campaign, ann)
    made = audit(campaign=campaign, items_each_time=12, items_in_total=12, seed=5)
    assert made.n_selected
    judge_audit(campaign, greta)
    refused = estimates(campaign, method="corrected")
    assert all(one.value is None for one in refused)
    assert any("by what they tell" in one.refusal for one in refused)
    judge_all(campaign, [ann])
    forget()
    audit(campaign=campaign, items_each_time=30, items_in_total=42, seed=5)
    judge_audit(campaign, greta)
    assert all(one.value is not None for one in estimates(campaign, method="corrected", run_b=None))


def test_screening_makes_no_test_that_needs_a_random_order(campaign, ann):
    judge_all(campaign, [ann])
    recompute(campaign=campaign)
    made = screen_campaign(campaign=campaign)
    tests = made.assessors.get(assessor=ann).tests
    refused = {key for key, told in tests.items() if told.get("refusal") == NOT_RANDOM}
    assert refused == {"serial", "all-alike", "drift", "rate"}
    random_one = screen(
        screening_evidence(campaign).log
    )  # the control: in random order they have other answers
    assert NOT_RANDOM not in [
        reason for one in random_one.findings.values() for reason in one.refusals.values()
    ]


def methods_of(lines):
    return {line.split()[3] for line in lines}


@pytest.mark.parametrize("is_complete", [False, True])
def test_prels_carry_method_0_and_the_release_is_verified(campaign, ann, tmp_path, is_complete):
    if is_complete:
        judge_all(campaign, [ann])
    else:
        judge_part(campaign, ann)
    order_judging(campaign=campaign)
    recompute(campaign=campaign)
    assert methods_of(prels_lines(campaign, True)) == {"0"}
    folder = unpacked(release_of(campaign), tmp_path / "release")
    lines = (folder / "prels.txt").read_text().splitlines()
    assert len(lines) == (N_FRAME if is_complete else 15)
    assert methods_of(lines) == {"0"}
    assert {float(line.split()[4]) for line in lines} == {1.0}
    assert verify(folder).different == []
    (folder / "prels.txt").write_text("\n".join(line.replace(" 0 1.0", " 1 1.0") for line in lines) + "\n")
    assert any(words.startswith("prels.txt") for words in verify(folder).different)


def test_prels_of_a_draw_carry_method_1(tmp_path):
    """The control."""
    campaign = make_campaign(tmp_path)
    judge_all(campaign, [make_assessor(campaign, name) for name in ("ann", "ben")])
    assert methods_of(prels_lines(campaign, True)) == {"1"}


def test_gold_checks_of_undrawn_documents_are_hidden_as_ever(tmp_path):
    """The whole pool is drawn, so no pooled document is a check: its gold answer is kept for the draw itself."""
    campaign = make_ordered(tmp_path, gold_check_rate=0.3)
    assert not campaign.slots.filter(purpose="check").exists()
    assert campaign.slots.filter(purpose="judge").count() == N_FRAME
