"""One step: where a number is refused, the limits that are known in advance, and wrong input."""

import re
from dataclasses import replace

import numpy as np
import pytest
from one_step_samples import GRADED, MANY_RANKS, graded_world, measure_of, sampled

from analytics.estimation.estimate import Estimate, Refusal
from analytics.estimation.one_step import StairPhases, one_step
from analytics.estimation.one_step_limits import AuditSize, refusal_by_size
from analytics.estimation.samples import Frame
from sampling.measures.registry import parse_ratio
from sampling.measures.sparse import from_dense


def many_items(surprise, n=400):
    """Return an audit of a pool of ten topics whose gold differs from what is predicted by `surprise`, 0 to 1."""
    rng = np.random.default_rng(4)
    topic = np.repeat(np.arange(10), n // 10)
    p = rng.uniform(0.2, 0.6, n)
    gold = (rng.random(n) < p + surprise * (1 - p)).astype(float)
    items = StairPhases(
        Frame(10, topic, np.arange(n), np.ones(n)),
        np.ones(1),
        rng.random(n) < 0.1,
        gold[None],
        np.full(n, 0.1),
        p[None],
        p[None],
    )
    ranks = np.zeros((2, n), dtype=np.int64)
    for one in range(10):
        for run in range(2):
            ranks[run, rng.choice(np.flatnonzero(topic == one), 10, replace=False)] = np.arange(1, 11)
    return items, from_dense(ranks)


def test_a_number_is_refused_by_name_where_b_squared_is_more_than_a_quarter_of_v_and_there_alone():
    items, ranks = many_items(1.0)
    free = one_step(measure_of("R@10"), items, ranks, fewest=0)
    found = one_step(measure_of("R@10"), items, ranks).estimates
    linear = free.estimates.standard_error**2 - free.second_order**2
    assert list(found.refusals) == np.flatnonzero(free.second_order**2 > linear / 4).tolist() == [1, 2]
    assert isinstance(found[0], Estimate)
    refused = found[1]
    assert isinstance(refused, Refusal)
    assert refused.reason.startswith("R@10 bends too much around what is predicted")
    # of 400 items in ten topics the bootstrap needs 80, a fifth of the pool, and for its ratio of sums 8 a topic
    assert refused.needed == 80 - int(items.audited.sum()) > 0
    assert f"the bootstrap serves: {refused.needed} gold labels are missing" in refused.reason


def test_few_audited_items_and_items_without_a_chance_are_refused():
    items, ranks = many_items(0.0)
    few = replace(items, audited=items.audited & (np.cumsum(items.audited) <= 9))
    assert one_step(measure_of("R@10"), few, ranks).estimates[0].needed == 1
    # more than ten items a topic are predicted relevant: one more would not change the ideal ranking of nDCG@10
    listed = int(np.count_nonzero(ranks.dense()[0][few.audited]))
    assert 0 < listed < 9
    assert one_step(measure_of("nDCG@10"), few, ranks).estimates[0].needed == 10 - listed
    chance = items.audit_probability.copy()
    chance[np.flatnonzero(~items.audited)[0]] = 0
    blind = replace(items, audit_probability=chance)
    assert "have no audit probability" in one_step(measure_of("R@10"), blind, ranks).estimates[0].reason


@pytest.mark.parametrize(
    ("name", "size", "words", "needed"),
    [
        ("nDCG@10", (150, 3161, 50, 520), None, None),
        ("nDCG@10", (99.5, 3161, 50, 520), "nDCG@10 needs 100 gold labels: 1 gold label is missing", 1),
        (
            "nDCG@10",
            (250, 3161, 50, 520),
            "holds from 100 to 200 gold labels of a whole pool, .*383 gold labels are missing",
            383,
        ),
        ("nDCG@10", (150, 3161, 49, 520), "nDCG@10 in one step needs 50 topics, got 49", 483),
        ("nDCG@20", (150, 3161, 50, 520), "nDCG@20 in one step ends at rank 10", 483),
        ("nDCG", (150, 3161, 50, 520), "nDCG in one step ends at rank 10", 483),
        ("nDCG@10", (150, 3161, 50, 520, 2), "takes one gain above 0, and this scale has 2", 483),
        ("nDCG@10", (125.0000001, 3161, 50, 520, 1, False), None, None),
        (
            "nDCG@10",
            (126, 3161, 50, 520, 1, False),
            "and to 125 where a part of the pool was drawn; .*507 gold labels are missing",
            507,
        ),
        ("nDCG@10", (99.9999999, 3161, 50, 520), None, None),
        ("nDCG@10", (200.0000001, 3161, 50, 520), None, None),
        (
            "nDCG@10",
            (201, 29663, 50, 520),
            "from 20% of the pool, or 100 a topic, the bootstrap serves",
            4799,
        ),
        ("nDCG@10", (150, 3161, 50, 499), "needs 10 relevant documents predicted a topic, got 10.0", 483),
        (
            "AP@10",
            (150, 3161, 50, 520),
            "AP@10 has no interval from few gold labels; .* 20% of the pool",
            483,
        ),
        (
            "R@10",
            (1000, 3161, 50, 520),
            "R@10 has .* spread evenly, some in every topic; there are enough by their number, so audit evenly, as the",
            0,
        ),
        ("R@10", (631.5, 3161, 50, 520), "the bootstrap serves: 1 gold label is missing. A sum", 1),
    ],
)
def test_limits_are_known_in_advance_and_say_what_is_missing(name, size, words, needed):
    found = refusal_by_size(measure_of(name), AuditSize(*size))
    if words is None:
        assert found is None
    else:
        assert re.search(words, found.reason)
        assert not re.search(r"\b0 gold labels", found.reason)
        assert found.needed == needed


def test_a_pool_without_items_or_topics_is_no_audit():
    with pytest.raises(ValueError, match="n_items and n_topics must be at least 1, got 0 and 1"):
        refusal_by_size(measure_of("nDCG@10"), AuditSize(100, 0, 1, 1))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"audited": np.ones(10)}, "audited must be 10 booleans"),
        ({"audit_probability": np.full(10, 1.5)}, r"audit_probability must be in \[0, 1\], got 1.5"),
        ({"audit_probability": np.zeros(10)}, "of an audited item must be above 0"),
        ({"gold": np.full((2, 10), 2.0)}, r"gold must be in \[0, 1\], got 2.0"),
        ({"before": GRADED[::-1]}, "before must not rise from a stair to the next"),
        ({"after": np.full((2, 10), np.nan)}, "after"),
        ({"after": np.zeros((1, 10))}, "after"),
        ({"steps": np.ones(1)}, "gold"),
    ],
)
def test_wrong_input_is_named(change, words):
    world, gold = graded_world()
    items = sampled(np.ones(10, bool), np.arange(10) % 2 == 0, gold, **world)
    with pytest.raises(ValueError, match=words):
        replace(items, **change)


