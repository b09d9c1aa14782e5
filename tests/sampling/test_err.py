"""Expected reciprocal rank: worked by hand, the published numbers, and by playing the reader it describes."""

from fractions import Fraction

import numpy as np
import pytest
from run_samples import ranked_documents

from analytics.releases.verify_measures import COMPLETE
from judging.trec import QrelRecord
from sampling.measures.families import grade_gains
from sampling.measures.registry import WrongKind, parse_linear, parse_measure
from sampling.measures.scoring import evaluate_topics, index_qrels, measure_on_scale


def err_of(grades, highest, k, unjudged=()):
    """Return ERR@k of one topic whose documents have these grades, best first; of some nobody has a grade."""
    names = [f"d{place}" for place in range(len(grades))]
    judged = [
        ("t", name, grade)
        for place, (name, grade) in enumerate(zip(names, grades, strict=True))
        if place not in unjudged
    ]
    qrels = index_qrels(QrelRecord(*line) for line in [*judged, ("t", "elsewhere", 1)])
    measure = measure_on_scale(f"ERR@{k}", np.arange(highest + 1), 1)
    return float(evaluate_topics(ranked_documents({"t": names}), qrels, [measure]).values[0, 0])


@pytest.mark.parametrize(
    ("grades", "highest", "k", "expected"),
    [
        ([2, 0, 1], 2, 3, 0.770833),
        ([3, 2, 0, 1, 2], 3, 5, 0.906006),
        ([3, 2, 0, 1, 2], 3, 2, 0.898438),
        ([3, 2, 0, 1, 2], 4, 5, 0.513443),  # the constant in gdeval
        ([0, 0, 0], 2, 3, 0.0),
    ],
)
def test_the_fixtures_to_six_digits(grades, highest, k, expected):
    assert round(err_of(grades, highest, k), 6) == expected
    form = COMPLETE["ERR"]
    assert round(form.of_topic(form.gains(highest)[grades[:k]]), 6) == expected


def test_by_hand():
    """Grades 2 0 1 of 2: R = 3/4, 0, 1/4. Stops at rank 1 with 3/4, at rank 3 with 1/4 * 1 * 1/4: 3/4 + 1/48."""
    assert err_of([2, 0, 1], 2, 3) == pytest.approx(float(Fraction(3, 4) + Fraction(1, 48)), rel=1e-15)
    # 3 2 of 3: R = 7/8, 3/8. 7/8 + 1/2 * 1/8 * 3/8
    assert err_of([3, 2], 3, 2) == pytest.approx(float(Fraction(7, 8) + Fraction(3, 128)), rel=1e-15)


def test_it_is_what_a_reader_gets_who_stops_at_each_document_by_chance():
    """A million readers of 1 3 0 2 of 3, whose chance to stop is (2^grade - 1)/8."""
    rng = np.random.default_rng(9)
    stops = rng.random((1_000_000, 4)) < np.array([1, 7, 0, 3]) / 8
    rank = np.where(stops.any(axis=1), stops.argmax(axis=1) + 1, np.inf)
    mean, error = (1 / rank).mean(), (1 / rank).std() / 1000
    assert abs(err_of([1, 3, 0, 2], 3, 4) - mean) < 4 * error


def test_an_unjudged_document_counts_as_grade_0():
    assert err_of([3, 2, 1], 3, 3, unjudged={1}) == err_of([3, 0, 1], 3, 3)


def test_the_scale_decides_and_its_gains_do_not():
    measure = parse_measure("ERR@10")
    assert grade_gains(measure, [0, 1, 2], 1).tolist() == [0, 1 / 4, 3 / 4]
    assert grade_gains(measure, [0, 5, 9], 2).tolist() == [0, 1 / 4, 3 / 4]


def test_no_draw_is_made_for_it_and_it_needs_its_cutoff():
    with pytest.raises(
        WrongKind, match="'ERR@10' is a measure of completely judged ranks, not a sum over documents"
    ):
        parse_linear("ERR@10")
    with pytest.raises(ValueError, match="needs a cutoff, as in ERR@10"):
        parse_measure("ERR")
