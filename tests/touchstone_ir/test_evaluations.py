"""What a release tells of its own runs and pairs by `evaluate` is what it says itself, to 1e-9."""

import json

import pytest
from small_release import made_once, unpacked

import touchstone_ir as ts
from analytics.methods import REPORTED
from touchstone_ir.columns import InputRefused

pytestmark = pytest.mark.django_db
RUNS = ["run0", "run1", "run2"]


@pytest.fixture
def release(tmp_path):
    return unpacked(made_once(), tmp_path / "releases")


@pytest.fixture
def recorded(release):
    """The reported numbers of the release's own file, of runs and of pairs."""
    told = json.loads((release / "estimates.json").read_text())["estimates"]
    rows = [row for row in told if row["method"] == REPORTED.key and row["value"] is not None]
    return [row for row in rows if row["low"] is not None]


def test_every_run_has_the_recorded_number_for_these_topics(release, recorded):
    seen = 0
    for row in recorded:
        if row["run_b"] is not None:
            continue
        found = ts.evaluate(release, row["run"], row["measure"]).frame.row(0, named=True)
        if not found["n_gold"]:  # few gold labels: the file has an older kind of number, or none
            continue
        seen += 1
        assert found["value"] == pytest.approx(row["value"], abs=1e-9)
        assert (found["low_other"], found["high_other"]) == pytest.approx((row["low"], row["high"]), abs=1e-9)
        if row["topics_low"] is not None:
            assert (found["low"], found["high"]) == pytest.approx(
                (row["topics_low"], row["topics_high"]), abs=1e-9
            )
    assert seen >= 6


def test_every_pair_has_the_recorded_difference_with_both_claims(release, recorded):
    seen = 0
    for row in recorded:
        if row["run_b"] is None:
            continue
        found = ts.evaluate(release, row["run"], row["measure"], against=row["run_b"]).frame.row(
            0, named=True
        )
        if found["value"] is None:
            continue
        seen += 1
        assert (found["run"], found["against"]) == (row["run"], row["run_b"])
        assert found["value"] == pytest.approx(row["value"], abs=1e-9)
        assert (found["low_other"], found["high_other"]) == pytest.approx((row["low"], row["high"]), abs=1e-9)
        assert found["p_other"] == pytest.approx(row["p_value"], abs=1e-9)
        if row["topics_low"] is not None:
            assert (found["low"], found["high"]) == pytest.approx(
                (row["topics_low"], row["topics_high"]), abs=1e-9
            )
            assert found["p"] == pytest.approx(row["topics_p_value"], abs=1e-9)
    assert seen >= 3


def test_a_run_that_the_release_does_not_have_is_named_with_those_that_it_has(release):
    with pytest.raises(
        InputRefused, match="bm25 is no file, and the release has no such run: it has run0, run1, run2"
    ):
        ts.evaluate(release, "bm25", "P@10")
