"""Recomputations of a small real campaign: what they store, and what they refuse."""

import math
import uuid
from itertools import combinations

import pytest
from django.db import transaction
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

from analytics.frames import forget
from analytics.methods import IMPORTANCE, METHODS
from analytics.models import Computation, Estimate, Flag
from analytics.services.recomputation import (
    latest_computation,
    measures_of,
    recompute,
)
from judging.models import Judgment
from judging.services.assign import revise
from sampling.measures.kinds import Complete, Linear, Ratio
from sampling.measures.registry import parse_measure, reported_measures
from sampling.services.auditing import audit
from touchstone.jobs import JobCancelled

pytestmark = pytest.mark.django_db

# What a campaign drawn for DCG@10 has numbers in, and the definitions of those of completely judged ranks, see below.
REPORTED = reported_measures("DCG@10", 10)
MEASURES, RATIOS, COMPLETE = (
    [name for name in REPORTED if isinstance(parse_measure(name).kind, kind)]
    for kind in (Linear, Ratio, Complete)
)
STORED = [method.key for method in METHODS if method is not IMPORTANCE]  # which is of draws with replacement
TARGETS = [*((run, None) for run in RUNS), *combinations(RUNS, 2)]


@pytest.fixture
def campaign(tmp_path):
    return make_campaign(tmp_path)


@pytest.fixture
def people(campaign):
    return [make_assessor(campaign, "ann"), make_assessor(campaign, "ben")]


@pytest.fixture
def gold(campaign):
    return make_assessor(campaign, "greta", tier="gold")


def a_bit_wrong(slot, place):
    """Ann errs by one grade at every fifth document, Ben at every seventh."""
    number = int(slot.item.document.doc_id[-2:]) + 3 * TOPICS.index(slot.item.topic.topic_id)
    return (truth_of(slot) + 1) % 4 if number % (5, 7)[place] == 0 else truth_of(slot)


def true_err(run, topic):
    """Return ERR@10 of one topic: a reader goes down the ranking, and stops at each document by chance."""
    ranks = {rank: true_grade(*pair) for pair, rank in returned(RUNS.index(run)).items() if pair[0] == topic}
    value, goes_on = 0.0, 1.0
    for rank in sorted(ranks):
        stops = (2 ** ranks[rank] - 1) / 2**3
        value, goes_on = value + goes_on * stops / rank, goes_on * (1 - stops)
    return value


def true_rr(run, topic):
    """Return RR@10 of one topic: 1/rank of the first document of grade 1 or more."""
    listed = returned(RUNS.index(run)).items()
    ranks = [rank for pair, rank in listed if pair[0] == topic and true_grade(*pair) >= 1]
    return 1 / min(ranks) if ranks else 0.0


# A further measure of completely judged ranks needs its definition here, independent of the product's.
DEFINITIONS = {"ERR@10": true_err, "RR@10": true_rr}


def true_value(measure, run):
    """Return the mean over topics, from the definition of the measure."""
    if measure in COMPLETE:
        return sum(DEFINITIONS[measure](run, topic) for topic in TOPICS) / len(TOPICS)
    if measure in RATIOS:
        return sum(true_ratio(measure, run, topic) for topic in TOPICS) / len(TOPICS)
    total = 0.0
    for (topic, document), rank in returned(RUNS.index(run)).items():
        grade = true_grade(topic, document)
        total += (grade >= 1) / 10 if measure == "P@10" else grade / math.log2(rank + 1)
    return total / len(TOPICS)


def true_ratio(measure, run, topic):
    """Return nDCG, AP or R of one topic, from its definition, with what is relevant in the pool."""
    pooled = [true_grade(topic, doc_id(TOPICS.index(topic), d)) for d in range(DOCUMENTS)]
    listed = [true_grade(t, d) for (t, d) in returned(RUNS.index(run)) if t == topic]
    if measure == "nDCG@10":
        ideal = sorted(pooled, reverse=True)[:10]
        discounted = [
            [grade / math.log2(place + 2) for place, grade in enumerate(g)] for g in (listed, ideal)
        ]
        return sum(discounted[0]) / sum(discounted[1])
    hits = [place for place, grade in enumerate(listed, start=1) if grade >= 1]
    if measure == "R@10":
        return len(hits) / sum(grade >= 1 for grade in pooled)
    return sum((n + 1) / place for n, place in enumerate(hits)) / sum(grade >= 1 for grade in pooled)


