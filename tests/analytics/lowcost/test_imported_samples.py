"""Samples drawn elsewhere, imported into a campaign: numbers, release and evaluation as of a drawn one."""

import json
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from foreign_sample import (
    collection_of,
    empty_campaign,
    import_text,
    imported_campaign,
    sample_files,
)
from made_releases import released
from small_release import unpacked

from analytics.services.analyses import AnalysisRefused, AnalysisSubject, analyse
from analytics.services.ranking import ranking_of
from analytics.services.recomputation import recompute, start_due_recomputations
from analytics.services.reuse import ReuseQuestion, ReuseRefused, answer
from judging.models import Judgment, Slot
from judging.services.files import import_runs
from sampling.frames import FrameRefused, load_frame
from sampling.models import Audit, DrawEntry
from sampling.questions import Design
from sampling.selections import NOT_AUDITED
from sampling.services.auditable import AuditRefused
from sampling.services.auditing import audit
from sampling.services.drawing import draw
from sampling.services.forecasting import preview
from sampling.services.population import DrawRefused
from touchstone.models import Job

pytestmark = pytest.mark.django_db
ALL = ("statAP", "P@10", "DCG@10")


def evaluated(path: Path, *arguments: object) -> dict[str, dict[str, float]]:
    """Return what `evaluate FILE RUN...` says: by measure, by run."""
    out = StringIO()
    call_command("evaluate", *map(str, (path, *arguments)), "--output", "json", stdout=out)
    return {one["measure"]: one["values"] for one in json.loads(out.getvalue())["measures"]}


def estimated(computation, measure: str, method: str = "naive") -> dict[tuple[str, str | None], Any]:
    """Return the stored estimates of a measure by run, or pair of runs."""
    rows = computation.estimates.filter(measure=measure, method=method).select_related("run", "run_b")
    return {(row.run.run_id, row.run_b.run_id if row.run_b else None): row for row in rows}


@pytest.mark.parametrize("codes", ["recorded", "track"])
def test_the_results_are_those_of_the_file(tmp_path: Path, codes: str) -> None:
    sample, campaign = imported_campaign(tmp_path, method_codes=codes)
    told = evaluated(sample.prels, *sample.runs, *ALL, "--format", "prels", "--method-codes", codes)
    computation = recompute(campaign=campaign)
    for measure in ALL:
        found = estimated(computation, measure)
        for run, value in told[measure].items():
            assert found[run, None].value == pytest.approx(value, abs=1e-9)
            for other, less in told[measure].items():
                if (run, other) in found:
                    assert found[run, other].value == pytest.approx(value - less, abs=1e-9)
    assert told["statAP"]["ann"] > 0.1
    assert found["ann", None].low < found["ann", None].value < found["ann", None].high


def test_what_a_sample_cannot_have_is_refused_by_name(tmp_path: Path) -> None:
    _, campaign = imported_campaign(tmp_path)
    computation = recompute(campaign=campaign)
    corrected = {row.refusal for row in computation.estimates.filter(method="corrected", measure="P@10")}
    assert corrected == {NOT_AUDITED}
    for name in ("nDCG@10", "AP"):
        found = estimated(computation, name)
        reasons = {row.refusal for row in found.values()}
        assert reasons == {
            f"{name} needs a prediction of every pooled document, and an imported sample has none; statAP needs none"
        }
    for name in ("ERR@10", "RR@10"):
        assert all("could not be drawn" in row.refusal for row in estimated(computation, name).values())
    statap = estimated(computation, "statAP")["ann", None]
    assert (statap.standard_error, statap.low, statap.high, statap.p_value) == (None, None, None, None)
    assert statap.warning.startswith("no interval of statAP holds")
    assert {row.refusal for row in computation.audit_forecasts.all()} == {NOT_AUDITED}
    assert "no interval" in ranking_of(computation=computation, measure="statAP", method="naive").refusal
    with pytest.raises(AuditRefused, match="no audits"):
        audit(campaign=campaign, items_each_time=5, items_in_total=5)
    design = Design("pool", (), "P@10", 20, 150)
    with pytest.raises(DrawRefused, match="nothing more can be drawn"):
        draw(campaign=campaign, design=design)
    with pytest.raises(DrawRefused, match="nothing more can be drawn"):
        preview(campaign=campaign, design=design)
    with pytest.raises(ReuseRefused, match="without its pool"):
        answer(campaign=campaign, asked=ReuseQuestion("ann", "P@10"))
    with pytest.raises(AnalysisRefused, match="no verdict that could change"):
        analyse(campaign=campaign, wanted=AnalysisSubject("sensitivity", "statAP"), progress=lambda *_: None)
    wanted = AnalysisSubject("no-judgments", "P@10")
    with pytest.raises(AnalysisRefused, match="without its pool"):
        analyse(campaign=campaign, wanted=wanted, progress=lambda *_: None)
    assert not Audit.objects.exists()
    assert campaign.draws.count() == 1


