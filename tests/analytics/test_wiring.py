"""From a recorded draw to a number: what is judged so far, topics a batch left out, scales, forecasts."""

import math
from dataclasses import fields
from itertools import combinations, product

import numpy as np
import polars as pl
import pytest
from small_campaign import (
    DEPTH,
    RUNS,
    give,
    judge_all,
    make_assessor,
    make_collection,
    make_undrawn,
    returned,
    slots,
    truth_of,
)

from analytics.estimation.estimate import estimate, in_columns
from analytics.estimation.fixed_size import fixed_size
from analytics.estimation.topics import over_topics
from analytics.frames import CampaignArrays, campaign_arrays
from analytics.numbers.columns import columns
from analytics.numbers.predictions import Predictions
from analytics.services.recomputation import recompute
from judging.services.campaigns import create_campaign, open_campaign
from sampling.draws import permanent_random_numbers
from sampling.frames import load_frame, newest_draw
from sampling.measures.families import run_weights
from sampling.measures.registry import parse_linear
from sampling.measures.sparse import from_dense
from sampling.models import Draw
from sampling.pooling import prior_utility
from sampling.prediction import cross_fitted, folds
from sampling.questions import Design
from sampling.services.drawing import draw
from sampling.services.forecasting import preview
from sampling.services.population import DrawRefused

POOL = ("pool", (), "DCG@10", DEPTH)


def arrays_of(**known):
    """Return arrays of which only some are known: what a property reads."""
    return CampaignArrays(**{field.name: None for field in fields(CampaignArrays)} | known)


def two_batches(state, first, both, topic):
    """Return the arrays of a completely judged draw; state 1 or 2 is the batch that drew the item, 0 none."""
    judged = np.flatnonzero(state)
    batch = state[judged] - 1
    n_drawn = np.zeros((2, int(topic.max()) + 1), dtype=np.int64)
    np.add.at(n_drawn, (batch, topic[judged]), 1)
    return arrays_of(
        judged=judged,
        batch=batch,
        first_probability=np.stack([first, both - first]),
        n_drawn=n_drawn,
        topic_index=topic,
    )


def everything(arrays):
    return np.ones(arrays.judged.size, dtype=bool)


# -- the chance to be judged --------------------------------------------------------------------------------


def test_two_complete_batches_are_unbiased_also_where_one_drew_nothing_of_a_topic():
    first, both = np.array([0.2, 0.3, 0.25, 0.1]), np.array([0.4, 0.6, 0.5, 0.5])
    utility, topic = np.array([1.0, 2.0, 0.0, 3.0]), np.array([0, 0, 0, 1])
    expected, control = 0.0, 0.0
    for chosen in product([0, 1, 2], repeat=4):
        state = np.array(chosen)
        chance = np.prod(np.where(state == 1, first, np.where(state == 2, both - first, 1 - both)))
        arrays = two_batches(state, first, both, topic)
        own = utility[arrays.judged]
        expected += chance * (own / arrays.draw_probability(everything(arrays))).sum()
        present = (arrays.n_drawn > 0)[:, topic[arrays.judged]]
        control += chance * (own / (arrays.first_probability[:, arrays.judged] * present).sum(axis=0)).sum()
    assert expected == pytest.approx(6.0, abs=1e-12)
    assert control > 7.0  # leaving out the batch that drew nothing here counts every item too often


@pytest.mark.parametrize(("earlier", "missing"), [(0.3, 0), (0.0, 1)])
def test_a_topic_that_only_a_new_batch_has_drawn_from_keeps_what_the_earlier_one_gave_it(earlier, missing):
    arrays = arrays_of(
        judged=np.array([0, 1]),
        batch=np.array([0, 0]),
        first_probability=np.array([[0.5, 0.5, earlier, earlier], [0.2, 0.2, 0.4, 0.4]]),
        n_drawn=np.array(
            [[2, 0], [0, 1]]
        ),  # of the second topic: nothing, then one item that nobody has judged yet
        topic_index=np.array([0, 0, 1, 1]),
        n_topics=2,
    )
    assert arrays.topics_without(everything(arrays)) == missing


