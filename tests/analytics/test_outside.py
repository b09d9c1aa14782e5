"""What documents that could not be judged may be worth: bounds by hand, and what only one run brought in."""

import numpy as np
import pytest
from scipy.stats import t

from analytics.estimation.estimate import estimates
from analytics.estimation.outside import OutsideGain, Standing, likely_gain, outside_gain, unique_weights
from analytics.numbers.columns import columns
from sampling.measures.sparse import from_dense

PAIRS = np.array([0]), np.array([1])
DF = 20.0


def rows_with(weight, *, value=(0.5, 0.3, 0.2), error=0.05, **options):
    """Return the rows of two runs and their pair, tested, without a range."""
    made = estimates(
        np.array(value),
        {"drawing": np.full(3, error**2)},
        degrees_of_freedom=DF,
        n=np.full(3, 30),
        refusals={},
        sources=("drawing",),
        warning=lambda _: "",
    )
    outside = outside_gain(weight, 1.0, PAIRS, ["a returns more", "b returns more"])
    return columns("P@10", "corrected", PAIRS, made, settled={}, tested=True, outside=outside, **options)


def test_the_end_of_a_run_moves_up_and_both_ends_of_a_pair_move_by_what_each_run_lacks():
    half = t.ppf(0.975, DF) * 0.05
    rows = rows_with([0.04, 0.08])
    assert rows.numbers["low"] == pytest.approx([0.5 - half, 0.3 - half, 0.2 - half - 0.08])
    assert rows.numbers["high"] == pytest.approx([0.5 + half + 0.04, 0.3 + half + 0.08, 0.2 + half + 0.04])
    assert rows.numbers["outside_low"].tolist() == [0.0, 0.0, 0.08]
    assert rows.numbers["outside_high"].tolist() == [0.04, 0.08, 0.04]
    assert rows.numbers["value"].tolist() == [0.5, 0.3, 0.2]
    assert [text.split(":")[0] for text in rows.warning] == [
        "a returns more",
        "b returns more",
        "a returns more",
    ]


def test_the_p_of_a_pair_is_the_largest_of_all_values_that_the_documents_allow():
    rows = rows_with([0.04, 0.08])
    assert rows.numbers["p_value"][2] == pytest.approx(2 * t.sf((0.2 - 0.08) / 0.05, DF))
    even = rows_with([0.0, 0.08], value=(0.5, 0.45, 0.05))
    assert even.numbers["p_value"][2] == pytest.approx(1.0)  # 0 is among them


def test_what_may_move_an_end_by_more_than_the_half_width_has_no_number():
    rows = rows_with([0.2, 0.001])
    assert np.isnan(rows.numbers["value"]).tolist() == [True, False, True]
    assert np.isnan(rows.numbers["outside_high"]).tolist() == [True, False, True]
    assert "they may be worth up to 0.2, more than the half-width of 0.104" in rows.refusal[0]
    assert rows.refusal[2].startswith("a returns more")


def test_a_tenth_of_the_half_width_needs_no_mark_but_is_in_the_interval():
    rows = rows_with([0.001, 0.0])
    half = t.ppf(0.975, DF) * 0.05
    assert (rows.warning, rows.refusal) == (["", "", ""], ["", "", ""])
    assert rows.numbers["high"][0] == pytest.approx(0.5 + half + 0.001, abs=1e-12)
    assert np.isnan(rows.numbers["outside_low"]).tolist() == [False, True, False]


def test_the_rule_at_its_borders():
    bounds = OutsideGain(down=np.array([0.0, 0.0, 0.5, 0.0]), up=np.array([0.1, 0.11, 0.2, 1.01]))
    found = [Standing(one) for one in bounds.standings(np.ones(4))]
    assert found == [Standing.YES, Standing.WIDER, Standing.WIDER, Standing.NOT_YET]
    assert [one.words for one in Standing] == ["yes", "yes, with a wider interval", "not yet"]
    assert bounds.standings([0.0, 0.0, 0.0, np.nan]).tolist() == [2, 2, 2, 1]


@pytest.mark.parametrize("weight", [[-0.1, 0.0], [np.nan, 0.0], [[0.1, 0.0]]])
def test_weights_that_are_none_are_refused(weight):
    with pytest.raises(ValueError, match="weight"):
        outside_gain(weight, 1.0, PAIRS)


# -- what is likely -------------------------------------------------------------------------------------------

#             items 0  1  2  3  4
RANKS = np.array([[1, 2, 3, 0, 0], [2, 0, 1, 3, 0], [0, 0, 2, 1, 3]])


def unique(group, depth=10):
    ranks = from_dense(RANKS)
    weights = ranks.with_values(1.0 / ranks.value)
    return unique_weights(weights, ranks, group, depth).runs.dense().tolist()


def test_only_what_no_other_run_brought_in_is_unique():
    assert unique(["a", "b", "c"]) == [[0, 0.5, 0, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 0, 1 / 3]]


def test_runs_of_a_group_bring_in_together():
    found = unique(["g", "g", "c"])
    assert found == [[1, 0.5, 0, 0, 0], [0.5, 0, 0, 0, 0], [0, 0, 0, 0, 1 / 3]]


def test_a_document_below_the_pools_depth_was_brought_in_by_another():
    # Item 3 is third in run 1: with a pool of depth 2 run 2 alone brought it in, and item 4 nobody.
    assert unique(["a", "b", "c"], depth=2) == [[0, 0.5, 0, 0, 0], [0, 0, 0, 0, 0], [0, 0, 0, 1, 0]]


def test_the_likely_gain_by_hand():
    found = likely_gain(3.0, [0.2, 0.0, 0.1], [1.0, 0.0, 0.25])
    assert found.expected == pytest.approx(3 * 0.3 / 1.25)
    assert found.cautious == pytest.approx(3 * 0.4)
    assert likely_gain(3.0, [0.0], [0.0]) is None
    below = likely_gain(1.0, [-0.5, 0.1], [1.0, 1.0])
    assert (below.expected, below.cautious) == (0.0, pytest.approx(0.1))
