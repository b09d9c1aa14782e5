"""A release names the head of the ledger of its moment, and goes on verifying while the ledger grows."""

import json
import zipfile
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from ledger_world import run
from made_releases import judged, released
from quick_flush import unguarded

from analytics.releases.services.releasing import build_again
from touchstone.ledger.sealing import seal_new_rows
from touchstone.ledger.verification import release_faults
from touchstone.models import Event, Seal, ledger_head

pytestmark = pytest.mark.django_db
JUDGMENT = "judging_judgment"


def manifest_of(release):
    with zipfile.ZipFile(release.file.path) as archive:
        [name] = [name for name in archive.namelist() if name.endswith("manifest.json")]
        return json.loads(archive.read(name))


def test_a_release_names_the_head_of_its_moment_and_is_made_again_with_it(tmp_path):
    campaign = judged(tmp_path)
    seal_new_rows()
    head = ledger_head()
    release = released(campaign)
    assert manifest_of(release)["ledger"] == head
    seal_new_rows()
    assert ledger_head() != head
    assert build_again(release=release).is_same
    said = StringIO()
    call_command("verify_ledger", release.file.path, stdout=said)
    assert f"{Path(release.file.name).name}: its head is that of a seal" in said.getvalue()


def test_a_release_that_is_older_than_the_ledger_goes_on_verifying(tmp_path):
    release = released(judged(tmp_path))
    assert "ledger" not in manifest_of(release)
    seal_new_rows()
    assert build_again(release=release).is_same
    said = []
    assert list(release_faults(Path(release.file.path), said.append)) == []
    assert "names no head of the ledger" in said[0]


def test_after_the_past_was_rewritten_with_all_seals_the_releases_head_is_no_seals(tmp_path):
    campaign = judged(tmp_path)
    seal_new_rows()
    release = released(campaign)
    with unguarded([JUDGMENT, Seal.OF_SEALS]):
        run(
            "UPDATE judging_judgment SET comment = 'forged' WHERE id = (SELECT min(id) FROM judging_judgment)"
        )
        Seal.objects.all().delete()
    Event.objects.create(verb="x", subject="y")
    seal_new_rows()
    call_command("verify_ledger", stdout=StringIO())  # the database alone cannot tell
    faults = StringIO()
    with pytest.raises(CommandError, match="1 differences"):
        call_command("verify_ledger", release.file.path, stdout=StringIO(), stderr=faults)
    head = manifest_of(release)["ledger"]
    name = Path(release.file.name).name
    assert faults.getvalue() == f"{name}: its head of the ledger, {head}, is that of no seal\n"


def test_a_release_whose_files_were_changed_is_named(tmp_path):
    release = released(judged(tmp_path))
    copy = tmp_path / "copy.zip"
    with zipfile.ZipFile(release.file.path) as there, zipfile.ZipFile(copy, "w") as made:
        for name in there.namelist():
            content = there.read(name)
            made.writestr(
                name, content + b" " if name.endswith("/qrels.txt") and "beir" not in name else content
            )
    [fault] = release_faults(copy)
    assert fault.startswith("copy.zip: qrels.txt: ")
    copy.write_bytes(b"no zip")
    [fault] = release_faults(copy)
    assert fault.startswith(f"copy.zip: {copy}")