def test_a_certain_item_that_is_not_judged_is_missed_although_others_of_its_topic_are():
    arrays = arrays_of(
        judged=np.array([1]),
        batch=np.array([1]),
        first_probability=np.array([[1.0, 0.5], [0.0, 0.4]]),
        n_drawn=np.array([[1], [1]]),  # the certain item in the first batch, the other in the second
        topic_index=np.array([0, 0]),
        n_topics=1,
    )
    assert arrays.topics_without(everything(arrays)) == 1


def test_a_random_part_of_a_poisson_draw_is_unbiased_whatever_is_judged_so_far():
    pi, utility = np.array([0.3, 0.9, 0.5, 0.2]), np.array([1.0, 0.0, 2.0, 4.0])
    topic = np.zeros(4, dtype=np.int64)
    expected = 0.0
    for chosen in product([False, True], repeat=4):
        drawn = np.flatnonzero(chosen)
        chance = np.prod(np.where(chosen, pi, 1 - pi))
        n_judged = min(2, drawn.size)  # two of however many there are
        parts = list(combinations(drawn.tolist(), n_judged))
        for part in parts:
            judged = np.array(part, dtype=np.int64)
            arrays = arrays_of(
                judged=judged,
                batch=np.zeros(judged.size, dtype=np.int64),
                first_probability=pi[None],
                n_drawn=np.array([[drawn.size]]),
                topic_index=topic,
            )
            values = utility[judged] / arrays.draw_probability(everything(arrays))
            expected += chance / len(parts) * values.sum()
    assert expected == pytest.approx(7.0, abs=1e-12)


@pytest.mark.django_db
def test_with_everything_judged_the_chance_is_the_recorded_one_also_where_batch_one_was_empty(tmp_path):
    campaign = make_undrawn(tmp_path)
    draw(campaign=campaign, design=Design(*POOL, 4), seed=1)
    draw(campaign=campaign, design=Design(*POOL, 16))
    open_campaign(campaign=campaign, actor=None)
    judge_all(campaign, [make_assessor(campaign, name) for name in ("ann", "ben")])
    arrays = campaign_arrays(campaign)
    assert (arrays.n_drawn[0] == 0).any()
    assert arrays.n_drawn[1].all()
    recorded = load_frame(newest_draw(campaign))["inclusion_probability"].to_numpy()[arrays.judged]
    assert arrays.draw_probability(everything(arrays)) == pytest.approx(recorded, abs=1e-12)


@pytest.mark.django_db
def test_what_was_said_of_checks_before_they_were_drawn_does_not_move_a_number_at_once(tmp_path):
    campaign = make_undrawn(tmp_path, gold_check_rate=0.5, decoys_per_check=0)
    draw(campaign=campaign, design=Design(*POOL, 15), seed=5)
    open_campaign(campaign=campaign, actor=None)
    people = [make_assessor(campaign, name) for name in ("ann", "ben", "cay")]
    judge_all(campaign, people)
    for slot in slots(campaign, "check", state="open"):
        give(people[slot.number - 1], slot, truth_of(slot))
    before = campaign_arrays(campaign)
    draw(campaign=campaign, design=Design(*POOL, 30))
    fresh = campaign_arrays(campaign)
    pairs = [[arrays.frame.row(int(place))[:2] for place in arrays.judged] for arrays in (before, fresh)]
    assert pairs[0] == pairs[1]
    assert fresh.draw_probability(everything(fresh)) == pytest.approx(
        before.draw_probability(everything(before)), abs=1e-12
    )
    judge_all(campaign, people)
    after = campaign_arrays(campaign)
    assert after.judged.size == after.n_drawn.sum()  # in the end each of them counts


# -- independent numbers ------------------------------------------------------------------------------------


def test_numbers_of_the_draw_the_folds_and_the_audit_know_nothing_of_each_other():
    topics, docs = ["t"] * 40_000, [f"d{number}" for number in range(40_000)]
    number = permanent_random_numbers(topics, docs, 20)
    fold, audit = folds(topics, docs, 20), permanent_random_numbers(topics, docs, 21)
    low = number < 0.1
    for part in range(10):
        share = (fold[low] == part).mean()
        assert abs(share - 0.1) < 5 * math.sqrt(0.09 / low.sum())
    correlated = np.corrcoef([number, fold, audit])[np.triu_indices(3, 1)]
    assert np.abs(correlated).max() < 5 / math.sqrt(40_000)
    assert abs(np.corrcoef(number, permanent_random_numbers(topics, docs, 20))[0, 1]) > 0.99  # the control


