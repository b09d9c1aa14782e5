"""Audits of a small real campaign: recorded probabilities, strategies, tiers, who judges them, and their schedule."""

import uuid
from copy import deepcopy
from datetime import UTC, datetime, timedelta

import pytest
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils import timezone
from small_campaign import DOCUMENTS, TOPICS, give, judge_all, make_assessor, make_campaign, slots, truth_of

from analytics.services.exports import qrels_jg_lines, qrels_lines
from judging.models import Slot
from judging.services.assign import claim, submit
from judging.services.campaigns import close_campaign
from judging.services.leases import requeue
from sampling.models import AuditEntry, AuditSchedule
from sampling.services.audit_schedules import next_due_time, save_schedule, schedule_words
from sampling.services.auditable import AuditRefused
from sampling.services.auditing import audit, run_audit, start_due_audits
from sampling.strategies import strategies_for
from touchstone.models import Job

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def made_once(module_world, tmp_path_factory):
    return make_campaign(tmp_path_factory.mktemp("world"), kind="pair")


@pytest.fixture
def campaign(made_once, db):
    return deepcopy(made_once)


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
    with pytest.raises(AuditRefused, match="must differ from the draw's"):
        audit(campaign=campaign, items_each_time=5, items_in_total=5, seed=campaign.draws.get().seed)


def test_without_a_completely_judged_item_there_is_no_audit(campaign, people):
    give(people[0], slots(campaign)[0], 1)
    assert audit(campaign=campaign, items_each_time=5, items_in_total=5) is None


# -- strategies, tiers, seeds ---------------------------------------------------------------------------------


def probabilities(made):
    return {entry.item_id: entry.inclusion_probability for entry in entries(made)}


def selected(made):
    return set(AuditEntry.objects.filter(audit=made, selected=True).values_list("item_id", flat=True))


def judge_tier(assessor, purpose):
    for slot in slots(assessor.campaign, purpose, state="open"):
        give(assessor, slot, truth_of(slot))


@pytest.mark.parametrize("strategy", [one.key for one in strategies_for(has_whole_topics=False)])
def test_every_strategy_gives_every_item_a_chance_and_expects_as_many_as_wanted(campaign, people, strategy):
    judge_all(campaign, people)
    made = audit(campaign=campaign, items_each_time=10, items_in_total=42, strategy=strategy, seed=5)
    pi = probabilities(made)
    assert made.strategy == strategy
    assert len(pi) == 42
    assert min(pi.values()) > 0
    assert sum(pi.values()) == pytest.approx(10)
    assert made.n_selected == len(selected(made)) == len(slots(campaign, "audit"))


def test_a_strategy_that_nobody_knows_is_refused(campaign, people):
    judge_all(campaign, people)
    with pytest.raises(AuditRefused, match=r"strategy must be one of .*'simple'.*, got 'best'"):
        audit(campaign=campaign, items_each_time=10, items_in_total=42, strategy="best")
    with pytest.raises(ValidationError, match="'best' is not a valid choice"):
        save_schedule(campaign=campaign, actor=None, strategy="best")
    assert not campaign.audits.exists()


def test_a_later_audit_of_another_strategy_contains_the_earlier_one_and_adds_as_many_as_wanted(
    campaign, people
):
    judge_all(campaign, people)
    first = audit(campaign=campaign, items_each_time=10, items_in_total=42, strategy="influence", seed=5)
    second = audit(campaign=campaign, items_each_time=10, items_in_total=42, strategy="simple")
    before, after = probabilities(first), probabilities(second)
    assert all(after[item] >= before[item] for item in before)
    assert sum(after.values()) == pytest.approx(20, abs=1e-4)
    assert second.expected_in_total == pytest.approx(20)
    assert selected(first) <= selected(second)
    assert first.seed == second.seed


def test_effort_prefers_high_grades_and_rare_the_least_likely_drawn(tmp_path):
    campaign = make_campaign(tmp_path, kind="pair", budget=28)
    people = [make_assessor(campaign, "ann"), make_assessor(campaign, "ben")]
    judge_all(campaign, people)
    by_grade: dict = {}
    pi = probabilities(
        audit(campaign=campaign, items_each_time=5, items_in_total=99, strategy="effort", seed=5)
    )
    for slot in slots(campaign, number=1):
        by_grade.setdefault(truth_of(slot), []).append(pi[slot.item_id])
    means = [sum(by_grade[grade]) / len(by_grade[grade]) for grade in sorted(by_grade)]
    assert means[0] < means[-1]


