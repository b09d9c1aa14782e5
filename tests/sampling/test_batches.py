"""Later batches, without a database: sums, nesting, and exact unbiasedness by enumerating every possible campaign."""

import itertools
import math

import numpy as np
import pytest

from sampling.batches import draws_to_reach, learned_sizes, probabilities_by_fold, rescaled_by_fold
from sampling.contrasts import Importance, default_sizes
from sampling.designs import inclusion_probabilities
from sampling.prediction import cross_fitted
from sampling.questions import Design, nested_probabilities

# Six items in two folds, with labels and weights so uneven that a probability which looks at them is soon seen to.
LABEL = np.array([1.0, 0.0, 1.0, 1.0, 0.0, 0.0])
WEIGHT = np.array([1.0, 0.8, -0.9, 0.7, -1.0, 0.6])
FOLD = np.array([0, 0, 0, 1, 1, 1])
PRIOR = np.array([0.5, 0.4, 0.3, 0.6, 0.5, 0.2])
FEATURES = np.array([[0.0], [1.0], [2.0], [0.5], [1.5], [2.5]])
TRUTH = float((LABEL * WEIGHT).sum())
DESIGN = Design("pair", ("a", "b"), "P@1", 1, 4, other_runs_share=0.1, uniform_share=0.1, prior="judgments")
SAYS = Importance(np.square(WEIGHT), np.abs(WEIGHT), np.full(6, 1 / 6))
FRAME_SIZES = default_sizes(DESIGN, SAYS, PRIOR)
FIRST = inclusion_probabilities(FRAME_SIZES, 2.0)


def predicted(drawn):
    """Return the cross-fitted prediction from the labels of these items. Little is held near the prior."""
    return cross_fitted(
        features=FEATURES,
        topic_index=np.zeros(6, dtype=np.int64),
        fold=FOLD,
        prior=PRIOR,
        labelled=np.array(drawn, dtype=np.int64),
        label=LABEL[list(drawn)],
        feature_ridge=0.1,
    )


def learned(f, earlier, count):
    """Return the probabilities of a batch that learned, as the product makes them."""
    sizes = learned_sizes(DESIGN, SAYS, prior=PRIOR, learned=f, fold=FOLD)
    how = {"frame_sizes": FRAME_SIZES, "unlearned": FIRST, "earlier": earlier}
    return probabilities_by_fold(sizes, FOLD, **how, expected_count=count)


def after_two(f):
    return learned(f, FIRST, 3.5)


def after_three_learned(f):
    return learned(f, after_two(f), 4.5)


def after_three_plain(f):
    how = {"frame_sizes": FRAME_SIZES, "unlearned": FIRST, "earlier": after_two(f)}
    return probabilities_by_fold(FRAME_SIZES, FOLD, **how, expected_count=4.5)


def all_folds_at_once(f):
    """Return what the sizes give when one constant serves all folds: wrong."""
    return nested_probabilities(default_sizes(DESIGN, SAYS, f), FIRST, 3.5)


def plain_top_up_of_all_folds_at_once(f):
    return nested_probabilities(FRAME_SIZES, after_two(f), 4.5)


def subsets(items):
    return itertools.chain.from_iterable(itertools.combinations(items, n) for n in range(len(items) + 1))


def expectation(later, predict_from_all=False):
    """Return the expected estimate over everything that can be drawn; `later` gives pi of all batches together."""
    total = chance_of_all = 0.0
    for first in subsets(range(6)):
        f = predicted(first)
        pi = later(f)
        assert np.all(pi >= FIRST)
        inside = np.isin(np.arange(6), first)
        p_first = float(np.where(inside, FIRST, 1 - FIRST).prod())
        rest = [item for item in range(6) if item not in first]
        new = (pi - FIRST) / (
            1 - FIRST
        )  # an item's number is above the first probability: is it below the later?
        for second in subsets(rest):
            chance = p_first * math.prod(new[i] if i in second else 1 - new[i] for i in rest)
            if chance == 0:
                continue
            drawn = [*first, *second]
            f = predicted(drawn) if predict_from_all else f
            estimate = (f * WEIGHT).sum() + ((LABEL - f) * WEIGHT / pi)[drawn].sum()
            total += chance * float(estimate)
            chance_of_all += chance
    assert chance_of_all == pytest.approx(1, abs=1e-12)
    return total


@pytest.mark.parametrize("later", [after_two, after_three_learned, after_three_plain])
def test_batches_that_learned_are_exactly_unbiased(later):
    assert expectation(later) == pytest.approx(TRUTH, abs=1e-12)


@pytest.mark.parametrize("later", [all_folds_at_once, plain_top_up_of_all_folds_at_once])
def test_one_constant_for_all_folds_would_be_biased(later):
    assert abs(expectation(later) - TRUTH) > 1e-5


def test_predictions_that_see_what_the_learned_batch_drew_would_be_biased():
    assert abs(expectation(after_two, predict_from_all=True) - TRUTH) > 1e-4


