"""`manage.py evaluate`: what a release's judgments tell of a run, on files alone."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from django.core.management import CommandError
from release_runs import (
    grades_of,
    mean_of,
    new_run,
    run_of,
    said,
    sampled_of,
    told,
    write_run,
)
from small_campaign import TOPICS, true_grade
from small_release import made_once, unpacked

from analytics.estimation.estimate import Estimate, Refusal
from sampling.measures.scoring import measure_on_scale

pytestmark = pytest.mark.django_db
REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
def release(tmp_path):
    return unpacked(made_once(), tmp_path)


@pytest.fixture
def sampled(release):
    return sampled_of(release)


# -- numbers -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"selection": "pareto"},
        {"budget": 24, "top_up": 34, "audited": 26},
        {"selection": "replacement", "kind": "pair", "budget": 30, "audited": 20},
        {"tier": "gold", "audited": 0},
    ],
    ids=str,
)
def test_a_run_of_the_release_gets_the_estimates_of_the_release(options, tmp_path):
    folder = unpacked(made_once(**options), tmp_path)
    sampled, compared = sampled_of(folder), 0
    rows = json.loads((folder / "estimates.json").read_text())["estimates"]
    for row in rows:
        if (
            row["run_b"]
            or row["measure"] not in ("P@10", "DCG@10")
            or row["method"] not in ("naive", "corrected")
        ):
            continue
        found = said(folder, sampled, row["measure"], run_of(folder, row["run"])).within_range()
        name = "estimate" if row["method"] == "naive" else "corrected"
        result, over_topics = getattr(found, name), getattr(found, f"{name}_over_topics")
        if row["value"] is None:
            assert isinstance(result, Refusal)
            continue
        for field in ("value", "standard_error", "low", "high", "n"):
            assert getattr(result, field) == pytest.approx(row[field], rel=1e-9), field
        assert over_topics.low == pytest.approx(row["topics_low"], rel=1e-9)
        assert over_topics.high == pytest.approx(row["topics_high"], rel=1e-9)
        compared += 1
    assert compared >= 6


def test_ratios_of_a_run_of_the_release_are_its_own_too_by_the_seed_it_names(release, sampled):
    rows = json.loads((release / "estimates.json").read_text())["estimates"]
    given, compared = {"naive": "estimate", "corrected": "corrected"}, 0
    for row in rows:
        if row["measure"] in ("nDCG@10", "AP@10") and row["method"] in given and not row["run_b"]:
            whole = said(release, sampled, row["measure"], run_of(release, row["run"])).within_range()
            name = given[row["method"]]
            for field in ("value", "standard_error", "low", "high", "n"):
                assert getattr(getattr(whole, name), field) == pytest.approx(row[field], rel=1e-9), field
            for field in ("low", "high", "degrees_of_freedom", "standard_error"):
                over = getattr(getattr(whole, f"{name}_over_topics"), field)
                assert over == pytest.approx(row[f"topics_{field}"], rel=1e-9), field
            compared += 1
    assert compared == 12


def test_corrected_ratios_of_a_release_without_predictions_of_gold_take_the_means_of_the_classes(release):
    sampled = sampled_of(release)
    ranking = run_of(release, "run0")
    predicted = said(release, sampled, "nDCG@10", ranking).corrected
    sampled[0].facts.gold.clear()
    older = said(release, sampled, "nDCG@10", ranking).corrected
    assert isinstance(older, Estimate)
    assert older.value != predicted.value
    assert older.low < predicted.value < older.high


@pytest.mark.parametrize("measure", ["P@10", "DCG@10", "RBP@10", "Gain@5", "P(rel=3)@5"])
def test_a_new_run_has_its_true_value_where_everything_was_drawn_and_audited(measure, tmp_path):
    folder = unpacked(made_once(budget=42, audited=42), tmp_path)
    ranking = new_run()
    true = {topic: {d: true_grade(topic, d) for d in documents} for topic, documents in ranking.items()}
    expected = mean_of(measure, ranking, true)
    found = said(folder, sampled_of(folder), measure, ranking)
    assert found.corrected.value == pytest.approx(expected, abs=1e-12)
    assert found.corrected.standard_error < 1e-6 or found.corrected.low <= expected <= found.corrected.high


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("measure", ["P@10", "DCG@10", "P(rel=2)@10"])  # of the last nothing is predicted
def test_a_new_run_is_estimated_and_its_interval_holds_the_truth(measure, backwards, release, sampled):
    ranking = new_run(backwards=backwards)
    true = {topic: {d: true_grade(topic, d) for d in documents} for topic, documents in ranking.items()}
    expected = mean_of(measure, ranking, true)
    found = said(release, sampled, measure, ranking)
    assert isinstance(found.corrected, Estimate)
    assert found.corrected.low < expected < found.corrected.high
    assert found.corrected_over_topics.low <= found.corrected.low
    assert found.corrected_over_topics.high >= found.corrected.high
    assert found.estimator == ("Hajek" if "rel=2" in measure else "difference")


def test_the_parts_of_topics_add_up_to_the_value(release, sampled):
    for measure in ("DCG@10", "P(rel=2)@10"):
        found = said(release, sampled, measure, new_run())
        for name in ("estimate", "corrected"):
            parts = [values[name] for values in found.by_topic.values()]
            assert np.mean(parts) == pytest.approx(getattr(found, name).value, rel=1e-12), name
        assert np.mean([values["qrels"] for values in found.by_topic.values()]) == pytest.approx(found.qrels)


def test_documents_that_could_not_be_judged_widen_the_interval_by_what_they_may_be_worth(release, sampled):
    ranking = new_run()
    ranking["t1"] = [*ranking["t1"][:9], "unheard-of"]
    found = said(release, sampled, "P@10", ranking)
    inside = said(release, sampled, "P@10", {**ranking, "t1": ranking["t1"][:9]})
    assert found.outside.share == pytest.approx(1 / 30)
    for name in ("estimate", "corrected"):
        wide, plain = getattr(found, name), getattr(inside, name)
        assert wide.value == pytest.approx(plain.value, abs=1e-12)
        assert wide.low == pytest.approx(plain.low, abs=1e-12)
        assert wide.high == pytest.approx(plain.high + 1 / 30, abs=1e-12)
        assert "documents that could not be judged may add up to 0.0333" in wide.warning
        over, over_plain = (getattr(one, f"{name}_over_topics") for one in (found, inside))
        assert over.high == pytest.approx(over_plain.high + 1 / 30, abs=1e-12)


def test_a_run_with_too_many_documents_that_could_not_be_judged_is_refused_and_gets_bounds(release, sampled):
    ranking = new_run()
    strangers = {
        topic: [*documents[:6], *(f"{topic}-{n}" for n in range(4))] for topic, documents in ranking.items()
    }
    found = said(release, sampled, "P@10", strangers)
    assert isinstance(found.estimate, Refusal)
    assert (
        "40.0% of the run's weight in P@10 lies on documents that could not be judged"
        in found.estimate.reason
    )
    assert found.outside.share == pytest.approx(0.4)
    kept = {topic: documents[:6] for topic, documents in ranking.items()}
    inside = said(release, sampled, "P@10", kept).corrected
    assert found.outside.low == pytest.approx(max(0, inside.low), rel=1e-9)
    assert found.outside.high == pytest.approx(min(1, inside.high + 0.4), rel=1e-9)
    ratio = said(release, sampled, "nDCG@10", strangers)
    assert "40.0% of the documents" in ratio.estimate.reason
    deeper = {**new_run(), "t1": [*new_run()["t1"], "unheard-of"]}  # beyond the cutoff it does no harm
    assert isinstance(said(release, sampled, "P@10", deeper).estimate, Estimate)


def test_an_empty_run_and_a_release_without_audits_are_told_apart(release, sampled, tmp_path):
    found = said(release, sampled, "P@10", {"t0": []})
    assert found.estimate.reason == "the run returns nothing for the topics of the release: its value is 0"
    other = unpacked(made_once(audited=0), tmp_path / "other")
    unaudited = said(other, sampled_of(other), "P@10", new_run())
    assert isinstance(unaudited.estimate, Estimate)
    assert unaudited.corrected.reason == "the release has no complete audit"


@pytest.mark.parametrize(
    ("name", "spelled"),
    [
        ("P@10", "P(rel=2)@10"),
        ("P(rel=1)@10", "P@10"),
        ("AP@20", "AP(rel=2)@20"),
        ("nDCG@10", "nDCG(gains={0:0,1:1,2:3})@10"),
        ("RBP(p=0.5)@5", "RBP(p=0.5,rel=2)@5"),
        ("micro AP", ""),
        ("DCG@10", ""),
        ("Judged@10", "Judged@10"),
    ],
)
def test_every_measure_knows_under_which_name_ir_measures_has_the_same(name, spelled):
    assert measure_on_scale(name, [0, 1, 3], 2).ir_measures == spelled


# -- the command -------------------------------------------------------------------------------------------------


def test_it_works_without_a_database_redis_and_settings_of_one(release, tmp_path):
    run = write_run(tmp_path / "mine.run", new_run())
    clean = {
        "PATH": os.environ["PATH"],
        "DATABASE_URL": "postgresql://nobody@192.0.2.1:1/x",
        "HOME": str(tmp_path),
    }
    command = [sys.executable, "manage.py", "evaluate", release, run, "P@10", "--output", "json"]
    found = subprocess.run(
        command,
        cwd=REPOSITORY,
        env={**clean, "TOUCHSTONE_VAR": str(tmp_path / "var")},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (found.returncode, found.stderr) == (0, "")
    assert json.loads(found.stdout)["measures"][0]["measure"] == "P@10"
    assert not (tmp_path / "var").exists()


def test_a_zip_and_a_gzip_run_give_the_same_as_their_plain_forms(release, tmp_path):
    plain = write_run(tmp_path / "mine.run", new_run())
    packed = tmp_path / "mine.run.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    archive = tmp_path / "release.zip"
    archive.write_bytes(made_once())
    assert told(archive, packed, "P@10", "nDCG@10") == told(release, plain, "P@10", "nDCG@10")


def test_the_table_names_run_measures_and_reasons(release, tmp_path):
    ranking = new_run()
    table = told(
        release, write_run(tmp_path / "mine.run", ranking), "P@10", "Judged@5", "-p", "3"
    ).splitlines()
    assert "A small release" in table[0]
    assert "run mine, 3 topics" in table[0]
    assert table[2].split()[:2] == ["measure", "qrels"]
    grades = grades_of(release)
    expected = np.mean([sum(grades[t].get(d, 0) > 0 for d in docs[:10]) / 10 for t, docs in ranking.items()])
    judged = np.mean([sum(d in grades[t] for d in docs[:5]) / 5 for t, docs in ranking.items()])
    assert table[3].split()[:2] == ["P@10", f"{expected:.3f}"]
    assert table[4].split()[:2] == ["Judged@5", f"{judged:.3f}"]
    assert any(
        "no error bar for the judges" in line and line.startswith("P@10 estimate") for line in table[5:]
    )


def test_by_topic_writes_a_line_a_topic_and_measure(release, tmp_path):
    run = write_run(tmp_path / "mine.run", new_run())
    lines = told(release, run, "P@10", "DCG@10", "-q", "-n").splitlines()
    assert lines[0].split("\t") == ["topic", "measure", "qrels", "estimate", "corrected"]
    assert [line.split("\t")[:2] for line in lines[1:]] == [
        [t, m] for m in ("P@10", "DCG@10") for t in TOPICS
    ]
    both = told(release, run, "P@10", "-q")
    assert "\t" in both
    assert "A small release" in both


def test_json_has_everything_and_by_topic_only_when_asked(release, tmp_path):
    run = write_run(tmp_path / "mine.run", new_run())
    value = json.loads(told(release, run, "DCG@10", "--output", "json"))
    assert (value["run"], value["n_topics"], value["release"]["version"]) == ("mine", 3, "1.0")
    one = value["measures"][0]
    assert set(one["corrected"]["components"]) == {"drawing", "gold"}
    assert "by_topic" not in one
    asked_for = json.loads(told(release, run, "DCG@10", "--output", "json", "-q"))["measures"][0]
    assert set(asked_for["by_topic"]) == set(TOPICS)


def test_a_release_is_found_by_campaign_and_version(release, tmp_path, monkeypatch):
    run = write_run(tmp_path / "mine.run", new_run())
    monkeypatch.setenv("TOUCHSTONE_RELEASES", str(release.parent))
    slug = json.loads((release / "manifest.json").read_text())["slug"]
    assert told(f"touchstone/{slug}/1.0", run, "P@10") == told(release, run, "P@10")
    with pytest.raises(CommandError, match=f"no release {slug} 2.0: looked for"):
        told(f"{slug}/2.0", run, "P@10")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("t0 Q0 t0d00 1 high mine\n", r"mine\.run:6:15: "),
        ("t0 Q0 t0d00 1 2.5\n", r"mine\.run:6:18: expected 6 columns"),
        ("t0 Q0 t0d01 1 2.5 mine\n", r"mine\.run:6:7: .*twice"),
    ],
)
def test_a_bad_run_is_refused_with_file_line_and_column(release, tmp_path, line, words):
    before = "".join(f"t0 Q0 t0d0{place} {place} {9 - place} mine\n" for place in range(1, 6))
    (tmp_path / "mine.run").write_text(before + line)  # the format is recognised by the first lines
    with pytest.raises(CommandError, match=words):
        told(release, tmp_path / "mine.run", "P@10")


@pytest.mark.parametrize(
    ("measure", "words"),
    [
        ("P@ten", "spelled Family"),
        ("Nothing@10", "'Nothing'"),
        ("P", "needs a cutoff"),
        ("P(rel=9)@10", "relevant grade must be within"),
        ("Rprec", "ratio"),
    ],
)
def test_an_unknown_measure_is_one_clear_error_that_names_those_known(release, tmp_path, measure, words):
    run = write_run(tmp_path / "mine.run", new_run())
    with pytest.raises(CommandError, match=words) as refused:
        told(release, run, "P@10", measure)
    assert "(known here: P@10" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_missing_run_a_missing_release_and_a_damaged_one_are_clear_errors(release, tmp_path):
    run = write_run(tmp_path / "mine.run", new_run())
    with pytest.raises(
        CommandError, match=r"none\.run is no file, and no run of the release, which has run0"
    ):
        told(release, tmp_path / "none.run", "P@10")
    with pytest.raises(CommandError, match="there is no such file or folder"):
        told(tmp_path / "none.zip", run, "P@10")
    (release / "items.jsonl").write_text('{"topic_id": "t0"}\n')
    with pytest.raises(CommandError, match="the release is damaged"):
        told(release, run, "P@10")
