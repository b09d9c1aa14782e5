"""Opening a release: zip or folder, whole or damaged, from wherever it lies."""

import json
import zipfile
from pathlib import Path

import pytest
from small_release import VERSION, made_once, unpacked

from analytics.releases.reading import ReleaseUnreadable, find_release, open_release

pytestmark = pytest.mark.django_db


@pytest.fixture
def packed(tmp_path):
    path = tmp_path / "some.zip"
    path.write_bytes(made_once())
    return path


@pytest.fixture
def folder(tmp_path):
    return unpacked(made_once(), tmp_path / "unpacked")


def repacked(source, target, change):
    """Write the zip anew; change(name, content) gives the new content, or None to leave the file out."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for info in old.infolist():
            content = change(info.filename, old.read(info))
            if content is not None:
                new.writestr(info.filename, content)
    return target


def test_a_zip_and_its_folder_say_the_same(packed, folder):
    with open_release(packed) as one, open_release(folder) as other:
        assert (one.slug, one.version) == (other.slug, VERSION)
        assert one.names() == other.names()
        for table in ("topics", "documents", "qrels", "qrels_jg", "prels"):
            rows = list(getattr(one, table)())
            assert rows == list(getattr(other, table)())
            assert len(rows) >= 3
        assert list(one.run("run1")) == list(other.run("run1"))
        assert one.differences() == other.differences() == []


def test_the_tables_hold_what_the_campaign_had(packed):
    with open_release(packed) as release:
        assert [topic["topic_id"] for topic in release.topics()] == ["t0", "t1", "t2"]
        assert len(list(release.documents())) == 42
        first = next(release.run("run2"))
        assert (first.topic_id, first.doc_id, first.rank, first.score) == ("t0", "t0d04", 1, 99.0)
        assert set(release.runs()) == {"run0", "run1", "run2"}
        grades = {(line.topic_id, line.doc_id): line.grade for line in release.qrels()}
        assert {(line.topic_id, line.doc_id): line.grade for line in release.prels()} == grades
        assert all(0 < line.inclusion_probability <= 1 for line in release.prels())


def test_a_run_that_is_not_published_is_refused_by_name(tmp_path):
    path = tmp_path / "hidden.zip"
    path.write_bytes(made_once(hidden=("run1",)))
    with open_release(path) as release:
        assert set(release.runs()) == {"run0", "run2"}
        with pytest.raises(ReleaseUnreadable, match="the run run1 is not in the release"):
            list(release.run("run1"))


def test_a_changed_a_missing_and_an_added_file_are_told(packed, tmp_path):
    def change(name, content):
        if name.endswith("/LICENSE.txt"):
            return None
        return content + b"\n" if name.endswith("/qrels.txt") else content

    other = repacked(packed, tmp_path / "changed.zip", change)
    with zipfile.ZipFile(other, "a") as archive:
        top = archive.namelist()[0].split("/")[0]
        archive.writestr(f"{top}/extra.txt", "hello")
    with open_release(other) as release:
        told = {words.split(":")[0] for words in release.differences()}
    assert told == {"LICENSE.txt", "qrels.txt", "extra.txt"}


def test_a_flipped_byte_inside_the_zip_is_told(packed, tmp_path):
    content = packed.read_bytes()
    with zipfile.ZipFile(packed) as archive:
        info = next(info for info in archive.infolist() if info.filename.endswith("/judgments.jsonl"))
    place = info.header_offset + 30 + len(info.filename) + info.compress_size // 2
    flipped = tmp_path / "flipped.zip"
    flipped.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
    with open_release(flipped) as release:
        assert any(words.startswith("judgments.jsonl") for words in release.differences())


def test_a_file_that_grows_beyond_its_manifest_is_not_read_to_the_end(packed, tmp_path):
    bomb = repacked(
        packed,
        tmp_path / "bomb.zip",
        lambda name, content: b" " * 9_000_000 if name.endswith("/runs.json") else content,
    )
    with open_release(bomb) as release:
        with pytest.raises(ReleaseUnreadable, match=r"runs\.json is longer than its manifest says"):
            release.runs()
        assert any(words.startswith("runs.json") for words in release.differences())


@pytest.mark.parametrize(
    "name", ["../outside.txt", "/etc/outside.txt", "a/../../outside.txt", "C:\\outside.txt"]
)
def test_a_file_that_would_lie_outside_is_not_unpacked(packed, tmp_path, name):
    def change(there, content):
        if not there.endswith("/manifest.json"):
            return content
        manifest = json.loads(content)
        manifest["files"].append({"path": name, "bytes": 4, "sha256": "0" * 64, "lines": 0})
        return json.dumps(manifest)

    bad = repacked(packed, tmp_path / "bad.zip", change)
    with (
        open_release(bad) as release,
        pytest.raises(ReleaseUnreadable, match="outside"),
        release.on_disk({name}),
    ):
        pass
    assert not Path("/etc/outside.txt").exists()


def no_manifest(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/b.txt", "x")


def strange_manifest(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/manifest.json", '{"touchstone_release": 99}')


def broken_manifest(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/manifest.json", '{"touchst')


def two_folders(path):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/manifest.json", "{}")
        archive.writestr("b/c.txt", "x")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (no_manifest, "it has no manifest.json"),
        (strange_manifest, "it is not of format 1"),
        (broken_manifest, "its manifest.json cannot be used"),
        (two_folders, "b/c.txt lies beside the release's folder"),
        (lambda path: path.write_text("hello"), "it is no zip file"),
        (lambda path: path.mkdir(), "it has no manifest.json"),
        (lambda path: None, "there is no such file or folder"),
    ],
)
def test_what_is_no_release_is_refused_with_its_name_and_a_reason(tmp_path, make, words):
    path = tmp_path / "some.zip"
    make(path)
    with pytest.raises(ReleaseUnreadable, match=words) as refused:
        open_release(path)
    assert str(path) in str(refused.value)


def test_a_release_is_found_by_name_in_the_places_that_the_environment_names(
    packed, folder, tmp_path, monkeypatch
):
    with open_release(packed) as release:
        slug = release.slug
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.setenv("TOUCHSTONE_RELEASES", f"{empty}:{tmp_path}")  # under another name than its own
    with find_release(slug, VERSION) as found:
        assert found.path == packed
    monkeypatch.setenv("TOUCHSTONE_RELEASES", f"{empty}:{folder.parent}")
    with find_release(slug, VERSION) as found:
        assert found.path == folder
    monkeypatch.setenv("TOUCHSTONE_RELEASES", str(empty))
    monkeypatch.setenv("HOME", str(empty))
    with pytest.raises(ReleaseUnreadable, match=f"no release {slug} {VERSION}") as refused:
        find_release(slug, VERSION)
    assert str(empty) in str(refused.value)
    assert str(empty / ".touchstone" / "releases") in str(refused.value)
    with pytest.raises(ReleaseUnreadable, match="no release"):
        find_release(slug, "9.9")
