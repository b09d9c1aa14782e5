"""Backups without end: any second since the newest one can be restored."""

import shutil
import time
from datetime import UTC, datetime

import psycopg
import pytest

from touchstone import embedded
from touchstone.backups import BackupError, archive
from touchstone.backups.archive import Archive
from touchstone.backups.folder import Backups, StoredFile
from touchstone.backups.restoring import into_folder

from .conftest import limit_log, words_of

CAUGHT_UP = "SELECT bool_and(write_lsn >= pg_current_wal_insert_lsn()) FROM pg_stat_replication"


def ask(cluster, sql):
    with psycopg.connect(cluster.address, autocommit=True) as connection:
        return connection.execute(sql).fetchone()[0]


def wait_until(holds, seconds=60):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.fixture
def kept(cluster, tmp_path, monkeypatch):
    """An archive whose duties are all due at every step."""
    monkeypatch.setattr(archive, "FILES_EVERY", 0.0)
    monkeypatch.setattr(archive, "AT_REST", 0.0)
    backups = Backups(tmp_path / "backups")
    backups.root.mkdir()
    signs = []
    made = Archive(
        backups,
        cluster.address,
        cluster.var / "files",
        back_up=lambda: cluster.back_up(backups.root),
        keep=2,
        is_receiving=lambda: signs.append("archive"),
    )
    made.signs = signs
    yield made
    made.stop()
    with psycopg.connect(cluster.address, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active"
        )


def test_every_second_since_the_backup_can_be_restored(cluster, kept, tmp_path):
    kept.step()
    (folder,) = kept.backups.complete()
    cluster.write("counts")
    added = cluster.var / "files" / "later.txt"
    added.write_text("later")
    time.sleep(0.01)
    moment = ask(cluster, "SELECT clock_timestamp()")
    time.sleep(0.01)
    cluster.write("too late")
    kept.step()
    added.unlink()
    wait_until(lambda: ask(cluster, CAUGHT_UP))
    kept.stop()
    assert kept.backups.complete() == [folder]
    assert set(kept.signs) == {"archive"}

    then, now = tmp_path / "then", tmp_path / "now"
    words = {}
    for target, to_time in ((then, moment.isoformat()), (now, "latest")):
        into_folder(folder, target, to_time)
        with embedded.stack(target) as servers:
            words[target] = words_of(servers.database_url)
            # What is restored goes on in a log of its own, which a second restore from the same folder does not take.
            for path in (target / "postgres" / "pg_wal").glob("00000002*"):
                shutil.copy(path, kept.backups.wal)
    assert (kept.backups.wal / "00000002.history").exists()
    assert (then / "files" / "later.txt").read_text() == "later"
    assert set(words[now]) - set(words[then]) == {"too late"}
    assert "counts" in words[then]

    last = datetime.now(UTC)
    with pytest.raises(BackupError, match=r"--to-time is after the last change in the log, of 20\d\d-"):
        into_folder(folder, tmp_path / "never", last.isoformat())
    assert {path.name for path in (tmp_path / "never").iterdir()} <= {"secrets"}


def test_a_log_that_was_thrown_away_needs_a_new_backup(cluster, kept, tmp_path):
    kept.step()
    wait_until(lambda: ask(cluster, "SELECT count(*) FROM pg_stat_replication") == 1)
    kept.step()
    assert len(kept.backups.complete()) == 1
    kept.stop()
    limit_log(cluster, "1MB")
    with psycopg.connect(cluster.address, autocommit=True) as connection:
        for _ in range(4):
            connection.execute("CREATE TABLE passing (); DROP TABLE passing; SELECT pg_switch_wal()")
        connection.execute("CHECKPOINT")
        lost = connection.execute("SELECT wal_status FROM pg_replication_slots").fetchall()
    limit_log(cluster, "2GB")
    assert lost == [("lost",)]
    time.sleep(1)  # two backups need two seconds
    kept._receiver_at = 0.0
    kept.step()
    assert len(kept.backups.complete()) == 2
    wait_until(lambda: ask(cluster, "SELECT count(*) FROM pg_stat_replication") == 1)
    assert ask(cluster, "SELECT wal_status FROM pg_replication_slots") == "reserved"
    cluster.write("after the gap")
    wait_until(lambda: ask(cluster, CAUGHT_UP))
    kept.stop()
    into_folder(kept.backups.complete()[-1], tmp_path / "var", "latest")
    with embedded.stack(tmp_path / "var") as servers:
        assert "after the gap" in words_of(servers.database_url)


