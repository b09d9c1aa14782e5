"""verify.py fits the predictions of gold gains again: what was changed, or knew its own fold, is found."""

import json
from functools import partial

import numpy as np
import pytest
from small_release import change_lines, made_once, unpacked

from analytics.estimation import gold_prediction
from analytics.estimation.gold_prediction import GoldFits
from analytics.releases import verify_gold
from analytics.releases.verify import verify
from sampling.leave_out import some_of_each_fold


@pytest.fixture
def release(db, tmp_path):
    return unpacked(made_once(), tmp_path)


def first_open(rows):
    return next(row for row in rows if row["audit_probability"])


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda rows: first_open(rows).update(gold_after_0=0.123), "items.jsonl gold 0 fold"),
        (lambda rows: first_open(rows).update(gold_spread_0=0.123), "items.jsonl gold 0 fold"),
        (lambda rows: rows[0].update(gold_before_0=0.123), "items.jsonl gold 0 fold"),
        (lambda rows: rows[0].update(feature_2=rows[0]["feature_2"] + 0.1), "items.jsonl gold 0 fold"),
        (
            lambda rows: first_open(rows).update(fold=(first_open(rows)["fold"] + 1) % 10),
            "items.jsonl gold 0 fold",
        ),
        (lambda rows: first_open(rows).update(audit_probability=0.999), "estimates.json"),
    ],
    ids=["h", "s2", "g", "feature", "fold", "chance"],
)
def test_a_changed_prediction_of_gold_or_what_it_was_made_of_is_found(release, change, expected):
    change_lines(release, "items.jsonl", change)
    assert any(words.startswith(expected) for words in verify(release).different)


@pytest.mark.django_db
def test_predictions_that_knew_their_own_fold_are_found_although_every_number_follows_from_them(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(
        GoldFits, "items_of", lambda fits, fold: np.flatnonzero((fits.own + 1) % fits.n_folds == fold)
    )
    folder = unpacked(made_once.__wrapped__(budget=38), tmp_path)
    told = verify(folder).different
    assert told
    assert all(words.startswith("items.jsonl gold ") for words in told)


@pytest.mark.django_db
def test_that_g_learned_from_every_nth_item_of_a_fold_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(gold_prediction, "some_of_each_fold", partial(some_of_each_fold, most=2))
    folder = unpacked(made_once.__wrapped__(budget=38), tmp_path)
    assert any(words.startswith("items.jsonl gold ") for words in verify(folder).different)
    monkeypatch.setattr(verify_gold, "MOST_FITTED", 2)
    assert verify(folder).different == []


@pytest.mark.django_db
@pytest.mark.parametrize(("learning", "n_learned"), [("refit", 2), ("exact", 1)])
def test_what_predictions_learned_from_is_what_the_draws_say(tmp_path, learning, n_learned):
    folder = unpacked(made_once(kind="pair", budget=22, top_up=32, learning=learning, audited=20), tmp_path)
    told = json.loads((folder / "estimates.json").read_text())["fitted_with"]["n_learned"]
    recorded = json.loads((folder / "draws" / "draw-2.json").read_text())
    assert (recorded["learned_from"], recorded["parameters"]["learning"]) == (1, learning)
    assert told == n_learned
    assert verify(folder).different == []
    change_lines(folder, "estimates.json", lambda rows: rows["fitted_with"].update(n_learned=3 - told))
    wrong = verify(folder).different
    assert any(words.startswith("estimates.json fitted_with n_learned") for words in wrong)
    assert any(words.startswith("items.jsonl gold 0 fold") for words in wrong)