@pytest.mark.parametrize("later", [after_two, after_three_learned, after_three_plain])
def test_no_label_moves_a_probability_of_its_own_fold(later, monkeypatch):
    before = later(predicted(range(6)))
    for item in range(6):
        other = LABEL.copy()
        other[item] = 1 - other[item]
        monkeypatch.setattr(f"{__name__}.LABEL", other)
        after = later(predicted(range(6)))
        monkeypatch.undo()
        own = FOLD[item] == FOLD
        np.testing.assert_array_equal(after[own], before[own])
        assert later == after_three_plain or np.any(after[~own] != before[~own])


# -- sums -------------------------------------------------------------------------------------------------------


def test_a_learned_batch_expects_its_budget_and_gives_every_fold_what_the_frame_says():
    pi = after_two(predicted([0, 3, 4]))
    assert pi.sum() == pytest.approx(3.5)
    share = np.array([FRAME_SIZES[k == FOLD].sum() for k in (0, 1)])
    first = np.array([FIRST[k == FOLD].sum() for k in (0, 1)])
    assert [pi[k == FOLD].sum() for k in (0, 1)] == pytest.approx((first + 1.5 * share).tolist())


def test_a_fold_that_is_all_certain_spends_no_more():
    how = {"unlearned": np.zeros(4), "earlier": np.zeros(4)}
    pi = probabilities_by_fold(np.ones(4), [0, 1, 1, 1], frame_sizes=[3.0, 1, 1, 1], **how, expected_count=3)
    assert pi.tolist() == pytest.approx([1.0, 0.5, 0.5, 0.5])


def test_a_fold_that_another_design_has_served_already_keeps_what_it_has():
    how = {"frame_sizes": np.ones(4), "unlearned": np.full(4, 0.1), "earlier": [0.9, 0.9, 0.1, 0.1]}
    pi = probabilities_by_fold(np.ones(4), [0, 0, 1, 1], **how, expected_count=1.0)
    assert pi.tolist() == pytest.approx([0.9, 0.9, 0.25, 0.25])


def test_sizes_that_vanish_in_a_fold_are_those_of_the_frame_there():
    sizes = rescaled_by_fold([0.0, 0.0, 3.0, 1.0], [0, 0, 1, 1], [1.0, 3.0, 2.0, 2.0])
    assert sizes.tolist() == pytest.approx([0.125, 0.375, 0.375, 0.125])


def test_the_question_of_all_runs_learns_nothing():
    even = Design("pool", (), "P@1", 1, 4, prior="judgments")
    assert learned_sizes(even, SAYS, prior=PRIOR, learned=PRIOR**2, fold=FOLD).tolist() == [1 / 6] * 6


def test_draws_after_an_independent_batch_of_the_same_design_are_those_that_are_missing():
    q = np.array([0.4, 0.3, 0.2, 0.1])
    in_all = draws_to_reach(q, np.zeros(4), 3.0)
    assert (1 - (1 - q) ** in_all).sum() == pytest.approx(3.0)
    earlier = 1 - (1 - q) ** 2
    assert draws_to_reach(q, earlier, 3.0) == pytest.approx(in_all - 2)


@pytest.mark.parametrize(
    ("earlier", "count", "message"),
    [
        ([0.5, 0.5, 0.0], 1.0, "must be above 1.0, already expected"),
        ([0.0, 0.0, 0.5], 2.5, "and below 2.5, all that q"),
        ([0.0, 0.0, 0.0], math.nan, "got nan"),
        ([0.0, 0.0], 1.0, "earlier"),
        ([0.0, 0.0, 1.5], 1.0, "earlier must be within"),
    ],
)
def test_a_count_that_no_number_of_draws_reaches_is_refused(earlier, count, message):
    with pytest.raises(ValueError, match=message):
        draws_to_reach([0.5, 0.5, 0.0], earlier, count)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"fold": [0, 1]}, "fold must be 3 integers"),
        ({"fold": [0, 1, -1]}, "fold must be at least 0, got -1"),
        ({"fold": [0.0, 1.0, 1.0]}, "fold must be 3 integers"),
        ({"sizes": [1.0, -1.0, 1.0]}, "sizes"),
        ({"unlearned": [0.0, 0.0, 1.5]}, "unlearned"),
        ({"earlier": [0.0, 0.0]}, "earlier"),
        ({"frame_sizes": [0.0, 0.0, 0.0]}, "at least 1 size must be positive"),
        ({"expected_count": math.inf}, "expected_count must be finite, got inf"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(change, message):
    given = {
        "sizes": np.ones(3),
        "fold": [0, 1, 1],
        "frame_sizes": np.ones(3),
        "unlearned": np.zeros(3),
        "earlier": np.zeros(3),
        "expected_count": 2.0,
    }
    assert probabilities_by_fold(**given).sum() == pytest.approx(2)
    with pytest.raises(ValueError, match=message):
        probabilities_by_fold(**{**given, **change})