def test_a_fault_of_one_duty_is_logged_and_the_others_are_done(cluster, kept, caplog):
    def full():
        raise BackupError("the disk is full")

    kept.back_up = full
    kept.step()
    assert [record.getMessage() for record in caplog.records] == ["no backup was made: the disk is full"]
    assert set(kept.backups.copied_files()) == {
        str(path.relative_to(kept.media)) for path in kept.media.rglob("*") if path.is_file()
    }
    assert kept.receiver.poll() is None
    assert kept._backup_at > time.monotonic() + 300


def test_no_log_is_kept_back_without_a_limit_or_for_another_cluster(cluster, kept, caplog, monkeypatch):
    limit_log(cluster, "-1")
    kept._keep_up()
    limit_log(cluster, "2GB")
    (fault,) = [record.getMessage() for record in caplog.records]
    assert "ALTER SYSTEM SET max_slot_wal_keep_size = '2GB'" in fault
    assert ask(cluster, "SELECT count(*) FROM pg_replication_slots") == 0

    cluster.back_up(kept.backups.root)
    sql = "SELECT 180000, 'another', 1, '0/1', clock_timestamp()"
    with monkeypatch.context() as other:
        other.setattr(archive, "STATE", sql)
        with pytest.raises(BackupError, match="holds backups of another cluster"):
            kept._receive()
    assert not kept.backups.wal.exists()
    ask(cluster, "SELECT pg_create_physical_replication_slot('touchstone_backup', false)")
    assert ask(cluster, "SELECT wal_status FROM pg_replication_slots") is None
    kept._receive()
    assert ask(cluster, "SELECT wal_status FROM pg_replication_slots") == "reserved"


def test_a_receiver_that_was_killed_as_it_began_a_segment_goes_on(cluster, kept):
    kept._receive()
    wait_until(lambda: list(kept.backups.wal.glob("*.partial")))
    kept.receiver.kill()
    kept.receiver.wait()
    (begun,) = kept.backups.wal.glob("*.partial")
    with begun.open("r+b") as segment:
        segment.truncate(begun.stat().st_size // 2)
    kept._receive()
    cluster.write("after a torn segment")
    wait_until(lambda: ask(cluster, CAUGHT_UP))
    sizes = {path.stat().st_size for path in kept.backups.wal.glob(f"{begun.stem}*")}
    assert sizes == {ask(cluster, archive.SEGMENT_SIZE)}, "the same segment, whole"


def test_the_log_is_received_while_a_backup_is_made(cluster, kept):
    def long():
        kept.receiver.kill()
        kept.receiver.wait()
        kept._receiver_at = 0.0
        wait_until(lambda: kept.receiver.poll() is None)
        return cluster.back_up(kept.backups.root, dump=True)

    kept._keep_up()
    kept.back_up = long
    kept.step()
    assert len(kept.backups.complete()) == 1


def test_a_journal_that_was_cut_off_is_read_up_to_there(kept):
    kept._copy_new_files()
    whole = kept.backups.copied_files()
    with kept.backups.journal.open("a") as journal:
        journal.write('{"at": "2026-')
    assert kept.backups.copied_files() == whole
    later = {"later.txt": StoredFile("0" * 64, 5)}
    kept.backups.keep_between(lambda: later)
    assert kept.backups.copied_files() == {**whole, **later}
