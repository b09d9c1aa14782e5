"""`manage.py evaluate` shows no impossible number, and beside every value how much of the run was judged."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from release_runs import new_run, run_of, said, sampled_of, told, write_run
from small_release import made_once, unpacked

from analytics.estimation.estimate import Estimate, Refusal
from analytics.releases.evaluation import Evaluation, UnjudgedPart

pytestmark = pytest.mark.django_db


def test_what_is_shown_ends_at_the_range_of_the_measure_and_means_are_made_of_what_was_before(tmp_path):
    folder = unpacked(made_once(budget=24, audited=14, checks=0.0), tmp_path)
    sampled, impossible, possible = sampled_of(folder), [], []
    rankings = [new_run(), new_run(backwards=True), *(run_of(folder, f"run{run}") for run in range(3))]
    for name, ranking in product(("P@10", "P@3", "DCG@10", "nDCG@10", "ERR@10"), rankings):
        found = said(folder, sampled, name, ranking)
        shown, whole = found.within_range(), found.as_json()
        (possible if shown == found else impossible).append((name, ranking))
        assert whole["range"] == [0.0, found.largest]
        for topic, values in shown.by_topic.items():
            assert all(0 <= value <= found.largest for value in values.values())
            for key in values.keys() - {"qrels"}:
                assert whole["by_topic"][topic][f"unbounded_{key}"] == found.by_topic[topic][key]
        for key in ("estimate", "corrected", "estimate_over_topics", "corrected_over_topics"):
            result = getattr(shown, key)
            if isinstance(result, Estimate):
                assert 0 <= result.low <= result.value <= result.high <= found.largest
                assert whole[key]["unbounded_low"] == getattr(found, key).low
                assert whole[key]["low"] == result.low
        if name == "P@10" and isinstance(found.corrected, Estimate):
            parts = [values["corrected"] for values in found.by_topic.values()]
            assert np.mean(parts) == pytest.approx(found.corrected.value)
    for cases, is_said in ((impossible, True), (possible, False)):  # the control: some were impossible before
        name, ranking = cases[0]
        run = write_run(tmp_path / "mine.run", ranking)
        assert ("end at the range of the measure" in told(folder, run, name)) is is_said
        lines = [line.split("\t") for line in told(folder, run, name, "-q", "-n").splitlines()[1:]]
        assert all(float(cell) >= 0 for line in lines for cell in line[2:] if cell != "-")


def test_an_impossible_value_of_a_topic_is_shown_as_the_largest_and_kept_beside():
    none = Refusal("none")
    by_topic = {"t1": {"qrels": 0.4, "estimate": 1.4808}, "t2": {"qrels": 0.1, "estimate": -0.2}}
    mean = Estimate(0.6404, 0.4, -0.2, 1.48, None, 40, ("drawing",))
    outside = UnjudgedPart(0.0, None, None)
    found = Evaluation(
        "P@10", "P@10", 0.25, "difference", mean, none, mean, none, outside, by_topic, largest=1.0
    )
    told = found.as_json()
    assert told["by_topic"] == {
        "t1": {"qrels": 0.4, "estimate": 1.0, "unbounded_estimate": 1.4808},
        "t2": {"qrels": 0.1, "estimate": 0.0, "unbounded_estimate": -0.2},
    }
    assert (told["estimate"]["value"], told["estimate"]["low"], told["estimate"]["high"]) == (
        0.6404,
        0.0,
        1.0,
    )
    assert (told["estimate"]["unbounded_low"], told["estimate"]["unbounded_high"]) == (-0.2, 1.48)
    assert replace(found, largest=None).within_range() == replace(found, largest=None)  # Judged@k


def test_how_much_of_a_run_was_judged_stands_beside_its_values(tmp_path):
    release = unpacked(made_once(), tmp_path)
    sampled = sampled_of(release)
    found = said(release, sampled, "P@10", new_run())
    judged = said(release, sampled, "Judged@10", new_run())
    assert found.judged_share == pytest.approx(judged.qrels)
    assert 0 < found.gold_share < found.judged_share < 1
    table = told(release, write_run(tmp_path / "mine.run", new_run()), "P@10", "AP").splitlines()
    assert "Judged@k  gold" in table[2]
    assert f"{100 * found.judged_share:.0f} %" in table[3]
