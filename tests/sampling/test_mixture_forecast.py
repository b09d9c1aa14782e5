"""What a design's shares for other questions cost and buy, computed here from the recorded frame of such a draw."""

from dataclasses import replace

import numpy as np
import pytest
from small_campaign import DEPTH, RUNS, TOPICS, make_undrawn, returned

from sampling.frames import load_frame
from sampling.questions import Design
from sampling.services.drawing import draw
from sampling.services.forecasting import mixture_sentence, preview

pytestmark = pytest.mark.django_db

PAIR = Design("pair", ("run0", "run1"), "DCG@10", DEPTH, 16)  # run2 alone returns two documents a topic


def weights(campaign, frame):
    """Return w [run, frame] of mean DCG@10, its binary logarithm written out."""
    pairs = list(frame.select("topic_id", "doc_id").iter_rows())
    tables = [returned(run) for run in range(len(RUNS))]
    return np.array(
        [
            [1 / np.log2(1 + table[pair]) / len(TOPICS) if pair in table else 0.0 for pair in pairs]
            for table in tables
        ]
    )


def half_width(pi, w, prior, gain):
    reached = w != 0
    if (pi[reached] == 0).any():
        return np.inf
    variance = w**2 * gain**2 * prior * (1 - prior)
    return 1.959964 * np.sqrt((variance[reached] * (1 - pi[reached]) / pi[reached]).sum())


def test_the_price_and_the_gain_are_those_of_draws_with_and_without_the_shares(tmp_path):
    shown = preview(campaign=make_undrawn(tmp_path), design=PAIR).mixture
    single, own = [], []
    for shares in ((0.05, 0.01), (0.0, 0.0)):
        campaign = make_undrawn(tmp_path)
        design = replace(PAIR, other_runs_share=shares[0], uniform_share=shares[1])
        frame = load_frame(draw(campaign=campaign, design=design, seed=20))
        gain = campaign_gain(campaign)
        pi, prior = frame["inclusion_probability"].to_numpy(), frame["prior"].to_numpy()
        w = weights(campaign, frame)
        single.append(np.array([half_width(pi, row, prior, gain) for row in w]))
        own.append(half_width(pi, w[0] - w[1], prior, gain))
    assert shown["n_runs"] == len(RUNS)
    assert shown["n_estimable"] == np.isfinite(single[0]).sum() == len(RUNS)
    assert shown["n_estimable_without"] == np.isfinite(single[1]).sum() == 2
    assert shown["run_half_width"] == pytest.approx(np.median(single[0]), rel=1e-6)
    assert shown["run_half_width_without"] == pytest.approx(np.median(single[1]), rel=1e-6)
    assert shown["half_width_without"] == pytest.approx(own[1], rel=1e-6)
    assert own[1] < own[0]
    without = replace(PAIR, other_runs_share=0.0, uniform_share=0.0)
    needed = shown["n_items_without"]
    assert needed <= PAIR.budget
    campaign = make_undrawn(tmp_path)
    reached = preview(campaign=campaign, design=replace(without, budget=int(needed)))
    place = reached.budgets.index(int(needed))
    assert reached.widths["default"][place] <= own[0] * (1 + 1e-9)


def campaign_gain(campaign):
    relevant = [
        gain for value, gain in enumerate(campaign.scale.gains()) if value >= campaign.scale.relevant_grade
    ]
    return float(np.mean(relevant))


@pytest.mark.parametrize(
    "design",
    [
        replace(PAIR, other_runs_share=0.0, uniform_share=0.0),
        replace(PAIR, method="paper"),
        replace(PAIR, method="paper", selection="replacement"),
        Design("pool", (), "DCG@10", DEPTH, 16),
    ],
    ids=["no shares", "the paper's sizes", "with replacement", "the even pool"],
)
def test_a_design_without_shares_has_no_price(tmp_path, design):
    assert preview(campaign=make_undrawn(tmp_path), design=design).mixture is None


WHOLE = (
    "By the drawing alone, the shares for other questions cost 13 of the 400 items. With them 20 of 20 runs can be "
    "estimated alone, the median one to ± 0.0512; without them 0 of 20."
)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({}, WHOLE),
        ({"n_items_without": 400.0}, "cost nothing here."),
        ({"n_items_without": None}, "cost nothing here."),
        (
            {"n_estimable": 4, "run_half_width": None},
            "With them 4 of 20 runs can be estimated alone; without",
        ),
        ({"n_estimable_without": 20, "run_half_width_without": 0.21}, "without them 20 of 20, to ± 0.21."),
    ],
)
def test_the_sentence_says_what_there_is(change, words):
    about = {"n_runs": 20, "n_estimable": 20, "run_half_width": 0.0512, "half_width_without": 0.1}
    without = {"n_items_without": 386.2, "n_estimable_without": 0, "run_half_width_without": None}
    assert words in mixture_sentence(about | without | change, 400)
