"""What a folder of backups keeps, heals and removes, without any cluster."""

from datetime import datetime

import pytest

from touchstone.backups import BackupError
from touchstone.backups.folder import (
    DUMP,
    Backups,
    Manifest,
    StoredFile,
    backup_name,
    hash_of,
    read_manifest,
    write_manifest,
)
from touchstone.backups.making import copy_files, refuse_another
from touchstone.backups.restoring import _recovery


@pytest.fixture
def backups(tmp_path):
    made = Backups(tmp_path / "backups")
    (made.root / "files").mkdir(parents=True)
    return made


def complete(backups, start, segment="000000010000000000000001", files=None, system="ours", database=None):
    """Write the folder of a backup as it would be, with nothing of the database but the label."""
    moment = datetime.fromisoformat(start)
    folder = backups.root / backup_name(moment)
    (folder / "base").mkdir(parents=True)
    (folder / "base" / "backup_label").write_text(f"START WAL LOCATION: 0/1 (file {segment})\n")
    write_manifest(
        folder,
        Manifest(
            version="1",
            postgresql=180000,
            system=system,
            timeline=1,
            schema="",
            start=moment.isoformat(),
            end=moment.isoformat(),
            start_lsn="0/1",
            end_lsn="0/1",
            heads={},
            database=database or {},
            files=files or {},
        ),
    )
    return folder


def damage(folder):
    place = folder / "manifest.json"
    place.write_text(place.read_text().replace("ours", "hers"))


def test_segments_go_by_their_place_in_the_log_not_by_their_timeline(backups):
    complete(backups, "2026-11-20T14:00:00Z", "000000010000000000000020")
    complete(backups, "2026-11-21T14:00:00Z", "000000020000000000000011")  # an older one was restored
    backups.wal.mkdir()
    names = {
        "00000001000000000000000F": False,
        "000000010000000000000010.partial": False,
        "000000010000000000000011": True,
        "000000010000000000000020": True,
        "000000020000000000000011": True,
        "000000020000000000000012.partial": True,
        "00000002.history": True,
    }
    for name in names:
        (backups.wal / name).touch()
    backups.remove_old(2)
    assert {path.name for path in backups.wal.iterdir()} == {name for name, stays in names.items() if stays}


def test_a_log_that_began_anew_since_the_backup_is_known_by_the_folder_alone(backups):
    assert backups.has_gap()
    complete(backups, "2000-01-01T14:00:00Z")
    assert not backups.has_gap()
    backups.set_log_aside()  # a slot is made, and there is no segment yet
    assert backups.has_gap()
    assert Backups(backups.root).has_gap()
    complete(backups, "2999-01-01T00:00:00Z")
    assert not backups.has_gap()


def test_a_dump_by_hand_stands_for_no_copy_that_the_log_leads_on_from(backups):
    copied = complete(backups, "2026-11-20T14:00:00Z")
    backups.set_log_aside()
    dumped = complete(backups, "2999-01-01T00:00:00Z", database={DUMP: StoredFile("0" * 64, 1)})
    assert backups.newest() == read_manifest(dumped)
    assert backups.newest(with_log=True) == read_manifest(copied)
    assert backups.has_gap()
    complete(backups, "2999-01-02T00:00:00Z")
    assert not backups.has_gap()


def test_a_file_that_the_store_has_is_not_written_again(backups, tmp_path):
    source = tmp_path / "a"
    source.write_bytes(b"text")
    first = backups.keep(source)
    place = backups.place(first.sha256)
    written = place.stat().st_ino
    assert backups.keep(source) == first == hash_of(source)
    assert place.stat().st_ino == written
    place.write_bytes(b"hurt")  # the control: a copy that is damaged is written again
    assert backups.keep(source) == first
    assert (place.read_bytes(), place.stat().st_ino == written) == (b"text", False)


def test_of_begun_segments_only_one_that_is_cut_short_goes(backups):
    backups.wal.mkdir()
    short, empty, whole = (f"00000001000000000000000{place}.partial" for place in (3, 4, 5))
    ended, history = "000000010000000000000002", "00000002.history"
    for name, size in {short: 8, empty: 0, whole: 16, ended: 8, history: 8}.items():
        (backups.wal / name).write_bytes(bytes(size))
    backups.drop_torn_segment(16)
    assert {path.name for path in backups.wal.iterdir()} == {empty, whole, ended, history}


def test_a_damaged_file_of_the_store_is_healed_by_the_next_copy(backups, tmp_path):
    (tmp_path / "run.txt").write_text("rows")
    file = backups.keep(tmp_path / "run.txt")
    backups.place(file.sha256).write_text("Rows")
    assert hash_of(backups.place(file.sha256)) != file
    assert backups.keep(tmp_path / "run.txt") == file
    assert hash_of(backups.place(file.sha256)) == file
    assert [path for path in (backups.root / "files").iterdir() if path.is_file()] == []


def test_a_damaged_manifest_stops_no_later_backup(backups, tmp_path):
    (tmp_path / "run.txt").write_text("rows")
    file = backups.keep(tmp_path / "run.txt")
    complete(backups, "2026-11-20T14:00:00Z")
    newest = complete(backups, "2026-11-21T14:00:00Z", files={"run.txt": file})
    damage(newest)
    refuse_another(backups, "ours")
    with pytest.raises(BackupError, match="backups of another cluster"):
        refuse_another(backups, "theirs")
    backups.remove_old(2)
    assert backups.place(file.sha256).exists()
    complete(backups, "2026-11-22T14:00:00Z")
    backups.remove_old(1)
    assert not newest.exists()
    assert not backups.place(file.sha256).exists()


def test_a_file_that_is_deleted_while_files_are_copied_is_passed_over(backups, tmp_path, monkeypatch):
    media = tmp_path / "files"
    media.mkdir()
    for name in ("a", "b", "c"):
        (media / name).write_text(name)
    (media / "d").symlink_to(media / "nowhere")  # deleted after it was listed
    keep = Backups.keep

    def keep_without_b(self, path):
        if path.name == "b":
            path.unlink()
        return keep(self, path)

    monkeypatch.setattr(Backups, "keep", keep_without_b)
    assert set(copy_files(backups, media)) == {"a", "c"}


def test_a_store_that_is_gone_is_no_deleted_file(tmp_path):
    media = tmp_path / "files"
    media.mkdir()
    (media / "a").touch()
    with pytest.raises(FileNotFoundError):
        copy_files(Backups(tmp_path / "unmounted"), media)


@pytest.mark.parametrize(
    ("to_time", "timeline"), [("", None), ("latest", "current"), ("2026-11-22T14:31:00Z", "current")]
)
def test_a_restore_follows_the_timeline_of_its_backup(backups, to_time, timeline):
    backups.wal.mkdir()
    (backups.wal / "000000010000000000000010").touch()
    moment = datetime.fromisoformat(to_time) if to_time[:1] == "2" else None
    assert _recovery(backups, to_time, moment).get("recovery_target_timeline") == timeline
