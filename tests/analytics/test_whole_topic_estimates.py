"""Numbers of a campaign that samples whole topics: every kind of measure by its definition, and refusals."""

import numpy as np
import polars as pl
import pytest
from topic_campaign import (
    DEPTH,
    N_TOPICS,
    RUNS,
    TOPICS,
    grade_of,
    judge,
    make_drawn,
    returned,
    weight_of,
)

from analytics.models import Estimate
from analytics.services.recomputation import recompute
from sampling.frames import load_frame

pytestmark = pytest.mark.django_db

SHARE = np.array([weight_of(topic) for topic in range(N_TOPICS)], dtype=float)
SHARE /= SHARE.sum()
DISCOUNT = 1 / np.log2(np.arange(DEPTH) + 2)


def gains(run, topic):
    return np.array([grade_of(TOPICS[topic], one) for one in returned(run, topic)], dtype=float)


def all_gains(topic):
    return sorted((grade_of(TOPICS[topic], f"{TOPICS[topic]}-{d}") for d in range(6)), reverse=True)


def ndcg(run, topic):
    ideal = DISCOUNT @ np.array(all_gains(topic)[:DEPTH])
    return DISCOUNT @ gains(run, topic) / ideal if ideal else 0.0


def precision(run, topic):
    return (gains(run, topic) >= 1).mean()


def err(run, topic):
    value, goes_on = 0.0, 1.0
    for rank, grade in enumerate(gains(run, topic), 1):
        stop = (2**grade - 1) / 8
        value, goes_on = value + goes_on * stop / rank, goes_on * (1 - stop)
    return value


def average_precision(run, topic):
    relevant = gains(run, topic) >= 1
    hits = np.cumsum(relevant) / np.arange(1, DEPTH + 1)
    n = sum(grade >= 1 for grade in all_gains(topic))
    return (hits * relevant).sum() / n if n else 0.0


OF_TOPIC = {"nDCG@4": ndcg, "P@4": precision, "ERR@4": err, "AP@4": average_precision}


def values(name):
    return np.array([[OF_TOPIC[name](run, topic) for topic in range(N_TOPICS)] for run in range(len(RUNS))])


def chances(campaign):
    """Return rho and which topics were taken, from the frame file."""
    frame = load_frame(campaign.draws.order_by("-batch").first())
    columns = pl.col("topic_probability").first(), pl.col("drawn_in").max()
    rows = frame.group_by("topic_id").agg(*columns).sort("topic_id")
    return rows["topic_probability"].to_numpy(), rows["drawn_in"].to_numpy() > 0


def stored(computation, measure, method="naive"):
    rows = Estimate.objects.filter(computation=computation, measure=measure, method=method)
    return {
        (row.run.run_id, row.run_b and row.run_b.run_id): row for row in rows.select_related("run", "run_b")
    }


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
    for method in ("corrected", "matrix-inverse"):
        for row in stored(computation, "P@4", method).values():
            assert "whole topics were drawn" in row.refusal


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
