"""Documents that could not be judged and that two runs return at the same rank: they cancel in the difference."""

import json

import pytest
import small_release
from django.core.management import call_command
from small_campaign import TOPICS, doc_id
from small_release import judged_campaign, release_of, unpacked

from analytics.models import Estimate
from analytics.releases.verify import verify
from analytics.services.recomputation import recompute
from analytics.services.reuse import ReuseQuestion, answer
from judging.services.files import import_runs
from sampling.frames import load_frame, newest_draw

pytestmark = pytest.mark.django_db
ORDER = [2, 3, 0, 1, 4, 5, 8, 9, 6, 7]  # run0 has these documents in order: two ranks are the same


@pytest.fixture
def campaign(tmp_path, monkeypatch):
    """Drawn for run0 and its twin alone, with nothing for others: what they return at one rank is never drawn."""
    design, undrawn = small_release.Design, small_release.make_undrawn

    def with_twin(folder, **options):
        made = undrawn(folder, **options)
        lines = [
            f"{topic} Q0 {doc_id(n, d)} {rank} {100 - rank} twin\n"
            for n, topic in enumerate(TOPICS)
            for rank, d in enumerate(ORDER, start=1)
        ]
        (folder / "twin.run").write_text("".join(lines))
        import_runs(collection=made.collection, files=[(folder / "twin.run", "twin.run")])
        return made

    def for_the_two(kind, runs, **about):
        return design(kind, ("run0", "twin"), other_runs_share=0.0, uniform_share=0.0, **about)

    monkeypatch.setattr(small_release, "make_undrawn", with_twin)
    monkeypatch.setattr(small_release, "Design", for_the_two)
    made = judged_campaign(tmp_path, kind="pair", budget=30)
    assert (load_frame(newest_draw(made))["inclusion_probability"] == 0).sum() == 18
    return made


def test_the_difference_has_its_number_on_page_in_release_and_by_evaluate(campaign, tmp_path, capsys):
    computation = recompute(campaign=campaign)
    rows = {
        (row.run.run_id, row.run_b.run_id if row.run_b else "", row.method): row
        for row in Estimate.objects.filter(computation=computation, measure="DCG@10").select_related(
            "run", "run_b"
        )
    }
    pair = rows["run0", "twin", "corrected"]
    assert pair.refusal == ""
    assert (pair.outside_low, pair.outside_high) == (None, None)
    assert pair.value == pytest.approx(
        rows["run0", "twin", "true"].value, abs=1e-12
    )  # all is judged and audited
    # the control: each alone returns what nobody could judge
    assert "documents that could not be drawn" in rows["run0", "", "corrected"].refusal
    assert "documents that could not be drawn" in rows["run0", "run1", "corrected"].refusal
    folder = unpacked(release_of(campaign), tmp_path)
    assert verify(folder).different == []
    call_command("evaluate", str(folder), "run0", "DCG@10", "--against", "twin", "--output", "json")
    [said] = json.loads(capsys.readouterr().out)["comparisons"]
    assert said["value"] == pytest.approx(pair.value, rel=1e-9)
    assert said["other"]["low"] == pytest.approx(pair.low, rel=1e-9)
    assert answer(campaign=campaign, asked=ReuseQuestion("run0", "DCG@10", "twin")).outside is None
