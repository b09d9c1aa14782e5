"""A scale whose grade 1 is not relevant: a release and its verifier agree on what is."""

import json

import pytest
from reciprocal_rank import RR, plant
from small_release import judged_campaign, release_of, unpacked

from analytics.releases.verify import verify
from analytics.services.recomputation import recompute


@pytest.mark.django_db
def test_a_release_of_a_scale_whose_grade_2_is_relevant_is_verified(tmp_path, monkeypatch):
    plant(monkeypatch)
    campaign = judged_campaign(tmp_path, budget=42, relevant_grade=2)
    name = f"{RR.key}@10"
    rows = list(recompute(campaign=campaign).estimates.filter(measure=name, method="naive"))
    assert rows
    assert all(row.value is not None for row in rows)
    folder = unpacked(release_of(campaign), tmp_path / "release")
    assert json.loads((folder / "estimates.json").read_text())["measures"][name]["gains"] == [0, 0, 1, 1]
    report = verify(folder)
    assert report.different == []
    assert not any(name in words for words in report.not_recomputed)
