"""verify.py computes numbers of whole topics again, with NumPy alone, and finds what was changed."""

import json
import shutil
import subprocess
import sys
from datetime import timedelta

import numpy as np
import pytest
from small_release import change_lines, release_of, unpacked
from topic_campaign import judge, make_drawn

from analytics.estimation import topic_samples
from analytics.estimation.estimate import Refusal
from analytics.estimation.whole_topics import predicted_values
from analytics.releases.sampled import SampledRelease
from analytics.releases.services import writing
from analytics.releases.verify import verify
from analytics.releases.verify_facts import read_facts
from analytics.services.recomputation import recompute

pytestmark = pytest.mark.django_db
MEASURES = ["nDCG@4", "P@4", "DCG@3", "ERR@4", "AP@4"]


@pytest.fixture(autouse=True)
def nothing_is_late(monkeypatch):
    """No transaction is still writing: the release takes the numbers that were just computed."""
    monkeypatch.setattr(writing, "COMMIT_MAY_TAKE", timedelta(0))


def released(folder, **options):
    campaign = make_drawn(folder, gold=True, **options)
    judge(campaign)
    recompute(campaign=campaign, measures=MEASURES)
    return unpacked(release_of(campaign), folder)


def change_told(folder, change):
    change_lines(folder, "estimates.json", lambda told: change(told["whole_topics"]))


def more(values, place, by):
    values[place] += by


def halve_the_chance_of_a_taken_topic(rows):
    topic = next(row["topic_id"] for row in rows if row["drawn_in"] and row["batch_1"] < 1)
    for row in rows:
        if row["topic_id"] == topic:
            row.update(batch_1=row["batch_1"] / 2, inclusion_probability=row["inclusion_probability"] / 2)


CHANGES = {
    "share": lambda told: more(told["share"], 3, 0.01),
    "agreement": lambda told: more(told["agreement"], 3, 0.1),
    "fold": lambda told: more(told["fold"], 3, 100),
    "plug-in": lambda told: more(told["plug_in"]["ERR@4"]["run1"], 3, 0.1),
}


def test_all_numbers_are_the_same_again_and_every_change_is_found(tmp_path):
    folder = released(tmp_path)
    report = verify(folder)
    assert report.different == []
    assert not any("estimates" in reason for reason in report.not_recomputed)
    # five measures, by two methods three runs and three pairs: more than ten numbers each
    assert report.same["numbers of estimates"] > 5 * 2 * 6 * 10
    command = [sys.executable, str(folder / "verify.py"), "--json"]
    alone = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    assert alone["different"] == []
    for name, change in CHANGES.items():
        copy = tmp_path / f"changed {name}"
        shutil.copytree(folder, copy)
        change_told(copy, change)
        different = verify(copy).different
        assert any(words.startswith("estimates.json") for words in different), name
    change_lines(folder, "items.jsonl", halve_the_chance_of_a_taken_topic)
    assert any(words.startswith("estimates.json P@4 naive run0 value") for words in verify(folder).different)


def test_a_number_whose_prediction_knew_its_own_fold_is_found(tmp_path, monkeypatch):
    """The planted fault: f of a topic comes from a fit that has seen the topic."""

    def of_all_folds(plug_in, agreement, value, taken, fold):
        twice = predicted_values(
            np.tile(plug_in, 2),
            np.tile(agreement, 2),
            np.tile(value, 2),
            np.concatenate([taken, np.zeros(taken.size, dtype=bool)]),
            np.repeat([0, 1], taken.size),
        )
        return twice[:, taken.size :]

    monkeypatch.setattr(topic_samples, "predicted_values", of_all_folds)
    different = verify(released(tmp_path)).different
    assert different
    assert all(words.startswith("estimates.json") and " naive " in words for words in different)


def test_first_ranks_alone_are_verified_with_their_refusals_and_nothing_else_is_evaluated(tmp_path):
    folder = released(tmp_path, question="pair", runs=("run0", "run1"), measure="ERR@4", budget=90)
    report = verify(folder)
    assert report.different == []
    assert report.same["refusals"] > 0
    facts = read_facts(folder, json.loads((folder / "estimates.json").read_text()), with_runs=False)
    refused = SampledRelease.of(facts).refused
    assert isinstance(refused, Refusal)
    assert "whole topics were drawn" in refused.reason