# -- predictions --------------------------------------------------------------------------------------------


def expectation(pi, weights, truth, predicted):
    """Return E of the difference estimate of the truth over all Poisson samples; `predicted(drawn)` gives f."""
    total = 0.0
    for chosen in product([False, True], repeat=pi.size):
        drawn = np.flatnonzero(chosen)
        f = predicted(drawn)
        value = (f * weights).sum() + ((truth - f) * weights / pi)[drawn].sum()
        total += np.prod(np.where(chosen, pi, 1 - pi)) * value
    return total


def test_predictions_learned_from_judges_who_err_leave_the_corrected_number_unbiased():
    pi, weights = np.array([0.5, 0.4, 0.7, 0.3, 0.6]), np.array([1.0, 0.5, -0.5, 2.0, 1.0])
    truth, said = np.array([1.0, 0.0, 1.0, 1.0, 0.0]), np.array([1.0, 1.0, 0.0, 1.0, 1.0])
    fold, topic = np.array([0, 0, 1, 1, 2]), np.array([0, 1, 0, 1, 0])
    features, prior = np.array([[0.0], [1.0], [2.0], [1.0], [3.0]]), np.full(5, 0.3)

    def fitted(drawn, parts):
        return cross_fitted(
            features=features,
            topic_index=topic,
            fold=parts,
            prior=prior,
            labelled=drawn,
            label=said[drawn],
            feature_ridge=0.1,
            topic_ridge=0.1,
        )

    def own_label_too(drawn):
        """The control: what was said of an item itself is its prediction."""
        return np.where(np.isin(np.arange(5), drawn), said, fitted(drawn, fold))

    wanted = (truth * weights).sum()
    assert expectation(pi, weights, truth, lambda drawn: fitted(drawn, fold)) == pytest.approx(
        wanted, abs=1e-9
    )
    assert abs(expectation(pi, weights, truth, own_label_too) - wanted) > 0.1


def test_an_item_without_a_score_is_predicted_like_its_neighbours():
    rng = np.random.default_rng(3)
    ranks = np.stack([rng.permutation(60) + 1 for _ in range(3)])
    score = np.where(np.arange(60) % 3 == 0, np.nan, rng.random(60))
    frame = pl.DataFrame({"prior": prior_utility(ranks, 60), "fold": rng.integers(0, 10, 60), "score": score})
    judged = np.arange(0, 60, 2)
    arrays = arrays_of(
        draw=Draw(selection="poisson", batch=1, parameters={"pooled": ["a", "b", "c"], "depth": 60}),
        frame=frame,
        returned=from_dense(ranks),
        topic_index=np.repeat([0, 1], 30),
        judged=judged,
        batch=np.zeros(judged.size, dtype=np.int64),
        n_learned=1,
        label_item=np.arange(judged.size),
        label_grade=(rng.random(judged.size) < 0.4).astype(np.int64),
        label_assessor=np.zeros(judged.size, dtype=np.int64),
        assessors=[object()],
        n_grades=2,
        relevant_grade=1,
    )
    vars(arrays)["ranks_of_pool"] = arrays.returned
    predicted = Predictions(arrays).of_gains(np.array([0.0, 3.0]), 1)
    assert np.isfinite(predicted).all()
    assert predicted.min() > 0.0
    assert predicted.max() < 3.0


# -- edges --------------------------------------------------------------------------------------------------


@pytest.mark.django_db
def test_a_scale_without_gains_serves_binary_measures_and_says_why_no_other(tmp_path):
    grades = [(0, "No", 0.0), (1, "Perhaps", 0.0), (2, "Yes", 0.0), (3, "Surely", 0.0)]
    campaign = create_campaign(
        collection=make_collection(tmp_path),
        name="no gains",
        user=None,
        grades=grades,
        judgments_per_item=2,
        gold_check_rate=0.0,
    )
    with pytest.raises(DrawRefused, match="no grade of this scale has a gain above 0 in DCG@10"):
        draw(campaign=campaign, design=Design(*POOL, 30), seed=3)
    draw(campaign=campaign, design=Design("pool", (), "P@10", DEPTH, 42), seed=3)
    open_campaign(campaign=campaign, actor=None)
    judge_all(campaign, [make_assessor(campaign, name) for name in ("ann", "ben")])
    rows = recompute(campaign=campaign).estimates.filter(run__run_id="run0", run_b=None, method="naive")
    assert rows.get(measure="P@10").value == pytest.approx(
        np.mean([(place + topic) % 4 > 0 for topic in range(3) for place in range(10)]), abs=1e-9
    )
    assert "no grade of this scale has a gain above 0 in nDCG@10" in rows.get(measure="nDCG@10").refusal


