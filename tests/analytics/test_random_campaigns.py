"""Two hundred campaigns with numbers at random: nothing is called higher without an adjusted p below .05.

Every pair, measure, claim, family and adjustment of each; the adjustment is Holm's, counted here anew.
"""

from itertools import combinations

import numpy as np
import pytest
from small_campaign import make_campaign
from stored_numbers import add_runs

from analytics.estimation import wording
from analytics.estimation.claims import CLAIMS, LIKE_THESE, THESE
from analytics.estimation.wording import sentence
from analytics.models import Computation, Estimate
from analytics.services import comparisons
from analytics.services.claim_intervals import topic_values
from analytics.services.comparisons import Comparisons
from analytics.services.families import asked_family, declare_family
from analytics.services.verdicts import reverse_difference

pytestmark = pytest.mark.django_db

CAMPAIGNS, MEASURES, LEVEL = 200, ("DCG@10", "nDCG@10"), 0.05
FAMILIES = ("", "question", "all", "baseline:system001", "runs:system000,system002,system003")


@pytest.fixture
def campaign(tmp_path):
    """A campaign whose question is about its three first runs; the five that follow came later."""
    made = make_campaign(tmp_path)
    add_runs(made, 5)
    declare_family(campaign=made, user=None, name="runs:system000,system001")
    return made


def random_rows(rng, made, runs, measure):
    """Yield differences with p at random, often near the level; some are refused, of one claim, or of equal runs."""
    for run, run_b in combinations(runs, 2):
        shared = {"computation": made, "measure": measure, "method": "corrected", "run": run, "run_b": run_b}
        kind = rng.choice(["usual", "usual", "usual", "usual", "refused", "older", "same"])
        if kind == "refused":
            yield Estimate(**shared, n=0, refusal="no audit is complete yet")
            continue
        if kind == "same":
            zero = {"value": 0.0, "low": 0.0, "high": 0.0, "standard_error": 0.0}
            yield Estimate(
                **shared, **zero, n=0, p_value=1.0, topics_p_value=1.0, warning="they are the same"
            )
            continue
        value, error = rng.normal(), abs(rng.normal()) + 0.01
        p = float(rng.choice([rng.random(), 0.05, 0.0499, 0.0501, 1e-6, rng.random() ** 6]))
        of_topics = {} if kind == "older" else {
            "topics_low": value - 3 * error,
            "topics_high": value + 3 * error,
            "topics_standard_error": 1.5 * error,
            "topics_degrees_of_freedom": 44.0,
            "topics_p_value": min(1.0, max(p, float(rng.choice([0.0, 0.0499, 0.05, p, rng.random() ** 4])))),
        }  # fmt: skip
        yield Estimate(
            **shared, **of_topics, value=value, standard_error=error, low=value - 2 * error, high=value + 2 * error,
            p_value=p, n=60, sources=["gold"],
        )  # fmt: skip


def random_computation(rng, campaign, runs):
    made = Computation.objects.create(
        campaign=campaign, last_judgment_id=1, n_judgments=84, n_items=42, n_audited=30, n_gold_checks=0, seconds=1
    )  # fmt: skip
    Estimate.objects.bulk_create(
        [row for measure in MEASURES for row in random_rows(rng, made, runs, measure)]
    )
    return made


def adjusted_by_hand(rows, family, claim):
    """Return Holm's p of the tested pairs of the family: the k-th smallest of m by m - k + 1, never falling."""
    name = "p_value" if claim is THESE else "topics_p_value"
    tested = [row for row in rows if (row.run.run_id, row.run_b.run_id) in family and row.p_value is not None]
    known = sorted((getattr(row, name), row.pk) for row in tested if getattr(row, name) is not None)
    found, before = {}, 0.0
    for place, (p, key) in enumerate(known):
        before = max(before, min(1.0, p * (len(known) - place)))
        found[key] = before
    return found


def told(campaign, computations):
    """Yield every sentence with the p, adjusted by hand, of the comparison that it is about."""
    families = [asked_family(campaign, name) for name in FAMILIES]
    for made in computations:
        stored = list(made.estimates.select_related("run", "run_b"))
        for measure in MEASURES:
            rows = [row for row in stored if row.measure == measure]
            for family in families:
                for claim in CLAIMS:
                    among = Comparisons(made, measure, family, claim)
                    by_hand = adjusted_by_hand(rows, family, claim)
                    for row in rows:
                        yield among.of(row), by_hand.get(row.pk)


def test_nothing_is_called_higher_or_better_with_an_adjusted_p_of_the_level_or_more(campaign, monkeypatch):
    rng, runs = np.random.default_rng(31), list(campaign.collection.runs.order_by("run_id"))
    computations = [random_computation(rng, campaign, runs) for _ in range(CAMPAIGNS)]
    # No values of topics are stored here: that is read once, and not again for each of 4,000 choices.
    assert [topic_values(made, measure) for made in computations[:3] for measure in MEASURES] == [{}] * 6
    monkeypatch.setattr(comparisons, "topic_values", lambda *_: {})
    n, n_higher, n_outside = 0, 0, 0
    for pair, p in told(campaign, computations):
        text = sentence(pair)
        is_sure = p is not None and p < LEVEL and bool(pair.value)
        assert ("higher" in text) == is_sure, text
        assert "better" not in text
        if is_sure:
            run, run_b = (pair.run, pair.run_b) if pair.value > 0 else (pair.run_b, pair.run)
            assert text.startswith(f"{run} has a higher {pair.measure} than {run_b}: mean difference +")
            assert pair.higher == run
        n, n_higher, n_outside = n + 1, n_higher + is_sure, n_outside + (p is None)
    assert n == CAMPAIGNS * len(MEASURES) * len(FAMILIES) * len(CLAIMS) * len(list(combinations(runs, 2)))
    assert 0.02 * n < n_higher < 0.5 * n
    assert n_outside > 0.3 * n
    # the control: at a looser level something is called higher that is not
    monkeypatch.setattr(wording, "LEVEL", 0.2)
    loose = told(campaign, computations[:5])
    assert any("higher" in sentence(pair) and (p is None or p >= LEVEL) for pair, p in loose)


def test_turned_round_a_difference_says_the_same(campaign):
    rng, runs = np.random.default_rng(32), list(campaign.collection.runs.order_by("run_id"))
    made = random_computation(rng, campaign, runs)
    family = asked_family(campaign, "all")
    n = 0
    for claim in (LIKE_THESE, THESE):
        among = Comparisons(made, "DCG@10", family, claim)
        for row in made.estimates.filter(measure="DCG@10").select_related("run", "run_b"):
            before = among.of(row)
            after = among.of(reverse_difference(row))
            assert after.higher == before.higher
            if before.higher:
                assert sentence(after) == sentence(before)
                n += 1
    assert n > 3
