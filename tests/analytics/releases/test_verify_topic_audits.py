"""verify.py computes numbers corrected by audits of whole topics again, and finds what was changed."""

import json
import shutil
import subprocess
import sys
from datetime import timedelta

import numpy as np
import pytest
from small_release import change_lines, release_of, unpacked
from topic_campaign import judge, make_audited, make_drawn

from analytics.estimation import topic_samples
from analytics.estimation.audited_topics import TopicPrediction, topic_prediction
from analytics.estimation.whole_topics import TakenTopics
from analytics.releases.services import writing
from analytics.releases.verify import verify
from analytics.services.recomputation import recompute

pytestmark = pytest.mark.django_db
MEASURES = ["nDCG@4", "P@4", "ERR@4", "AP@4"]


@pytest.fixture(autouse=True)
def nothing_is_late(monkeypatch):
    """No transaction is still writing: the release takes the numbers that were just computed."""
    monkeypatch.setattr(writing, "COMMIT_MAY_TAKE", timedelta(0))


def released(folder, *, budget=190, leave=0):
    """Return a release of topics drawn and audited: 190 documents are about 32 topics of 40, 120 of these 20."""
    campaign = make_audited(folder, budget=budget, items=120, leave=leave)
    recompute(campaign=campaign, measures=MEASURES)
    return unpacked(release_of(campaign), folder)


def corrected(folder):
    told = json.loads((folder / "estimates.json").read_text("utf-8"))
    return [row for row in told["estimates"] if row["method"] == "corrected"]


def halve_the_chance_of_a_topic(rows):
    topic = next(row["topic_id"] for row in rows if row["audited"] and row["audit_probability"] < 1)
    for row in rows:
        if row["topic_id"] == topic and row["audit_probability"] is not None:
            row["audit_probability"] /= 2


def change_one_gold_grade(rows):
    row = next(row for row in rows if row["audited"] and row["audit_probability"] < 1)
    row["audit_grade"] = 3 - row["audit_grade"]


CHANGES = {"chance": halve_the_chance_of_a_topic, "gold": change_one_gold_grade}


def test_all_numbers_are_the_same_again_and_every_change_is_found(tmp_path):
    folder = released(tmp_path)
    rows = corrected(folder)
    assert all(row["value"] is not None for row in rows)
    assert all((row["p_value"] is None) == (row["run_b"] is None) for row in rows)
    report = verify(folder)
    assert report.different == []
    assert not any("estimates" in reason for reason in report.not_recomputed)
    assert report.same["numbers of estimates"] > 4 * 3 * 6 * 10
    command = [sys.executable, str(folder / "verify.py"), "--json"]
    alone = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    assert alone["different"] == []
    for name, change in CHANGES.items():
        changed = tmp_path / name
        shutil.copytree(folder, changed)
        change_lines(changed, "items.jsonl", change)
        found = [line for line in verify(changed).different if " corrected " in line]
        assert found, name


def of_own_fold(plug_in, agreement, labelled, value, topics, audited, fold):
    """Return predictions that saw the topics they predict: each stands there twice, once without its audit.."""
    n = audited.size
    twice = TakenTopics(np.tile(topics.share, 2), np.tile(topics.probability, 2), np.tile(topics.taken, 2))
    both = topic_prediction(
        np.tile(plug_in, 2),
        np.tile(agreement, 2),
        np.tile(labelled, 2),
        np.tile(value, 2),
        twice,
        np.concatenate([audited, np.zeros(n, dtype=bool)]),
        np.repeat([0, 1], n),
    )
    return TopicPrediction(both.before[:, n:], both.after[:, n:])


def test_a_prediction_that_saw_its_own_fold_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(topic_samples, "topic_prediction", of_own_fold)
    folder = released(tmp_path)
    assert any(" corrected " in line and "standard_error" in line for line in verify(folder).different)


def test_an_unfinished_audit_is_refused_again(tmp_path):
    folder = released(tmp_path, leave=1)
    assert all(row["value"] is None for row in corrected(folder))
    assert verify(folder).different == []


def test_gold_judges_of_whole_topics_are_verified_as_they_stand(tmp_path):
    campaign = make_drawn(tmp_path, gold=True)
    judge(campaign, tier="gold")
    recompute(campaign=campaign, measures=MEASURES)
    folder = unpacked(release_of(campaign), tmp_path)
    assert all(row["value"] is not None for row in corrected(folder))
    assert verify(folder).different == []
