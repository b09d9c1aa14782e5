"""What a computation advises: judgments, gold labels, audits; and whose confusion matrices it inverts."""

import math

import pytest
from small_campaign import (
    N_FRAME,
    TOPICS,
    judge_all,
    make_campaign,
    truth_of,
)
from verdict_campaigns import finished, people_of, rows_of

from analytics.services.recomputation import recompute
from sampling.services.auditing import audit

pytestmark = pytest.mark.django_db

Z95 = 1.959963984540054

ONE_MATRIX = "one matrix for all assessors"


# -- advice -------------------------------------------------------------------------------------------------


def test_an_unresolved_difference_says_how_many_gold_labels_are_needed(tmp_path, page):
    # Judges who say nothing: the errors of the classes are as large as the grades' own spread.
    campaign = finished(make_campaign(tmp_path), wanted=25, grade=lambda slot, place: 1)
    row = rows_of(recompute(campaign=campaign))["corrected", "DCG@10", "run0", "run2"]
    assert row.low < 0 < row.high
    # Everything was drawn, so all of the variance is the audit's: N^2 S^2 (1/m - 1/N), all N items weigh in.
    n, m = N_FRAME, row.n
    spread = row.standard_error**2 / (n**2 * (1 / m - 1 / n))
    q = (Z95 / row.value) ** 2
    needed = min(n, math.ceil(n**2 * spread * q / (1 + n * spread * q)))
    assert f"not resolved by {m} gold labels; about {needed} needed" in row.warning
    answer = page("pair", campaign, a="run0", b="run2", measure="DCG@10")
    assert row.warning[1:] in answer.context["verdict"]  # a sentence of its own: it begins with a capital
    assert f"about {needed} needed" in answer.content.decode()


def test_where_the_drawing_error_is_too_large_more_items_are_advised(tmp_path, page):
    campaign = finished(make_campaign(tmp_path, budget=30), wanted=N_FRAME)
    row = rows_of(recompute(campaign=campaign))["corrected", "DCG@10", "run0", "run2"]
    assert row.low < 0 < row.high
    advice = "the drawing error alone is larger than the difference: judge more items"
    assert row.warning.endswith(advice)
    assert advice in page("pair", campaign, a="run0", b="run2", measure="DCG@10").content.decode()


def test_a_resolved_difference_and_a_single_run_have_no_advice(tmp_path):
    rows = rows_of(recompute(campaign=finished(make_campaign(tmp_path))), method="corrected")
    assert "not resolved" not in rows["corrected", "P@10", "run0", "run1"].warning
    assert not [key for key, row in rows.items() if key[3] is None and "not resolved" in row.warning]


# -- audits -------------------------------------------------------------------------------------------------


def expected_after(campaign, each, total, times):
    """Audit so many times; return the expected number of gold items after each, None for no audit."""
    made = [audit(campaign=campaign, items_each_time=each, items_in_total=total) for _ in range(times)]
    return [one and one.expected_in_total for one in made]


def test_fewer_items_each_time_do_not_stall_the_audits(tmp_path):
    campaign = make_campaign(tmp_path)
    judge_all(campaign, people_of(campaign))
    assert expected_after(campaign, 20, 40, 1) == [20]
    assert expected_after(campaign, 5, 40, 3) == [25, 30, 35]


def test_when_the_total_is_reached_there_is_no_further_audit(tmp_path):
    campaign = make_campaign(tmp_path)
    judge_all(campaign, people_of(campaign))
    assert expected_after(campaign, 20, 40, 4) == [20, 40, None, None]
    assert expected_after(campaign, 20, 30, 1) == [None]  # lowered below what has been spent
    assert campaign.audits.count() == 2


def test_the_total_is_spent_in_step_with_the_judging(tmp_path):
    campaign = make_campaign(tmp_path)
    people = people_of(campaign)
    judge_all(campaign, people, topic__topic_id="t0")  # a third
    assert expected_after(campaign, 10, 12, 3) == [4, None, None]
    judge_all(campaign, people, topic__topic_id="t1")
    assert expected_after(campaign, 10, 12, 2) == [8, None]
    judge_all(campaign, people)
    assert expected_after(campaign, 3, 12, 2) == [11, 12]
    newest = campaign.audits.latest("sequence").entries.values_list("item__topic__topic_id", flat=True)
    assert set(newest) == set(TOPICS)


# -- the matrix inverse -------------------------------------------------------------------------------------


def inverse_rows(campaign):
    return rows_of(
        recompute(campaign=campaign), method="matrix-inverse", measure__in=["DCG@10", "P@10"]
    ).values()


def test_usable_matrices_are_each_assessors_own(tmp_path):
    rows = inverse_rows(finished(make_campaign(tmp_path)))
    assert {row.refusal for row in rows} == {""}
    assert not [row.warning for row in rows if ONE_MATRIX in row.warning]


def test_where_one_assessors_matrix_cannot_be_used_all_share_one_and_the_warning_says_so(tmp_path):
    campaign = finished(make_campaign(tmp_path), grade=lambda slot, place: 3 if place else truth_of(slot))
    rows = [row for row in inverse_rows(campaign) if row.measure == "P@10"]
    assert [row.run_b is None for row in rows if row.value is not None].count(True) == 3
    for row in rows:
        assert f"{ONE_MATRIX}: 1 of 2 assessors' matrices cannot be used" in row.warning, row.refusal
