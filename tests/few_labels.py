"""The limits of one step from few gold labels, moved so far down that a small campaign is within them."""

from analytics.estimation import one_step_limits
from analytics.releases import verify_one_step

FEWEST, MOST = 10, 19  # of 42 pairs of three topics: from 20 the bootstrap serves


def allow_a_small_campaign(monkeypatch):
    """Set the limits of the product, and those of the verifier."""
    small = {
        "FEWEST_LABELS": FEWEST,
        "MOST_LABELS": MOST,
        "MOST_OF_A_DRAW": MOST,
        "FEWEST_TOPICS": 3,
        "FEWEST_RELEVANT": 1,
        "MOST_STAIRS": 3,
    }
    theirs = {"LABELS": (FEWEST, MOST), "MOST_OF_A_DRAW": MOST, "TOPICS": 3, "RELEVANT": 1, "STAIRS": 3}
    for module, limits in ((one_step_limits, small), (verify_one_step, theirs)):
        for name, limit in limits.items():
            assert getattr(module, name) != limit
            monkeypatch.setattr(module, name, limit)