def test_a_topics_numbers_are_those_of_the_file(tmp_path: Path) -> None:
    sample, campaign = imported_campaign(tmp_path)
    out = StringIO()
    arguments = [str(sample.prels), *map(str, sample.runs), "P@10", "--format", "prels", "--by-topic"]
    call_command("evaluate", *arguments, "--output", "json", stdout=out)
    told = json.loads(out.getvalue())["measures"][0]["by_topic"]
    wanted = AnalysisSubject("topics", "P@10", "ann", "bea")
    found = analyse(campaign=campaign, wanted=wanted, progress=lambda *_: None)
    assert {row["topic_id"] for row in found["topics"]} == set(told)
    for row in found["topics"]:
        of = {run: values["value"] for run, values in told[row["topic_id"]].items()}
        assert row["difference"]["value"] == pytest.approx(of["ann"] - of["bea"], abs=1e-9)
        assert row["mean"]["value"] == pytest.approx(sum(of.values()) / 3, abs=1e-9)


def run_verify(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(folder / "verify.py")]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=folder.parent)


def words_of_sheets(folder: Path) -> str:
    return "".join(path.read_text() for path in folder.glob("*.md"))


@pytest.mark.parametrize("file_format", ["prels", "stratified"])
def test_a_release_of_it_is_valid_and_evaluates_runs_alike(tmp_path: Path, file_format: str) -> None:
    sample, campaign = imported_campaign(tmp_path, file_format)
    campaign.collection.runs.update(may_publish=True)
    computation = recompute(campaign=campaign)
    folder = unpacked(Path(released(campaign).file.path).read_bytes(), tmp_path / "release")
    told = run_verify(folder)
    assert (told.returncode, told.stderr) == (0, "")
    assert "numbers of estimates" in told.stdout
    assert "- A sample drawn elsewhere, imported with its probabilities from sample." in words_of_sheets(
        folder
    )
    assert "which this verifier does not know" not in told.stdout
    for run in sample.runs:
        out = StringIO()
        call_command("evaluate", str(folder), str(run), *ALL, "AP", "--output", "json", stdout=out)
        by_name = {one["measure"]: one for one in json.loads(out.getvalue())["measures"]}
        for measure in ALL:
            stored = estimated(computation, measure)[run.name, None]
            assert by_name[measure]["estimate"]["value"] == pytest.approx(stored.value, abs=1e-9)
        assert by_name["P@10"]["estimate"]["low"] == pytest.approx(
            estimated(computation, "P@10")[run.name, None].low, abs=1e-9
        )
        assert by_name["P@10"]["estimator"] == "Horvitz and Thompson"
        assert "statAP needs none" in by_name["AP"]["estimate"]["refusal"]
        assert by_name["P@10"]["corrected"]["refusal"] == NOT_AUDITED
    prels = evaluated(folder / "prels.txt", *sample.runs, *ALL, "--format", "prels")
    assert prels["statAP"]["ann"] == pytest.approx(
        estimated(computation, "statAP")["ann", None].value, abs=1e-9
    )

    # the control: a value that is not what the facts say is found
    rows = json.loads((folder / "estimates.json").read_text())
    wrong = next(row for row in rows["estimates"] if row["measure"] == "statAP" and row["method"] == "naive")
    wrong["value"] += 1e-6
    (folder / "estimates.json").write_text(json.dumps(rows))
    assert "estimates.json statAP naive ann value: recorded" in run_verify(folder).stdout


def test_strata_are_a_frame_with_what_was_not_drawn(tmp_path: Path) -> None:
    sample, campaign = imported_campaign(tmp_path, "stratified")
    lines = [line.split() for line in sample.strata.read_text().splitlines()]
    cells = [(topic, stratum) for topic, _, _, stratum, _ in lines]
    drawn = [cell for cell, line in zip(cells, lines, strict=True) if line[4] != "-1"]
    wanted = {
        (line[0], line[2]): (drawn.count(cell) / cells.count(cell), int(line[4] != "-1"))
        for cell, line in zip(cells, lines, strict=True)
    }
    frame = load_frame(campaign.draws.get())
    found = {
        row[:2]: row[2:] for row in frame.select("topic_id", "doc_id", "batch_1", "drawn_in").iter_rows()
    }
    assert found == wanted
    assert Judgment.objects.count() == len(drawn) < len(lines)
    assert DrawEntry.objects.count() == len(drawn)
    assert set(Slot.objects.values_list("state", flat=True)) == {"done"}
    statap = estimated(recompute(campaign=campaign), "statAP")
    prels = tmp_path / "same.prels"
    prels.write_text("".join(f"{t} {d} {g} 1 {wanted[t, d][0]!r}\n" for t, _, d, _, g in lines if g != "-1"))
    told = evaluated(prels, *sample.runs, "statAP", "--format", "prels")["statAP"]
    assert {run: statap[run, None].value for run in told} == pytest.approx(told, abs=1e-9)


def test_a_campaign_without_runs_has_numbers_as_soon_as_there_are_some(tmp_path: Path) -> None:
    sample = sample_files(tmp_path)
    campaign = empty_campaign(collection_of(sample, runs=False))
    import_text(campaign, sample.prels.read_text())
    start_due_recomputations()
    assert not Job.objects.filter(kind="estimate").exists()
    with pytest.raises(FrameRefused, match="no runs"):
        recompute(campaign=campaign)
    import_runs(collection=campaign.collection, files=[(path, path.name) for path in sample.runs])
    start_due_recomputations()
    assert Job.objects.filter(kind="estimate").count() == 1
