"""Backups are made, checked byte by byte, and brought back."""

import json
import random
import shutil
import subprocess
import time
from dataclasses import replace
from datetime import datetime
from types import SimpleNamespace

import psycopg
import pytest
from django.core.management import CommandError, call_command

from touchstone import embedded, roles
from touchstone.backups import BackupError
from touchstone.backups.checking import check, faults_of
from touchstone.backups.folder import CHECKED, Backups, hash_of, read_manifest, write_manifest
from touchstone.backups.restoring import (
    SETTINGS,
    _give_to_the_server,
    _replay,
    add_settings,
    into_database,
    into_folder,
)
from touchstone.management.commands import backup as command

from .conftest import words_of


def files_below(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_backup_is_complete_and_whole(cluster, backup):
    manifest = read_manifest(backup)
    assert manifest.major == 18
    assert set(manifest.files) == set(files_below(cluster.var / "files"))
    assert len(manifest.files) > 0
    assert len(manifest.database) > 900
    assert faults_of(backup) == []
    assert not (backup / CHECKED).exists()
    check(backup)
    assert datetime.fromisoformat(json.loads((backup / CHECKED).read_text())["at"]) >= manifest.end_time


def test_every_flipped_byte_is_noticed(backup):
    chance = random.Random(1)
    manifest = read_manifest(backup)
    stored = [backup.parent / "files" / f.sha256[:2] / f.sha256 for f in manifest.files.values()]
    copied = [backup / name for name, file in sorted(manifest.database.items()) if file.size]
    places = [backup / "manifest.json", *stored[:4], *chance.sample(copied, 20)]
    assert len(places) == 25
    noticed = []
    for place in places:
        was = place.read_bytes()
        at = chance.randrange(len(was))
        place.write_bytes(was[:at] + bytes([was[at] ^ 1 << chance.randrange(8)]) + was[at + 1 :])
        try:
            noticed.append(any(place.name in fault for fault in faults_of(backup)))
        except BackupError as error:
            noticed.append("manifest.json" in str(error))
        place.write_bytes(was)
    assert noticed == [True] * 25
    assert faults_of(backup) == []


def test_what_the_server_sent_is_what_was_stored_and_its_log_leads_to_the_end(backup, tmp_path):
    folder = tmp_path / backup.name
    shutil.copytree(backup, folder)
    shutil.copytree(backup.parent / "files", tmp_path / "files")
    place = folder / "base" / "global" / "pg_filenode.map"
    place.write_bytes(place.read_bytes()[::-1])
    (log,) = (folder / "base" / "pg_wal").glob("0*")
    log.write_bytes(bytes(log.stat().st_size))
    manifest = read_manifest(folder)
    database = {name: hash_of(folder / name) for name in manifest.database}
    write_manifest(folder, replace(manifest, database=database))
    sent, log = faults_of(folder)
    assert sent == f"{place} is not what the server sent"
    assert "pg_waldump failed" in log


def test_a_missing_and_an_unknown_file_are_named(backup):
    place = backup / "base" / "PG_VERSION"
    was = place.read_bytes()
    place.unlink()
    (backup / "base" / "more").touch()
    try:
        assert faults_of(backup) == [
            f"{place} cannot be read: No such file or directory",
            f"{backup / 'base' / 'more'} does not belong to the backup",
        ]
    finally:
        place.write_bytes(was)
        (backup / "base" / "more").unlink()


def test_two_backups_share_their_files_and_old_ones_end(cluster, tmp_path, monkeypatch):
    place = tmp_path / "other"
    days = iter(["2026-11-20T140000Z", "2026-11-21T140000Z", "2026-11-22T140000Z"])
    monkeypatch.setattr("touchstone.backups.making.backup_name", lambda now: next(days))
    cluster.back_up(place, dump=True)
    stored = set(place.glob("files/??/*"))
    added = cluster.var / "files" / "added.txt"
    added.write_text("added")
    try:
        cluster.back_up(place, dump=True)
    finally:
        added.unlink()
    (place / "2026-11-21T150000Z.new").mkdir()
    (place / "2026-11-21T160000Z").mkdir()
    removed = Backups(place).remove_old(1)
    assert [path.name for path in removed] == ["2026-11-20T140000Z"]
    assert [path.name for path in place.glob("*Z*")] == ["2026-11-21T140000Z"]
    later = set(place.glob("files/??/*"))
    assert len(later - stored) == 1
    assert stored < later
    cluster.back_up(place, dump=True)
    Backups(place).remove_old(1)
    assert set(place.glob("files/??/*")) == stored


def test_by_command_a_backup_comes_back_in_an_empty_folder(cluster, backup, tmp_path):
    made = cluster.manage("backup", tmp_path / "backups")
    assert made.returncode == 0, made.stderr
    assert "is not in it: keep it apart" in made.stdout
    assert "Guard the backup like the database" in made.stdout
    (folder,) = (tmp_path / "backups").glob("*Z")
    checked = cluster.manage("verify_backup", folder)
    assert checked.returncode == 0, checked.stderr
    assert f"{folder} is whole" in checked.stdout
    with psycopg.connect(cluster.address) as connection:
        signs = connection.execute("SELECT name FROM touchstone_workerheartbeat").fetchall()
    assert {("backup",), ("verified backup",)} <= set(signs)
    cluster.write("after")
    target = tmp_path / "var"
    result = cluster.manage("restore", folder, "--into", target)
    assert result.returncode == 0, result.stderr
    assert "The ledger verifies" in result.stdout
    assert files_below(target / "files") == files_below(cluster.var / "files")
    with embedded.stack(target) as servers:
        words = words_of(servers.database_url)
        assert "before" in words
        assert "after" not in words
        sql = "SELECT count(*), max(id) FROM judging_judgment"
        with psycopg.connect(servers.database_url) as restored, psycopg.connect(cluster.address) as first:
            assert restored.execute(sql).fetchone() == first.execute(sql).fetchone()
    with pytest.raises(BackupError, match="is not empty"):
        into_folder(backup, target)


LOG_IN = "INSERT INTO django_session VALUES ('one', 'data', now() + interval '7 days')"
LOG_INS = "SELECT count(*) FROM django_session"


def test_a_copy_of_ones_own_server_becomes_an_embedded_stacks(backup, tmp_path):
    target = tmp_path / "var"
    into_folder(backup, target)
    with embedded.stack(target) as servers:
        with psycopg.connect(servers.database_url, autocommit=True) as connection:
            connection.execute(LOG_IN)
            connection.execute("CREATE ROLE postgres SUPERUSER LOGIN PASSWORD 'other'")
        place = servers.database_url.rpartition("@")[2].partition("/")[0]
        with psycopg.connect(f"postgresql://postgres:other@{place}/postgres", autocommit=True) as connection:
            connection.execute("ALTER ROLE touchstone RENAME TO mara")
            connection.execute("ALTER DATABASE touchstone RENAME TO judgments")
    copy = target / "postgres"
    for name in SETTINGS:
        (copy / name).unlink()
    add_settings(copy)
    _give_to_the_server(copy)
    _replay(copy, {}, target)
    with embedded.stack(target) as servers:
        assert "before" in words_of(servers.database_url)
        with psycopg.connect(servers.database_url) as connection:
            assert connection.execute(LOG_INS).fetchone() == (0,)
            row = connection.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchone()
            assert row == (True,)


def test_a_dump_comes_back_in_an_empty_database(cluster, tmp_path):
    with psycopg.connect(cluster.address, autocommit=True) as connection:
        connection.execute(LOG_IN)
    folder = cluster.back_up(tmp_path / "dumps", dump=True)
    check(folder)
    base = cluster.address.rpartition("/")[0]
    with psycopg.connect(f"{base}/postgres", autocommit=True) as connection:
        connection.execute("CREATE DATABASE second")
    media = tmp_path / "files"
    into_database(folder, f"{base}/second", media)
    assert files_below(media) == files_below(cluster.var / "files")
    sql = "SELECT count(*) FROM judging_judgment"
    with psycopg.connect(f"{base}/second") as restored, psycopg.connect(cluster.address) as first:
        assert restored.execute(sql).fetchone() == first.execute(sql).fetchone() != (0,)
        assert restored.execute(LOG_INS).fetchone() == (0,)
        assert first.execute(LOG_INS).fetchone() != (0,)
    with pytest.raises(BackupError, match="the database is not empty"):
        into_database(folder, f"{base}/second", tmp_path / "more")


def test_a_copy_goes_into_a_folder_and_a_dump_into_a_database(cluster, backup, tmp_path):
    dump = cluster.back_up(tmp_path, dump=True)
    with pytest.raises(BackupError, match="restore it into an empty database"):
        into_folder(dump, tmp_path / "var")
    with pytest.raises(BackupError, match="restore it into an empty folder"):
        into_database(backup, cluster.address, tmp_path / "files")


@pytest.mark.parametrize(
    ("to_time", "words"),
    [
        ("yesterday", "is no time"),
        ("2026-11-22T14:31:07", "names no time zone"),
        ("2020-01-01T00:00:00Z", "is before the end of this backup"),
        ("2999-01-01T00:00:00Z", "has not come yet"),
        ("latest", "holds no log"),
    ],
)
def test_a_time_out_of_range_is_a_sentence(backup, tmp_path, to_time, words):
    with pytest.raises(BackupError, match=words):
        into_folder(backup, tmp_path / "var", to_time)
    assert not (tmp_path / "var" / "postgres").exists()


def test_a_damaged_copy_is_refused_before_anything_is_restored(backup, tmp_path):
    place = backup / "base" / "postgresql.auto.conf"  # no chain and no checksum of PostgreSQL covers it
    was = place.read_bytes()
    place.write_bytes(was + b"\n")
    try:
        with pytest.raises(BackupError, match=r"is damaged: .*postgresql\.auto\.conf was changed"):
            into_folder(backup, tmp_path / "var")
    finally:
        place.write_bytes(was)
    assert not (tmp_path / "var").exists()
    into_folder(backup, tmp_path / "var")
    assert (tmp_path / "var" / "postgres" / "postgresql.auto.conf").exists()


def test_a_backup_of_another_major_version_is_refused(backup, tmp_path, monkeypatch):
    monkeypatch.setattr("touchstone.backups.postgres.major_of", lambda path: 17)
    with pytest.raises(BackupError, match="the backup is of PostgreSQL 18, and PostgreSQL 17 is here"):
        into_folder(backup, tmp_path / "var")


def test_what_was_not_completed_is_no_backup(backup, tmp_path):
    folder = tmp_path / backup.name
    shutil.copytree(backup, folder)
    (folder / "manifest.json").unlink()
    assert Backups(tmp_path).complete() == []
    with pytest.raises(BackupError, match="is no complete backup"):
        faults_of(folder)


def test_two_at_once_and_wrong_options_are_refused(tmp_path):
    with Backups(tmp_path).alone(), pytest.raises(CommandError, match="another backup is being made"):
        call_command("backup", tmp_path)
    with Backups(tmp_path).alone(daily=True):
        with pytest.raises(CommandError, match="a backup --daily runs already"):
            call_command("backup", tmp_path, daily=True)
        with Backups(tmp_path).alone():
            assert (tmp_path / "lock").exists()
    with pytest.raises(CommandError, match="--keep must be 1 or more"):
        call_command("backup", tmp_path, keep=0)
    with pytest.raises(CommandError, match="choose one of them"):
        call_command("backup", tmp_path, daily=True, dump=True)
    with pytest.raises(CommandError, match="a dump has not"):
        call_command("restore", tmp_path, into="postgresql://x/y", to_time="latest")
    assert list(tmp_path.glob("*Z*")) == []


def test_a_backup_that_does_not_pass_its_check_counts_for_nothing(cluster, tmp_path, monkeypatch, settings):
    settings.DATABASE_BACKUP_URL = cluster.address
    settings.MEDIA_ROOT = cluster.var / "files"
    monkeypatch.setattr(command, "schema", SimpleNamespace(fingerprint=lambda _: SimpleNamespace(digest="s")))
    monkeypatch.setattr(command, "newest_heads", dict)
    signed = []
    monkeypatch.setattr(command, "_sign", signed.append)

    def damage_and_check(folder):
        (folder / "base" / "PG_VERSION").write_text("81\n")
        check(folder)

    call_command("backup", tmp_path, keep=1)
    whole = Backups(tmp_path).complete()
    assert (len(whole), signed) == (1, ["backup", "verified backup"])
    monkeypatch.setattr(command, "check", damage_and_check)
    time.sleep(1)  # a backup is named by its second
    with pytest.raises(CommandError, match="PG_VERSION"):
        call_command("backup", tmp_path, keep=1)
    assert Backups(tmp_path).complete() == whole
    assert signed[2:] == ["backup"]


def test_a_folder_of_another_cluster_is_refused(cluster, backup, monkeypatch):
    sql = "SELECT 180000, 'another', 1, '0/1', clock_timestamp()"
    monkeypatch.setattr("touchstone.backups.making.STATE", sql)
    with pytest.raises(BackupError, match="holds backups of another cluster"):
        cluster.back_up(backup.parent)


def test_who_may_make_no_role_that_replicates_is_told_what_an_administrator_does(cluster):
    made = "SELECT rolreplication, rolcanlogin FROM pg_roles WHERE rolname = 'touchstone_backup'"
    with psycopg.connect(cluster.address) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE ROLE maker CREATEROLE; SET LOCAL ROLE maker")
        assert roles.make_backup_role(cursor, "") == ""
        words = roles.make_backup_role(cursor, "s3cret")
        assert "CREATE ROLE touchstone_backup LOGIN REPLICATION" in words
        assert cursor.execute(made).fetchall() == []
        cursor.execute("RESET ROLE; ALTER ROLE maker REPLICATION; SET LOCAL ROLE maker")
        assert roles.make_backup_role(cursor, "s3cret") == ""
        assert cursor.execute(made).fetchall() == [(True, True)]
        connection.rollback()


def test_no_key_and_no_password_is_in_a_backup(cluster, backup):
    keys = [(cluster.var / "secrets" / name).read_text() for name in ("postgres", "redis")]
    for key in keys:
        found = subprocess.run(["grep", "-rlF", key, str(backup.parent)], capture_output=True, text=True)
        assert found.stdout == ""
    assert json.loads((backup / "manifest.json").read_text())["heads"] == {}
