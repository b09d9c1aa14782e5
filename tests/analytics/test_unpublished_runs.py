"""Runs whose makers do not allow it are nowhere in a release: in no file, and in no family that p is adjusted for."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from made_releases import opened
from small_release import judged_campaign, release_of, unpacked
from told_names import told_anywhere

from analytics.estimation.comparison import holm
from analytics.models import ComparisonFamily, Release
from analytics.releases.services.published_runs import PublishedRuns
from analytics.releases.services.releasing import build_again
from analytics.releases.verify import verify
from analytics.services.families import declare_family
from analytics.services.recomputation import recompute
from judging.models import Run
from sampling.models import Audit
from touchstone.models import User

pytestmark = pytest.mark.django_db
SECRET = "zq-sécret&system"  # the tag of a run, which formats write in several ways


def renamed(campaign, run_id):
    """Give a run and whatever names it, which no page can change, a tag that stands nowhere else."""
    Run.objects.filter(run_id=run_id).update(run_id=SECRET)


def campaign_with_secret(folder, monkeypatch, run_id="run1", **options):
    """Return a campaign whose run has the secret tag from its upload on."""
    import small_campaign

    make = small_campaign.make_undrawn
    folder.mkdir()

    def undrawn(*arguments, **named):
        made = make(*arguments, **named)
        renamed(made, run_id)
        return made

    monkeypatch.setattr("small_release.make_undrawn", undrawn)
    return judged_campaign(folder, **options)


@pytest.mark.parametrize("options", [{}, {"kind": "pair"}, {"top_up": 44}])
def test_no_byte_of_a_release_holds_the_name_of_an_unpublished_run(tmp_path, monkeypatch, options):
    run_id = "run2" if options.get("kind") == "pair" else "run1"
    if options.get("kind") == "pair":
        monkeypatch.setattr("small_release.Design", _asking_about_the_secret)
    campaign = campaign_with_secret(tmp_path / "made", monkeypatch, run_id, **options)
    recompute(campaign=campaign)
    release_of(campaign, hidden=(SECRET,), documents=False)
    release = Release.objects.get()
    assert told_anywhere(release, SECRET) == []
    assert SECRET not in json.dumps(release.manifest)
    inside = opened(release)
    runs = json.loads(inside.text("runs.json"))
    assert {run["run_id"] for run in runs} == {"run0", "run1", "run2"} - {run_id}
    assert all(run["file"] for run in runs)
    counts = json.loads(inside.text("manifest.json"))["counts"]
    assert (counts["runs"], counts["runs not published"]) == (3, 1)
    design = json.loads(inside.text("draws/draw-1.json"))["parameters"]
    assert "unpublished-1" in design["pooled"]
    if options.get("kind") == "pair":
        assert design["runs"] == ["run0", "unpublished-1"]
    assert build_again(release=release).is_same


def _asking_about_the_secret(kind, runs, **named):
    from sampling.questions import Design

    return Design(kind, tuple(SECRET if run == "run2" else run for run in runs), **named)


def test_its_verifier_passes_and_holm_is_over_the_published_pairs(tmp_path, monkeypatch):
    campaign = campaign_with_secret(tmp_path / "made", monkeypatch)
    computation = recompute(campaign=campaign)
    content = release_of(campaign, hidden=(SECRET,))
    folder = unpacked(content, tmp_path / "out")
    command = [sys.executable, str(folder / "verify.py"), "--json"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    report = json.loads(run.stdout)
    assert (run.returncode, report["different"]) == (0, [])
    assert report["same"]["comparisons"] > 0
    assert report["same"]["numbers of matrices"] > 0
    assert verify(folder).different == []
    told = json.loads((folder / "comparisons.json").read_text())
    assert (told["family"]["runs"], told["family"]["unpublished_runs"]) == (["run0", "run2"], 1)
    assert "published" in told["family"]["adjusted_over"]
    assert {(row["run"], row["run_b"]) for row in told["comparisons"]} == {("run0", "run2")}
    for row in told["comparisons"]:  # one published pair: nothing to adjust for, though three were tested
        for claim in ("these-topics", "topics-like-these"):
            p = row[claim]["p"]
            assert row[claim]["p_adjusted"] == (None if p is None else holm([p])[0])
    estimates = json.loads((folder / "estimates.json").read_text())
    assert estimates["unpublished_runs"] == 1
    published = computation.estimates.exclude(run__run_id=SECRET).exclude(run_b__run_id=SECRET)
    assert len(estimates["estimates"]) == published.count() < computation.estimates.count()


def test_a_family_that_names_an_unpublished_run_is_told_without_it(tmp_path, monkeypatch):
    campaign = campaign_with_secret(tmp_path / "made", monkeypatch)
    recompute(campaign=campaign)
    boss = User.objects.create(username="boss", role="manager")
    cases = {
        f"baseline:{SECRET}": ("baseline:unpublished-1", "unpublished-1", 0),
        f"runs:run0,{SECRET}": ("runs:run0,unpublished-1", "", 0),
        "all": ("all", "", 1),
    }
    for number, (name, (told_name, baseline, n_pairs)) in enumerate(cases.items()):
        declare_family(campaign=campaign, user=boss, name=name)
        campaign.collection.runs.exclude(run_id=SECRET).update(may_publish=True)
        release = _released(campaign, f"{number + 1}.0")
        assert told_anywhere(release, SECRET) == []
        told = json.loads(opened(release).text("comparisons.json"))
        assert (told["family"]["name"], told["family"]["baseline"]) == (told_name, baseline)
        rows = [row for row in told["comparisons"] if row["measure"] == "DCG@10"]
        assert len(rows) == n_pairs
        assert verify(unpacked(Path(release.file.path).read_bytes(), tmp_path / str(number))).different == []
    assert ComparisonFamily.objects.count() == len(cases)


def _released(campaign, version):
    from made_releases import released

    return released(campaign, version=version)


def test_whatever_else_names_an_unpublished_run_gets_a_stand_in_that_no_run_has(tmp_path, monkeypatch):
    campaign = campaign_with_secret(tmp_path / "made", monkeypatch, audited=0)
    Run.objects.filter(run_id="run0").update(run_id="unpublished-1", may_publish=True)
    tier, strategy = Audit._meta.get_field("tier").default, Audit._meta.get_field("strategy").default
    Audit.objects.create(
        campaign=campaign, sequence=1, run=SECRET, against="run2", seed=1, expected_in_total=1, n_eligible=1,
        n_selected=0, tier=tier, strategy=strategy,
    )  # fmt: skip
    published = PublishedRuns.of(campaign, 2)
    # run0 is no more a run of the collection, but the draw has pooled it.
    assert dict(published.hidden) == {
        "run0": "unpublished-2",
        "run2": "unpublished-3",
        SECRET: "unpublished-4",
    }
    assert [run.run_id for run in published.runs] == ["unpublished-1"]
    assert published.n_unpublished == 2
    assert dict(PublishedRuns.of(campaign, 1).hidden) == {}
    release = _released(campaign, "1.0")
    assert told_anywhere(release, SECRET) == []
    [audit] = json.loads(opened(release).text("audits.json"))
    assert (audit["run"], audit["against"]) == ("unpublished-4", "unpublished-3")