def test_probabilities_do_not_depend_on_what_audits_brought(campaign, people):
    """The guarantee that lets one estimator serve all audits."""
    judge_all(campaign, people)
    audit(campaign=campaign, items_each_time=8, items_in_total=42, strategy="risk", seed=5)
    gold = make_assessor(campaign, "greta", tier="gold")
    found = []
    for grade in (0, 3):
        with transaction.atomic():
            for slot in slots(campaign, "audit", state="open"):
                give(gold, slot, grade)
            made = audit(campaign=campaign, items_each_time=8, items_in_total=42, strategy="risk")
            found.append(probabilities(made))
            transaction.set_rollback(True)
    assert found[0] == found[1]


def test_probabilities_do_follow_bronze_grades(tmp_path):
    """The control: what a strategy goes by shows in the probabilities."""
    found = []
    for shift in (0, 2):
        folder = tmp_path / str(shift)
        folder.mkdir()
        campaign = make_campaign(folder, kind="pair")
        people = [make_assessor(campaign, "ann"), make_assessor(campaign, "ben")]
        judge_all(campaign, people, grade=lambda slot, place, shift=shift: (truth_of(slot) + shift) % 4)
        made = audit(campaign=campaign, items_each_time=8, items_in_total=42, strategy="effort", seed=5)
        found.append([entry.inclusion_probability for entry in entries(made)])
    assert found[0] != pytest.approx(found[1])


def test_tiers_have_audits_of_their_own_with_other_seeds_and_count_their_own_items(campaign, people):
    judge_all(campaign, people)
    gold = audit(campaign=campaign, items_each_time=20, items_in_total=20, seed=5)
    silver = audit(campaign=campaign, items_each_time=12, items_in_total=40, tier="silver", strategy="simple")
    again = audit(campaign=campaign, items_each_time=12, items_in_total=40, tier="silver", strategy="simple")
    assert [gold.sequence, silver.sequence, again.sequence] == [1, 2, 3]
    assert silver.seed == again.seed != gold.seed
    assert (silver.expected_in_total, again.expected_in_total) == (12, 24)
    # The gold tier's probabilities do not enter.
    assert list(probabilities(silver).values()) == pytest.approx([12 / 42] * 42)
    assert {slot.item_id for slot in slots(campaign, "silver")} == selected(again) >= selected(silver)
    assert audit(campaign=campaign, items_each_time=20, items_in_total=20) is None  # gold has all it wanted


def test_the_seed_of_one_tier_is_refused_to_the_other(campaign, people):
    judge_all(campaign, people)
    audit(campaign=campaign, items_each_time=5, items_in_total=20, seed=5)
    with pytest.raises(AuditRefused, match="other tier's audits, got 5"):
        audit(campaign=campaign, items_each_time=5, items_in_total=20, tier="silver", seed=5)


# -- who judges silver audits ---------------------------------------------------------------------------------


def work(assessor, most=99):
    """Let the assessor claim and judge; return the purposes of the slots in order."""
    done = []
    while len(done) < most and (held := claim(assessor=assessor).item) is not None:
        submit(assessor=assessor, token=held.token, client_token=uuid.uuid4(), grade=1)
        done.append(Slot.objects.get(pk=held.slot_id).purpose)
    return done


def test_the_silver_tier_gets_its_audits_first_then_ordinary_work_and_bronze_never(campaign, people):
    judge_all(campaign, people, item__topic__topic_id__in=["t0", "t1"])
    made = audit(campaign=campaign, items_each_time=12, items_in_total=42, tier="silver", seed=5)
    silver = make_assessor(campaign, "sia", tier="silver")
    # Two of three topics are judged: the total so far is in step with them, and t2 is ordinary work.
    assert work(silver) == ["silver"] * made.n_selected + ["judge"] * 14
    another = make_assessor(campaign, "cleo")
    audit(campaign=campaign, items_each_time=12, items_in_total=42, tier="silver")
    assert set(work(another)) == {"judge"}
    assert slots(campaign, "silver", state="open")


def test_nobody_audits_an_item_he_has_judged(campaign, people):
    sia = make_assessor(campaign, "sia", tier="silver")
    judge_all(campaign, [sia, people[0]], item__topic__topic_id="t0")
    judge_all(campaign, people, item__topic__topic_id__in=["t1", "t2"])
    made = audit(campaign=campaign, items_each_time=42, items_in_total=42, tier="silver", seed=5)
    assert made.n_selected == 42
    assert work(sia) == ["silver"] * 28
    left = slots(campaign, "silver", state="open")
    assert {slot.item.topic.topic_id for slot in left} == {"t0"}
    assert work(make_assessor(campaign, "sol", tier="silver")) == ["silver"] * 14


def test_silver_audits_are_in_qrels_jg_but_decide_no_qrels(campaign, people):
    judge_all(campaign, people)
    before, before_jg = list(qrels_lines(campaign, True)), list(qrels_jg_lines(campaign, True))
    made = audit(campaign=campaign, items_each_time=10, items_in_total=42, tier="silver", seed=5)
    sia = make_assessor(campaign, "sia", tier="silver")
    for slot in slots(campaign, "silver", state="open"):
        give(sia, slot, (truth_of(slot) + 1) % 4)
    assert list(qrels_lines(campaign, True)) == before
    assert len(list(qrels_jg_lines(campaign, True))) == len(before_jg) + made.n_selected


