"""What the choice of topics adds to an error: from the topics' values, also where judging decides the interval."""

import numpy as np
import pytest
from scipy import stats

from analytics.services.claim_intervals import spread_of_topics
from sampling.campaign_plan import PlayedWidths

VALUES = {1: np.array([0.2, 0.8, 0.5, 0.9]), 2: np.array([0.1, 0.5, 0.4, 0.2]), 3: np.array([0.5])}


def test_the_spread_of_a_pair_is_that_of_its_topics_without_that_of_the_judging():
    apart = VALUES[1] - VALUES[2]
    assert spread_of_topics(VALUES, 1, 2, 0.05) == pytest.approx(apart.var(ddof=1) / 4 - 0.0025)
    assert spread_of_topics(VALUES, 1, None, 0.05) == pytest.approx(VALUES[1].var(ddof=1) / 4 - 0.0025)
    assert spread_of_topics(VALUES, 1, 2, 5.0) == 0.0


@pytest.mark.parametrize(
    ("run", "run_b", "error"), [(4, None, 0.1), (1, 4, 0.1), (3, None, 0.1), (1, 2, None)]
)
def test_without_values_or_with_one_topic_it_is_not_known(run, run_b, error):
    assert spread_of_topics(VALUES, run, run_b, error) is None


@pytest.mark.parametrize("n_topics", [5, 45])
def test_where_nothing_was_played_the_width_for_topics_like_these_is_no_draw_by_chance(n_topics):
    """The control: one play is one draw of the spread, and another generator gives another width."""
    expected = stats.t.ppf(0.975, n_topics - 1) * np.sqrt(0.04)
    exact = PlayedWidths((0.0,), (0.0,), 0.0, 0)
    widths = [
        exact.over_topics(0.04, n_topics, np.random.default_rng(seed)).half_widths[0] for seed in (1, 2)
    ]
    assert widths == pytest.approx([expected, expected])
    played = PlayedWidths((0.0,), (0.0,), 0.0, 1)
    one, other = (
        played.over_topics(0.04, n_topics, np.random.default_rng(seed)).half_widths[0] for seed in (1, 2)
    )
    assert one != other