def true_target(measure, run, run_b):
    return true_value(measure, run) - (true_value(measure, run_b) if run_b else 0.0)


def stored(computation, method):
    """Return {(measure, run, run_b): row} of a method."""
    rows = computation.estimates.filter(method=method).select_related("run", "run_b")
    return {(row.measure, row.run.run_id, row.run_b and row.run_b.run_id): row for row in rows}


def numbers(computation):
    """Return everything that a computation says, without its own keys and times."""
    names = (
        "run", "run_b", "measure", "method", "value", "standard_error", "low", "high", "p_value",
        "degrees_of_freedom", "n", "sources", "refusal", "warning",
    )  # fmt: skip
    confusion = ("assessor", "counts", "matrix", "low", "high", "n_gold_checks", "n_audited", "accuracy")
    return (
        list(computation.estimates.order_by("id").values_list(*names)),
        list(computation.confusions.order_by("id").values_list(*confusion)),
    )


def judged_and_audited(campaign, people, gold, grade=a_bit_wrong, wanted=42):
    judge_all(campaign, people, grade=grade)
    audit(campaign=campaign, items_each_time=wanted, items_in_total=wanted, seed=5)
    judge_audit(campaign, gold)


def test_every_run_pair_and_measure_has_a_row_of_every_method(campaign, people, gold):
    judged_and_audited(campaign, people, gold, wanted=30)
    computation = recompute(campaign=campaign)
    expected = {(measure, *target) for measure in MEASURES + RATIOS + COMPLETE for target in TARGETS}
    for method in STORED:
        assert stored(computation, method).keys() == expected, method
    assert set(computation.estimates.values_list("method", flat=True)) == set(STORED)
    assert (computation.n_items, computation.n_judgments) == (42, 84 + computation.n_audited)
    assert computation.n_audited == len(slots(campaign, "audit"))
    assert computation.confusions.filter(scope="assessor").count() == 2
    assert latest_computation(campaign=campaign) == computation


def test_a_method_refuses_by_name_the_measures_of_a_kind_that_it_does_not_serve(campaign, people, gold):
    judged_and_audited(campaign, people, gold)
    rows = stored(recompute(campaign=campaign), "matrix-inverse")
    for measure, *target in ((measure, *target) for measure in RATIOS for target in TARGETS):
        reason = f"{measure} is a ratio: matrix inverse serves a sum over documents alone"
        assert rows[measure, *target].refusal == reason
    assert not any("is a ratio" in rows[measure, "run0", "run1"].refusal for measure in MEASURES)


def test_the_true_rows_are_the_measures_by_their_definition(campaign):
    for (measure, run, run_b), row in stored(recompute(campaign=campaign), "true").items():
        assert row.value == pytest.approx(true_target(measure, run, run_b), abs=1e-12)
        assert (row.standard_error, row.low, row.high) == (0.0, row.value, row.value)


def test_there_are_no_true_rows_where_some_gold_is_unknown(tmp_path):
    assert not stored(recompute(campaign=make_campaign(tmp_path, gold=False)), "true")


def test_faultless_judges_of_the_whole_pool_with_everything_audited_give_the_truth(campaign, people, gold):
    judged_and_audited(campaign, people, gold, grade=lambda slot, place: truth_of(slot))
    computation = recompute(campaign=campaign)
    for method in ("naive", "corrected"):
        for (measure, run, run_b), row in stored(computation, method).items():
            if method == "corrected" and measure in COMPLETE:
                words = "a measure of completely judged ranks: corrected serves a sum over documents or a ratio alone"
                assert row.refusal == f"{measure} is {words}"
                continue
            assert row.value == pytest.approx(true_target(measure, run, run_b), abs=1e-9)
            assert row.standard_error == pytest.approx(0.0, abs=1e-6)


def test_with_everything_audited_the_corrected_value_is_the_truth_whatever_the_judges_say(
    campaign, people, gold
):
    judged_and_audited(campaign, people, gold, grade=lambda slot, place: 3 * place)
    computation = recompute(campaign=campaign)
    assert computation.n_audited == 42
    for (measure, run, run_b), row in stored(computation, "corrected").items():
        if measure not in COMPLETE:
            assert row.value == pytest.approx(true_target(measure, run, run_b), abs=1e-9)
    # Ann says 0 of everything and Ben 3: naively every document is half relevant and has the mean gain 1.5.
    naive = stored(computation, "naive")
    assert naive["P@10", "run0", None].value == pytest.approx(0.5)
    ideal = sum(1.5 / math.log2(rank + 1) for rank in range(1, 11))
    assert naive["DCG@10", "run0", None].value == pytest.approx(ideal)