def test_silver_audits_of_an_assessor_are_made_again_by_others(campaign, people):
    judge_all(campaign, people)
    audit(campaign=campaign, items_each_time=10, items_in_total=42, tier="silver", seed=5)
    sia = make_assessor(campaign, "sia", tier="silver")
    n = len(work(sia))
    assert requeue(assessor=sia, actor=None) == n > 0
    assert len(slots(campaign, "silver", state="open")) == n
    assert work(sia) == []
    assert work(make_assessor(campaign, "sol", tier="silver")) == ["silver"] * n


# -- schedules ------------------------------------------------------------------------------------------------


def periods():
    return list(Job.objects.filter(kind="audit").values_list("period_key", flat=True))


def later(monkeypatch, moment):
    monkeypatch.setattr(timezone, "now", lambda: moment)


@pytest.mark.parametrize("timing", [{"every_seconds": 3600}, {"every_seconds": 60, "crontab": "0 * * * *"}])
def test_one_job_a_due_time_and_one_catch_up_however_many_were_missed(campaign, monkeypatch, timing):
    start = datetime(2026, 11, 21, 11, 0, tzinfo=UTC)
    later(monkeypatch, start)
    schedule = save_schedule(campaign=campaign, actor=None, **timing)
    start_due_audits()
    assert periods() == []  # nothing is due when the schedule begins to count
    later(monkeypatch, start + timedelta(minutes=61))
    start_due_audits()
    start_due_audits()  # a second beat
    assert periods() == [f"audit:{schedule.pk}:2026-11-21T12:00:00+00:00"]
    later(monkeypatch, start + timedelta(days=3, minutes=5))  # beat was down for three days
    start_due_audits()
    start_due_audits()
    assert len(periods()) == 2
    assert f"audit:{schedule.pk}:2026-11-24T11:00:00+00:00" in periods()


def test_a_schedule_that_is_changed_or_switched_on_again_counts_from_then_on(campaign, monkeypatch):
    start = datetime(2026, 11, 21, 11, 0, tzinfo=UTC)
    later(monkeypatch, start)
    save_schedule(campaign=campaign, actor=None, every_seconds=86400, is_active=False)
    later(monkeypatch, start + timedelta(days=9))
    start_due_audits()
    assert periods() == []
    changed = save_schedule(campaign=campaign, actor=None, crontab="0 3 * * *", is_active=True)
    start_due_audits()  # 03:00 of today was before the change
    assert periods() == []
    assert next_due_time(changed, timezone.now()) == datetime(2026, 12, 1, 3, 0, tzinfo=UTC)
    # A new size is no new time.
    again = save_schedule(campaign=campaign, actor=None, items_each_time=7)
    assert again.starts_at == changed.starts_at


def test_a_closed_campaign_is_not_audited(campaign, monkeypatch):
    save_schedule(campaign=campaign, actor=None, every_seconds=60)
    close_campaign(campaign=campaign, actor=None)
    later(monkeypatch, timezone.now() + timedelta(hours=2))
    start_due_audits()
    assert periods() == []


def test_a_schedule_says_when_and_refuses_what_it_cannot_mean(campaign):
    made = save_schedule(campaign=campaign, actor=None, crontab="30 2 * * mon,thu")
    assert schedule_words(made) == "every Monday and Thursday at 02:30 UTC"
    with pytest.raises(ValueError, match="minute must be"):
        save_schedule(campaign=campaign, actor=None, crontab="99 * * * *")
    with pytest.raises(ValidationError):
        save_schedule(campaign=campaign, actor=None, items_each_time=0)
    assert AuditSchedule.objects.get(campaign=campaign).crontab == "30 2 * * mon,thu"


def test_the_job_audits_by_the_schedule_or_as_asked(campaign, people):
    judge_all(campaign, people)
    with pytest.raises(AuditRefused, match="no audit schedule"):
        run_audit(campaign_id=str(campaign.pk))
    save_schedule(campaign=campaign, actor=None, items_each_time=9, items_in_total=42, strategy="topic")
    made = run_audit(campaign_id=str(campaign.pk))
    assert (made.strategy, made.tier, made.expected_in_total) == ("topic", "gold", 9)
    asked = {"items_each_time": 4, "items_in_total": 42, "strategy": "simple", "tier": "silver"}
    made = run_audit(campaign_id=str(campaign.pk), **asked)
    assert (made.strategy, made.tier, made.expected_in_total) == ("simple", "silver", 4)