@pytest.mark.django_db
def test_the_forecast_of_the_papers_design_without_replacement_is_that_of_its_own_sizes(tmp_path):
    campaign = make_undrawn(tmp_path)
    asked = Design("pair", ("run0", "run2"), "DCG@10", DEPTH, 20, method="paper")
    shown = preview(campaign=campaign, design=asked)
    tables = [returned(run) for run in range(len(RUNS))]
    pairs = sorted(set().union(*tables))
    ranks = np.array([[table.get(pair, 0) for pair in pairs] for table in tables])
    w = run_weights(parse_linear("DCG@10"), ranks, 3)
    contrast = np.abs(w[0] - w[2])
    size = contrast * prior_utility(ranks[[0, 2]], DEPTH)
    low, high = 0.0, 1e6  # c of pi = min(1, c size), by bisection
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if np.minimum(1, middle * size).sum() < 20 else (low, middle)
    pi = np.minimum(1, high * size)
    prior = np.mean([16 / (np.where(row > 0, row, 10 * DEPTH) + 34) for row in ranks], axis=0)
    told = contrast > 0
    variance = ((1 - pi) / pi * contrast**2 * prior * (1 - prior) * 2.0**2)[told].sum()  # gains 1, 2, 3
    half_width = shown.widths["default"][shown.budgets.index(20)]
    assert half_width == pytest.approx(1.959963984540054 * math.sqrt(variance), rel=1e-9)


# -- intervals ----------------------------------------------------------------------------------------------


def test_in_a_small_stratum_of_unequal_chances_the_variance_is_nearer_to_the_truth_than_hajeks():
    """Every sample of a rejective draw of 5 of 9; both stay below: a stratum has to be larger for more."""
    odds = np.array([0.1, 0.2, 0.3, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0])
    error = np.array([1.0, 0.0, -1.0, 0.0, 0.5, 0.0, -0.5, 1.0, 1.0])
    samples = [list(sample) for sample in combinations(range(9), 5)]
    chance = np.array([odds[sample].prod() for sample in samples])
    chance /= chance.sum()
    pi = np.array(
        [sum(p for p, sample in zip(chance, samples, strict=True) if i in sample) for i in range(9)]
    )

    def made(sample, strata):
        return fixed_size(np.ones(5), error[sample], pi[sample], strata=strata, fewest=0)[0]

    in_stratum = [made(sample, np.zeros(5, dtype=np.int64)) for sample in samples]
    plain = [made(sample, None) for sample in samples]
    value = np.array([one.value for one in in_stratum])
    truth = (chance * (value - error.sum()) ** 2).sum()
    ours, hajeks = (
        (chance * np.array([one.standard_error**2 for one in ones])).sum() for ones in (in_stratum, plain)
    )
    assert (chance * value).sum() == pytest.approx(error.sum(), abs=1e-9)
    assert 1.1 * hajeks < ours < truth


def test_the_interval_for_other_topics_is_never_surer_than_that_for_these():
    parts = np.array([0.100, 0.101, 0.099])  # three topics that happen to lie close together
    over = in_columns([over_topics(parts)])

    def shown_with(error):
        these = in_columns([estimate(0.3, error**2, degrees_of_freedom=None, n=10, sources=("drawing",))])
        alone = (np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
        table = columns("P@10", "corrected", alone, these, settled={}, over_topics=over)
        return {name: column[0] for name, column in table.numbers.items()}

    shown = shown_with(0.2)
    assert shown["topics_standard_error"] == 0.2
    assert shown["topics_high"] == pytest.approx(0.3 + 1.959963984540054 * 0.2, abs=1e-9)
    assert shown["topics_low"] == pytest.approx(0.3 - 1.959963984540054 * 0.2, abs=1e-9)
    assert shown_with(1e-6)["topics_standard_error"] == pytest.approx(math.sqrt(3 * 1e-6), abs=1e-12)