def test_numbers_are_finite_intervals_hold_their_value_and_refusals_have_none(campaign, people, gold):
    judged_and_audited(campaign, people, gold, wanted=30)
    seen = 0
    for row in recompute(campaign=campaign).estimates.all():
        given = [row.value, row.standard_error, row.low, row.high]
        if row.refusal:
            assert given == [None] * 4
            continue
        seen += 1
        assert all(math.isfinite(number) for number in given)
        assert row.low <= row.value <= row.high
        assert row.p_value is None or 0 <= row.p_value <= 1
        # a difference's p-value and its interval say the same
        if row.p_value is not None:
            assert row.run_b is not None
            assert (row.p_value < 0.05) == (row.low > 0 or row.high < 0)
    assert seen >= 36  # naive, corrected and true at least


def corrected_reasons(computation):
    """Return why nothing is corrected, in the measures that an audit corrects."""
    rows = stored(computation, "corrected").items()
    return {row.refusal for (measure, *_), row in rows if measure not in COMPLETE}


def test_before_anything_is_judged_every_method_is_refused_with_a_reason(campaign):
    computation = recompute(campaign=campaign)
    for method in ("naive", "matrix-inverse"):
        rows = stored(computation, method).items()
        reasons = {row.refusal for (measure, *_), row in rows if measure in MEASURES}
        assert reasons == {"3 of 3 topics have no judgment yet (about 3 more needed)"}
    assert corrected_reasons(computation) == {"no audit is complete yet"}
    assert computation.last_judgment_id == 0


def test_without_a_complete_audit_nothing_is_corrected_and_the_reason_says_what_waits(campaign, people, gold):
    judge_all(campaign, people)
    assert corrected_reasons(recompute(campaign=campaign)) == {"no audit is complete yet"}

    made = audit(campaign=campaign, items_each_time=20, items_in_total=20, seed=5)
    judge_audit(campaign, gold, leave=made.n_selected - 1)
    computation = recompute(campaign=campaign)
    waiting = f"{made.n_selected - 1} selected items wait for the gold tier"
    assert corrected_reasons(computation) == {f"no audit is complete yet; {waiting}"}
    assert {row.value for row in stored(computation, "corrected").values()} == {None}


def test_a_topic_without_a_judgment_is_named_and_one_without_an_audited_chance_too(campaign, people, gold):
    judge_all(campaign, people, topic__topic_id__in=["t0", "t1"])
    audit(campaign=campaign, items_each_time=28, items_in_total=28, seed=5)
    judge_audit(campaign, gold)
    computation = recompute(campaign=campaign)
    for method in ("naive", "matrix-inverse"):
        rows = stored(computation, method).items()
        reasons = {row.refusal for (measure, *_), row in rows if measure in MEASURES}
        assert reasons == {"1 of 3 topics have no judgment yet (about 1 more needed)"}

    judge_all(campaign, people, topic__topic_id="t2")
    computation = recompute(campaign=campaign)
    assert {row.refusal for row in stored(computation, "naive").values()} == {""}
    reasons = corrected_reasons(computation)
    assert reasons == {"1 of 3 topics have no item that an audit could select yet (about 1 more needed)"}


def test_too_few_audited_items_are_refused(campaign, people, gold):
    judged_and_audited(campaign, people, gold, wanted=6)
    assert 0 < len(slots(campaign, "audit")) < 10
    reasons = corrected_reasons(recompute(campaign=campaign))
    assert all("audited items with non-zero weight; at least 10 are needed" in reason for reason in reasons)


def test_recomputing_gives_equal_numbers_in_a_new_computation(campaign, people, gold):
    judged_and_audited(campaign, people, gold, wanted=30)
    first, second = recompute(campaign=campaign), recompute(campaign=campaign)
    assert second.pk != first.pk
    assert numbers(second) == numbers(first)
    assert (
        Estimate.objects.filter(computation=first).count()
        == Estimate.objects.filter(computation=second).count()
    )


def test_a_later_judgment_changes_the_next_computation_only(campaign, people, gold):
    judge_all(campaign, people, topic__topic_id__in=["t0", "t1"])
    first = recompute(campaign=campaign)
    before = numbers(first)
    judge_all(campaign, people, topic__topic_id="t2")
    second = recompute(campaign=campaign)
    assert second.last_judgment_id > first.last_judgment_id
    assert numbers(first) == before != numbers(second)


