"""Differences from few gold labels in a release: computed again from its facts alone, and every change found."""

import json

import pytest
from few_labels import allow_a_small_campaign
from small_release import change_lines, made_once, unpacked

from analytics.releases import verify_one_step
from analytics.releases.verify import verify

DRAWN = {"budget": 38, "audited": 14}
WHOLE = {"budget": 42, "audited": 14}


@pytest.fixture(params=[DRAWN, WHOLE], ids=["drawn in part", "whole pool"])
def release(request, db, tmp_path, monkeypatch):
    allow_a_small_campaign(monkeypatch)
    return unpacked(made_once(**request.param), tmp_path)


def pairs_of(folder):
    told = json.loads((folder / "estimates.json").read_text())
    rows = [row for row in told["estimates"] if (row["measure"], row["method"]) == ("nDCG@10", "corrected")]
    return told, [row for row in rows if row["run_b"]], [row for row in rows if not row["run_b"]]


def test_differences_in_one_step_are_computed_again(release):
    told, pairs, alone = pairs_of(release)
    given = [row for row in pairs if row["standard_error"]]
    assert given, [row["refusal"] for row in pairs]
    for row in given:
        assert set(row["components"]) == {"drawing", "gold", "second order"}
        assert row["sources"][-1] == "second order"
        assert row["low"] < row["value"] < row["high"]
        assert 0 <= row["p_value"] <= 1
    assert all("of a run alone has no interval from few gold labels" in row["refusal"] for row in alone)
    assert len(told["measures"]["nDCG@10"]["stairs"]) == 3
    report = verify(release)
    assert report.different == []
    assert not any("nDCG" in words or "one step" in words for words in report.not_recomputed)


def test_ratios_from_many_gold_labels_take_the_predictions_too_and_what_was_changed_is_found(db, tmp_path):
    folder = unpacked(made_once(), tmp_path)
    told, pairs, alone = pairs_of(folder)
    assert all(row["standard_error"] > 0 for row in [*pairs, *alone])
    assert verify(folder).different == []
    numbers = [name.removeprefix("prediction_") for name in told["measures"]["nDCG@10"]["stairs"]]
    kept = (folder / "items.jsonl").read_text()

    def flat(rows):
        for row in rows:
            row[f"gold_after_{numbers[0]}"] = row["audit_probability"] and 1.0

    change_lines(folder, "items.jsonl", flat)
    found = verify(folder).different
    assert any(words.startswith(f"items.jsonl gold {numbers[0]} fold") for words in found)
    assert any(words.startswith("estimates.json nDCG@10 corrected run0 value") for words in found)
    (folder / "items.jsonl").write_text(kept)
    change_lines(folder, "estimates.json", lambda told: told["measures"]["nDCG@10"].pop("stairs"))
    found = verify(folder).different
    assert any(words.startswith("estimates.json nDCG@10 corrected run0: refused") for words in found)


def test_what_was_changed_is_found(release):
    told, pairs, _ = pairs_of(release)
    third = told["measures"]["nDCG@10"]["stairs"][2].removeprefix("prediction_")
    row = next(row for row in pairs if row["standard_error"])
    where = f"estimates.json nDCG@10 corrected {row['run']} - {row['run_b']}"

    def estimate(rows):
        own = next(one for one in rows["estimates"] if {**one, "n": row["n"]} == row)
        own["value"] += 1e-6

    kept = (release / "estimates.json").read_text()
    change_lines(release, "estimates.json", estimate)
    assert any(words.startswith(f"{where} value") for words in verify(release).different)
    change_lines(release, "estimates.json", lambda told: (told.clear(), told.update(json.loads(kept))))
    assert verify(release).different == []
    change_lines(release, "estimates.json", lambda told: told["measures"]["nDCG@10"].pop("stairs"))
    found = verify(release).different
    assert any(words.startswith(f"{where}: refused") for words in found)
    assert f"items.jsonl gold {third}: no measure in estimates.json names it" in found
    change_lines(release, "estimates.json", lambda told: (told.clear(), told.update(json.loads(kept))))

    def prediction(rows):
        for row in rows:
            row[f"gold_after_{third}"] = row["audit_probability"] and 0.0

    change_lines(release, "items.jsonl", prediction)
    found = verify(release).different
    assert any(words.startswith(f"items.jsonl gold {third} fold") for words in found)
    assert any(words.startswith("estimates.json nDCG@10 corrected") for words in found)


def test_an_audit_of_a_size_that_was_not_tried_has_no_number_whatever_the_release_says(release, monkeypatch):
    monkeypatch.setattr(verify_one_step, "LABELS", (15, 19))
    found = verify(release).different
    assert found
    assert all(words.startswith("estimates.json nDCG@10 corrected") and "refused" in words for words in found)
