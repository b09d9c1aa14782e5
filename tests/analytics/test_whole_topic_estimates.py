"""Numbers of a campaign that samples whole topics: every kind of measure by its definition, and refusals."""

import pytest
from topic_campaign import OF_TOPIC, RUNS, SHARE, chances, judge, make_drawn, stored, values

from analytics.services.recomputation import recompute

pytestmark = pytest.mark.django_db


@pytest.fixture
def judged(tmp_path):
    campaign = make_drawn(tmp_path, gold=True)
    judge(campaign)
    return campaign


def test_every_measure_is_estimated_from_the_taken_topics(judged):
    computation = recompute(campaign=judged, measures=list(OF_TOPIC))
    _, taken = chances(judged)
    for name in OF_TOPIC:
        theta, rows = values(name), stored(computation, name)
        true = stored(computation, name, "true")
        for run, run_id in enumerate(RUNS):
            row = rows[run_id, None]
            assert not row.refusal
            assert row.n == taken.sum()
            assert true[run_id, None].value == pytest.approx(SHARE @ theta[run], abs=1e-12)
            # what any prediction leaves: within 4 standard errors of the truth, which are not 0
            assert 0 < row.standard_error < 0.2
            assert abs(row.value - SHARE @ theta[run]) < 4 * row.standard_error
            assert row.high - row.value == pytest.approx(row.value - row.low)
            assert row.high - row.value > 1.96 * row.standard_error
        pair = rows["run0", "run2"]
        assert pair.value == pytest.approx(rows["run0", None].value - rows["run2", None].value, abs=1e-12)


def test_documents_drawn_one_by_one_are_what_other_methods_need(judged):
    computation = recompute(campaign=judged, measures=["P@4"])
    for row in stored(computation, "P@4", "matrix-inverse").values():
        assert "whole topics were drawn" in row.refusal
    for row in stored(computation, "P@4", "corrected").values():
        assert row.refusal == "no audit is complete yet"


def test_with_a_topic_judged_in_part_every_measure_is_refused(tmp_path):
    campaign = make_drawn(tmp_path, gold=True)
    judge(campaign, leave=1)
    computation = recompute(campaign=campaign, measures=list(OF_TOPIC))
    _, taken = chances(campaign)
    for name in OF_TOPIC:
        for row in stored(computation, name).values():
            words = f"1 of the {taken.sum()} drawn topics are not judged completely (about 1 more needed)"
            assert row.refusal == words
    assert not stored(computation, "P@4", "true")["run0", None].refusal


def test_first_ranks_alone_say_nothing_of_the_pool_and_of_other_runs(tmp_path):
    campaign = make_drawn(tmp_path, question="pair", runs=("run0", "run1"), measure="ERR@4", budget=80)
    judge(campaign)
    computation = recompute(campaign=campaign, measures=["ERR@4", "P@4", "nDCG@4"])
    for name in ("ERR@4", "P@4"):
        rows = stored(computation, name)
        assert not rows["run0", "run1"].refusal
        assert not rows["run1", None].refusal
        assert "can never draw" in rows["run2", None].refusal
    assert all("can never draw" in row.refusal for row in stored(computation, "nDCG@4").values())
