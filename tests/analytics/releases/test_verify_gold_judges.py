"""A release whose documents gold judges graded: its corrected numbers, found again, and what was changed."""

import json

import pytest
from small_campaign import RUNS
from small_release import change_lines, made_once, unpacked

from analytics.releases.verify import verify

BY_GOLD = {"tier": "gold", "audited": 0}


@pytest.fixture
def release(db, tmp_path):
    return unpacked(made_once(**BY_GOLD), tmp_path)


def corrected(folder, measure="DCG@10"):
    told = json.loads((folder / "estimates.json").read_text())
    return told, [
        row for row in told["estimates"] if (row["method"], row["measure"]) == ("corrected", measure)
    ]


def test_every_pair_has_a_number_with_p_and_an_interval_that_holds_at_every_look(release):
    told, rows = corrected(release)
    assert told["is_by_gold_judges"] is True
    assert told["computation"]["n_audited"] == 0
    assert "gold_before" not in (release / "items.jsonl").read_text()
    pairs = [row for row in rows if row["run_b"]]
    assert len(pairs) == len(RUNS) * (len(RUNS) - 1) // 2
    for row in pairs:
        assert row["refusal"] == ""
        assert 0 < row["p_value"] <= 1
        assert row["always_low"] < row["low"] < row["high"] < row["always_high"]
        assert row["components"]["gold"] == 0
        assert row["sources"] == ["drawing"]


def test_a_judge_who_is_not_gold_is_found(release):
    """The numbers say that all judges were gold; the file of assessors then says that one was not."""
    assert verify(release).different == []
    # The rows are in the order of pseudonyms; one of the assessors has judged nothing.
    change_lines(
        release,
        "assessors.jsonl",
        lambda rows: next(row for row in rows if row["in_matrices"]).update(tier="bronze"),
    )
    assert any(words.startswith("estimates.json DCG@10 corrected") for words in verify(release).different)


def test_where_the_release_does_not_say_it_the_numbers_are_not_taken(release):
    change_lines(release, "estimates.json", lambda told: told.update(is_by_gold_judges=False))
    assert any(words.startswith("estimates.json DCG@10 corrected") for words in verify(release).different)


def test_a_changed_grade_moves_the_corrected_numbers(release):
    def change(rows):
        row = next(row for row in rows if row["label"])
        row["grade"] = 3 - row["grade"]

    change_lines(release, "judgments.jsonl", change)
    assert any(words.startswith("estimates.json DCG@10 corrected") for words in verify(release).different)
