"""Policies of judging again: what each chooses, and that audits correct without bias after any of them."""

from dataclasses import replace

import numpy as np
import pytest

from analytics.estimation.correction import correct
from analytics.estimation.samples import AuditSample
from sampling.rejudging_policies import (
    REJUDGING_POLICIES,
    RejudgingCandidates,
    rejudging_policy_keys,
    rejudging_policy_of,
)

ITEMS = RejudgingCandidates(
    is_relevant=np.array([True, True, False, True, True]),
    inclusion_probability=np.array([0.5, 0.004, 0.001, 0.002, 0.01]),
    random_number=np.array([0.3, 0.9, 0.1, 0.7, 0.5]),
    priority=np.array([0.2, 0.0, 0.9, 0.4, 0.2]),
)


@pytest.mark.parametrize(
    ("key", "expected"),
    [("influence", [2, 3, 0, 4]), ("lowest-probability", [3, 1]), ("random", [2, 0, 4, 3, 1])],
)
def test_the_order_of_each_policy(key, expected):
    assert rejudging_policy_of(key).order(ITEMS).tolist() == expected


def test_without_error_rates_influence_chooses_nothing():
    assert rejudging_policy_of("influence").order(replace(ITEMS, priority=None)).size == 0


def test_an_unknown_policy_is_refused():
    with pytest.raises(ValueError, match=r"the policy must be one of .*, got 'best'"):
        rejudging_policy_of("best")
    assert len(set(rejudging_policy_keys())) == len(REJUDGING_POLICIES)


# -- the corrected number ----------------------------------------------------------------------------------------

N, N_AUDITS = 400, 600


def mean_error(order_of, rng, *, looks_at_audits=False):
    """Return the mean error of the corrected share of relevant documents over many audits, and its standard error."""
    truth = rng.random(N) < 0.3
    chance = rng.uniform(0.2, 1.0, N)  # of the audit
    errors = []
    for _ in range(N_AUDITS):
        votes = np.where(truth, rng.random((2, N)) < 0.8, rng.random((2, N)) < 0.35).astype(int)
        audited = rng.random(N) < chance * 0.4
        items = RejudgingCandidates(votes[0] == 1, rng.uniform(0.001, 0.02, N), rng.random(N), rng.random(N))
        order = order_of(items)
        if looks_at_audits:
            order = order[~audited[order]]
        again = np.zeros(N, dtype=bool)
        again[order[:150]] = True
        total = votes[0] + np.where(again, votes[1], 0)
        classes = np.rint(12 * total / np.where(again, 2, 1)).astype(int)
        sample = AuditSample(
            draw_probability=np.ones(N),
            bronze_class=classes,
            audited=audited,
            gold_grade=np.where(audited, truth, 0).astype(int),
            audit_probability=chance * 0.4,
            n_grades=2,
        )
        found = correct(np.full((1, N), 1 / N), sample, [0.0, 1.0]).estimates
        errors.append(float(found.value[0]) - truth.mean())
    return np.mean(errors), np.std(errors) / np.sqrt(N_AUDITS)


@pytest.mark.parametrize("policy", REJUDGING_POLICIES, ids=lambda policy: policy.key)
def test_after_one_more_judgment_the_corrected_number_is_unbiased(policy):
    error, standard_error = mean_error(policy.order, np.random.default_rng(11))
    assert abs(error) < 3.5 * standard_error + 0.001  # of second order: class means come from the same audit


def test_a_policy_that_looked_at_audits_would_bias_it():
    rarest = rejudging_policy_of("lowest-probability").order

    def every_relevant(items):
        return np.flatnonzero(items.is_relevant) if items.is_relevant.any() else rarest(items)

    error, standard_error = mean_error(every_relevant, np.random.default_rng(12), looks_at_audits=True)
    assert abs(error) > 6 * standard_error
