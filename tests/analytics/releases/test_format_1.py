"""A release of format 1, which named every run: it is made again as the version that made it wrote it."""

import json
import re
from hashlib import sha256
from pathlib import Path

import pytest
from django.db import connection
from made_releases import opened
from small_release import judged_campaign, release_of

from analytics.models import Release
from analytics.releases.pseudonyms import pseudonym
from analytics.releases.services import releasing
from analytics.releases.services.releasing import build_again

pytestmark = pytest.mark.django_db
RECORDED = Path(__file__).parents[2] / "recorded" / "release-format-1.json"
KEY = "5a" * 32
SEQUENCES = ("judging_assessor_id_seq", "judging_judgment_id_seq")
# Two hold sizes and hashes of files with today's date; the last a test of drift, made of the times of judgments.
OF_THE_DAY = {"manifest.json", "croissant.json", "confusion.json"}
FLOAT = re.compile(r"-?\d+\.\d+(e-?\d+)?")


@pytest.fixture
def campaign(tmp_path):
    """A campaign whose rows have the same ids in every database: pseudonyms and seeds follow from them."""
    with connection.cursor() as cursor:
        for name in SEQUENCES:
            cursor.execute(f"ALTER SEQUENCE {name} RESTART WITH 700001")
    made = judged_campaign(tmp_path)
    made.name = "Small campaign"
    made.save()
    type(made.collection).objects.filter(pk=made.collection_id).update(name="Small collection")
    return made


def digests_of(release):
    """Return the SHA-256 of every text file but for what the day, and the last digits of numbers, make of it."""
    inside = opened(release)
    day = release.created_at.strftime("%Y-%m-%d")
    assert pseudonym(KEY, 700001) in inside.text("assessors.jsonl")
    found = {}
    for name in inside.names:
        if name in OF_THE_DAY or name.endswith((".parquet", ".gz", ".py")):
            continue
        text = inside.text(name).replace(release.manifest["as_of"], "MOMENT").replace(day, "DAY")
        text = text.replace(release.merkle_root, "ROOT").replace(f"year = {{{day[:4]}}}", "YEAR")
        text = FLOAT.sub(lambda number: f"{float(number[0]):.6g}", text.replace(f"({day[:4]})", "YEAR"))
        found[name] = sha256(text.encode()).hexdigest()
    return found


def test_it_is_made_as_the_version_before_wrote_it_and_again_byte_for_byte(campaign, monkeypatch):
    monkeypatch.setattr(releasing, "FORMAT", 1, raising=False)
    monkeypatch.setattr(releasing, "new_key", lambda: KEY)
    release_of(campaign, hidden=("run1",), documents=False)
    release = Release.objects.get()
    assert digests_of(release) == json.loads(RECORDED.read_text())
    assert {run["run_id"] for run in json.loads(opened(release).text("runs.json"))} == {
        "run0",
        "run1",
        "run2",
    }
    monkeypatch.undo()
    again = build_again(release=release)
    assert (again.is_same, again.files, again.facts) == (True, (), ())
