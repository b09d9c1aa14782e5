"""Rows stored by COPY are the rows that objects would have made, to the last digit, and the database's rules hold."""

from dataclasses import replace

import numpy as np
import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction
from small_campaign import judge_all, judge_audit, make_assessor, make_campaign, truth_of

from analytics import shards
from analytics.frames import current_arrays
from analytics.methods import NAIVE
from analytics.models import Computation, Estimate
from analytics.numbers.columns import EstimateColumns
from analytics.numbers.estimates import estimate_columns
from analytics.numbers.predictions import Predictions
from analytics.numbers.targets import targets_of
from analytics.services.basis import Basis
from analytics.services.confusions import assessor_confusion_counts
from analytics.services.estimate_rows import unsaved_rows
from analytics.services.persistence import NUMBERS, store_estimates
from analytics.services.recomputation import measures_of, recompute
from sampling.measures.registry import parse_measure
from sampling.services.auditing import audit

pytestmark = pytest.mark.django_db
FIELDS = [
    field.attname for field in Estimate._meta.concrete_fields if field.attname not in ("id", "computation_id")
]


@pytest.fixture
def arrays(tmp_path):
    return current_arrays(make_campaign(tmp_path))


@pytest.fixture
def computation(arrays):
    return Computation.objects.create(
        campaign=arrays.draw.campaign, last_judgment_id=0, n_judgments=0, n_items=0, n_audited=0, n_gold_checks=0,
        seconds=0.0,
    )  # fmt: skip


def table(**changes):
    rng = np.random.default_rng(3)
    gone = np.array([False, False, True, False])
    numbers = {
        name: np.where(gone, np.nan, rng.normal(size=4) * 10.0 ** rng.integers(-12, 12, 4))
        for name in NUMBERS
    }
    numbers["p_value"] = np.array([np.nan, 0.0, np.nan, 1e-300])
    ends = np.where(gone, np.nan, 1e14)
    numbers |= {"range_low": -ends, "range_high": ends}
    numbers |= {"topics_low": numbers["low"] - 1, "topics_high": numbers["high"] + 1}
    numbers["topics_degrees_of_freedom"] = np.array([44.0, 1 / 3, np.nan, np.nan])
    numbers["topics_p_value"] = np.array([np.nan, np.nan, np.nan, 1e-300])
    numbers["judged_share"] = np.array([0.5, 1 / 3, np.nan, np.nan])
    numbers["gold_share"] = np.array([0.25, 0.0, np.nan, np.nan])
    numbers["outside_low"] = np.array([0.0, 1e-12, np.nan, np.nan])
    numbers["outside_high"] = np.array([1 / 3, 0.0, np.nan, np.nan])
    numbers["n_positive"] = np.array([5, np.nan, np.nan, 7])
    given = {
        "measure": "DCG@10",
        "method": "corrected",
        "run": np.array([0, 1, 2, 0]),
        "run_b": np.array([-1, -1, -1, 2]),
        "numbers": numbers,
        "n": np.array([5, 0, 7, 2**31 - 1]),
        "sources": [("drawing", "gold"), (), ("a \"quoted\" one",), ("drawing",)],
        "components": {
            "drawing": np.array([0.1, 1 / 3, np.nan, 2.5e-17]), "gold": np.array([np.nan, 4.0, np.nan, 1e16]),
        },
        "refusal": ["", "", "no, \"none\"\nat all; \\N", ""],
        "topics_refusal": ["", "“few” topics", "", "\t"],
        "warning": ["a, b", "", "", "'"],
        "topic_values": [[0.25, 1 / 3], None, None, None],
    }  # fmt: skip
    return EstimateColumns(**{**given, **changes})


def rows_of(computation):
    return [tuple(row) for row in computation.estimates.order_by("id").values_list(*FIELDS)]


def test_rows_are_stored_as_objects_would_have_been(arrays, computation):
    given = table()
    assert store_estimates(computation, arrays, [given, table(method="naive")]) == 8
    expected = [tuple(getattr(row, name) for name in FIELDS) for row in unsaved_rows(arrays, [given])]
    assert rows_of(computation)[:4] == expected
    assert set(NUMBERS) <= set(FIELDS)


def test_every_real_row_too(tmp_path):
    campaign = make_campaign(tmp_path)
    judge_all(
        campaign,
        [make_assessor(campaign, name) for name in ("ann", "ben")],
        lambda s, p: (truth_of(s) + p) % 4,
    )
    audit(campaign=campaign, items_each_time=30, items_in_total=30, seed=5)
    judge_audit(campaign, make_assessor(campaign, "greta", tier="gold"))
    stored = rows_of(recompute(campaign=campaign))
    arrays = current_arrays(campaign)
    basis = Basis(campaign, arrays, Predictions(arrays), assessor_confusion_counts(arrays))
    rows = [
        row
        for measure in measures_of(campaign)
        for row in unsaved_rows(arrays, estimate_columns(basis, measure))
    ]
    assert stored == [tuple(getattr(row, name) for name in FIELDS) for row in rows]
    assert len(stored) > 50


@pytest.mark.parametrize(
    "wrong",
    [
        {"refusal": ["no value, no reason", "", "", ""]},
        {"n": np.array([1, 2, 3, -1])},
        {"run_b": np.array([-1, -1, -1, -1])},  # one run twice
    ],
    ids=["a value and a refusal", "a negative number", "a run twice"],
)
def test_what_the_database_refuses_leaves_nothing_behind(arrays, computation, wrong):
    with pytest.raises(IntegrityError), transaction.atomic():
        store_estimates(computation, arrays, [table(), table(method="naive", **wrong)])
    assert computation.estimates.count() == 0


def test_an_infinite_number_is_refused(arrays, computation):
    numbers = table().numbers
    numbers["low"] = np.array([-np.inf, 0.0, np.nan, 0.0])
    with pytest.raises(IntegrityError), transaction.atomic():
        store_estimates(computation, arrays, [table(numbers=numbers)])
    assert computation.estimates.count() == 0


def test_what_was_copied_can_neither_be_changed_nor_deleted(arrays, computation):
    store_estimates(computation, arrays, [table()])
    for change in ("UPDATE analytics_estimate SET n = 0", "DELETE FROM analytics_estimate"):
        with (
            pytest.raises(DatabaseError, match="append-only"),
            transaction.atomic(),
            connection.cursor() as cursor,
        ):
            cursor.execute(change)
    assert computation.estimates.count() == 4


def test_a_method_that_takes_all_judgments_at_once_is_refused_by_name_where_there_are_too_many(
    tmp_path, monkeypatch
):
    campaign = make_campaign(tmp_path)
    judge_all(campaign, [make_assessor(campaign, "ann"), make_assessor(campaign, "ben")])
    arrays = current_arrays(campaign)
    basis = Basis(campaign, arrays, Predictions(arrays), assessor_confusion_counts(arrays))
    targets = targets_of(basis, parse_measure("P@10"))
    whole = replace(NAIVE, shards=shards.WHOLE)
    n = arrays.label_item.size
    monkeypatch.setattr(shards, "MOST_WHOLE", n)
    assert whole.answer(basis.evidence, targets).these_topics.refusals == {}
    monkeypatch.setattr(shards, "MOST_WHOLE", n - 1)
    refused = whole.answer(basis.evidence, targets).these_topics.refusals
    words = (
        f"Naive (grades as given) takes all judgments at once, up to {n - 1} of them; this campaign has {n}"
    )
    assert {refusal.reason for refusal in refused.values()} == {words}
    assert len(refused) == len(targets.weights)
    assert NAIVE.answer(basis.evidence, targets).these_topics.refusals == {}