def test_measures_deeper_than_the_pool_are_left_out(campaign):
    assert (
        measures_of(campaign) == MEASURES + RATIOS + COMPLETE
    )  # pooled to depth 10: RBP(p=0.8)@20 would look deeper


def test_confusion_counts_come_from_the_audit_and_an_assessor_who_is_wrong_is_flagged(campaign, people, gold):
    judged_and_audited(campaign, people, gold, grade=lambda slot, place: (truth_of(slot) + place) % 4)
    computation = recompute(campaign=campaign)
    ann, ben = computation.confusions.filter(scope="assessor").order_by("assessor")
    # Everything was audited with certainty: the counts are the pairs' true grades, (document + topic) mod 4.
    grades = [true_grade(topic, doc_id(t, d)) for t, topic in enumerate(TOPICS) for d in range(DOCUMENTS)]
    of_grade = [grades.count(grade) for grade in range(4)]
    assert ann.counts == [[of_grade[g] if g == given else 0 for given in range(4)] for g in range(4)]
    assert ben.counts == [
        [of_grade[g] if (g + 1) % 4 == given else 0 for given in range(4)] for g in range(4)
    ]
    assert (ann.accuracy, ben.accuracy) == (1.0, 0.0)
    assert (ann.n_audited, ann.n_gold_checks) == (42, 0)
    assert [flag.assessor for flag in Flag.objects.exclude(kind="chance")] == [people[1]]


def test_gold_checks_are_counted_where_there_is_no_audit(tmp_path):
    campaign = make_campaign(tmp_path, budget=15, gold_check_rate=0.1)
    ann = make_assessor(campaign, "ann")
    by_item = {slot.item_id: slot for slot in slots(campaign, "check")}
    for slot in by_item.values():
        give(ann, slot, 1)
    computation = recompute(campaign=campaign)
    confusion = computation.confusions.get(scope="assessor")
    assert computation.n_gold_checks == confusion.n_gold_checks == len(by_item) >= 3  # in each topic
    of_grade = [[truth_of(slot) for slot in by_item.values()].count(grade) for grade in range(4)]
    assert [row[1] for row in confusion.counts] == of_grade
    assert sum(map(sum, confusion.counts)) == len(by_item)


def test_a_computation_says_which_rows_it_saw(campaign, people, gold):
    judged_and_audited(campaign, people, gold, wanted=30)
    computation = recompute(campaign=campaign)
    newest = Judgment.objects.filter(item__campaign=campaign).order_by("-id").first()
    assert computation.last_judgment_id == newest.pk
    assert (computation.n_batches, computation.n_audits) == (1, 1)
    assert computation.n_judgments == Judgment.objects.filter(item__campaign=campaign).count()


def test_only_the_measures_asked_for_are_computed(campaign, people):
    judge_all(campaign, people)
    rows = recompute(campaign=campaign, measures=["P@5"]).estimates
    assert set(rows.values_list("measure", flat=True)) == {"P@5"}


def test_a_recomputation_can_be_cancelled_between_any_two_steps_and_leaves_nothing(campaign, people):
    judge_all(campaign, people)
    notes = []
    recompute(campaign=campaign, progress=lambda done, total, note: notes.append((done, total, note)))
    assert [done for done, *_ in notes] == list(range(notes[0][1] + 1))
    assert notes[-1][0] == notes[-1][1]
    there = Computation.objects.count(), Estimate.objects.count()
    for last in range(len(notes)):

        def stop(done, _total, _note, last=last):
            if done == last:
                raise JobCancelled

        with pytest.raises(JobCancelled), transaction.atomic():  # as a job does
            recompute(campaign=campaign, progress=stop)
        assert (Computation.objects.count(), Estimate.objects.count()) == there


@pytest.mark.django_db(transaction=True)
def test_a_judgment_of_a_campaign_already_read_is_in_the_next_computation(campaign, people, gold):
    judged_and_audited(campaign, people, gold, wanted=30)
    recompute(campaign=campaign)
    judgment = Judgment.objects.filter(assessor=people[0]).first()
    revise(
        assessor=people[0],
        token=judgment.lease_token,
        client_token=uuid.uuid4(),
        grade=(judgment.grade + 1) % 4,
    )
    completed = recompute(campaign=campaign)
    forget()
    afresh = recompute(campaign=campaign)
    assert numbers(completed) == numbers(afresh)
