"""Two hundred random campaigns: no sentence calls a run higher, or better, whose adjusted p is not below .05."""

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from analytics.estimation.claims import CLAIMS, LIKE_THESE, family_of
from analytics.estimation.estimate import estimates
from analytics.estimation.targets import TargetWeights
from analytics.estimation.topics import over_topics_of
from analytics.estimation.wording import sentence
from analytics.numbers.columns import columns
from analytics.services import comparisons
from analytics.services.comparisons import Comparisons, _TestedPairs
from analytics.services.estimate_rows import unsaved_rows
from judging.models import Run
from sampling.measures.sparse import from_dense

NAMES = ("alpha", "beta", "gamma")
RUNS = [Run(pk=place, run_id=name) for place, name in enumerate(NAMES, start=1)]
PAIRS = list(combinations(range(3), 2))
FAMILIES = ("all", "baseline:beta", "runs:alpha,gamma")


def make_campaign(rng):
    """Return the rows of a measure, the values of topics, and by claim and pair p as SciPy has it."""
    n, error = int(rng.integers(2, 60)), rng.uniform(0.01, 0.4)
    z = rng.normal(0, rng.uniform(0.05, 1), (3, n)) + rng.normal(0, rng.choice([0, 0.1, 0.5]), (3, 1))
    first, second = np.array(PAIRS).T
    means = z.mean(axis=1)
    these = estimates(
        np.concatenate([means, means[first] - means[second]]),
        {"gold": np.full(6, error**2)},
        degrees_of_freedom=np.inf,
        n=np.full(6, 100),
        refusals={},
    )
    over = over_topics_of(TargetWeights(from_dense(np.eye(3))), z / n)
    table = columns(
        "P@10", "corrected", (first, second), these, settled={}, over_topics=over, tested=True, topic_values=z
    )
    rows = unsaved_rows(SimpleNamespace(runs=RUNS), [table])[3:]
    p = {}
    for place, (a, b) in enumerate(PAIRS):
        judging = 2 * stats.norm.sf(abs(means[a] - means[b]) / error)
        rows[place].pk = place + 1
        p["these-topics", place] = judging
        p["topics-like-these", place] = max(judging, stats.ttest_rel(z[a], z[b]).pvalue)
    return rows, {run.pk: row for run, row in zip(RUNS, z, strict=True)}, p


def compared(rows, values, family, claim):
    """Return the comparisons of these rows, as they would be read from the database."""
    made = Comparisons(None, "P@10", family, claim)
    inside = [row for row in rows if (row.run.run_id, row.run_b.run_id) in family]
    made.__dict__["_values"] = values
    made.__dict__["_tested_pairs"] = _TestedPairs(
        [row.pk for row in inside],
        [(row.run.pk, row.run_b.pk) for row in inside],
        {
            "these-topics": [row.p_value for row in inside],
            "topics-like-these": [row.topics_p_value for row in inside],
        },
    )
    return [made.of(row) for row in rows]


def adjusted(p):
    """Return Holm's adjusted p by name, one after another."""
    most, found = 0.0, {}
    for number, (name, one) in enumerate(sorted(p.items(), key=lambda item: item[1])):
        most = found[name] = max(most, min(1.0, one * (len(p) - number)))
    return found


def test_no_sentence_calls_a_run_higher_or_better_without_an_adjusted_p_below_the_level(monkeypatch):
    monkeypatch.setattr(
        comparisons, "randomisation_p", lambda values: np.ones(1)
    )  # 10,000 flips say nothing here
    rng = np.random.default_rng(16)
    n_higher = n_else = n_wrong_alone = 0
    for _ in range(200):
        rows, values, p = make_campaign(rng)
        for claim in CLAIMS:
            for name in FAMILIES:
                family = family_of(name, NAMES)
                inside = [place for place, (a, b) in enumerate(PAIRS) if (NAMES[a], NAMES[b]) in family]
                expected = adjusted({place: p[claim.key, place] for place in inside})
                for place, pair in enumerate(compared(rows, values, family, claim)):
                    words = sentence(pair)
                    is_sure = expected.get(place, 1.0) < 0.05
                    assert ("higher" in words) == is_sure, words
                    assert "better" not in words
                    assert pair.test.p == pytest.approx(p[claim.key, place], rel=1e-9)
                    assert (pair.test.p_adjusted is not None) == (place in inside)
                    if place in inside:
                        assert pair.test.p_adjusted == pytest.approx(expected[place], rel=1e-9)
                    n_higher, n_else = n_higher + is_sure, n_else + (not is_sure)
                    n_wrong_alone += pair.test.p < 0.05 and not is_sure
    assert n_higher > 500
    assert n_else > 500
    # the control: going by p alone would call these higher
    assert n_wrong_alone > 50


def test_the_claim_for_topics_like_these_is_never_the_surer_one():
    rng = np.random.default_rng(17)
    for _ in range(200):
        rows, _, _ = make_campaign(rng)
        for row in rows:
            assert row.topics_low <= row.low <= row.high <= row.topics_high
            assert row.topics_p_value >= row.p_value
    assert CLAIMS[0] is LIKE_THESE