def test_wrong_measures_and_ranks_are_named():
    world, gold = graded_world()
    items = sampled(np.ones(10, bool), np.arange(10) % 2 == 0, gold, **world)
    with pytest.raises(ValueError, match="one step takes a mean over topics, got micro nDCG@3"):
        one_step(parse_ratio("micro nDCG@3"), items, from_dense(MANY_RANKS))
    with pytest.raises(ValueError, match="AP@3 needs labels of one stair of step 1"):
        one_step(parse_ratio("AP@3"), items, from_dense(MANY_RANKS))
    with pytest.raises(ValueError, match="ranks must be of 10 items, got 9"):
        one_step(parse_ratio("nDCG@3"), items, from_dense(MANY_RANKS[:, :9]))


def test_topics_without_predicted_items_and_runs_that_return_nothing_give_numbers():
    items, ranks = many_items(0.0)
    none = items.before * (items.frame.topic_index[None] > 0)
    empty = replace(items, before=none, after=none, gold=none.round())
    table = ranks.dense()
    table[1] = 0
    for name in ("nDCG@10", "AP@10", "R@10"):
        found = one_step(measure_of(name), empty, from_dense(table), fewest=0)
        assert np.isfinite(found.estimates.value).all()
        assert np.isfinite(found.estimates.standard_error).all()
        assert found.estimates.value[1] == 0
