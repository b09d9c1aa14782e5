"""A release says the same of itself and of runs, zipped or unpacked."""

import zipfile
from pathlib import Path

import pytest

import touchstone_ir as ts

ZIP = Path(__file__).resolve().parents[1] / "recorded" / "release-0.1.0.zip"


@pytest.fixture
def unpacked(tmp_path):
    with zipfile.ZipFile(ZIP) as archive:
        archive.extractall(tmp_path)
    (folder,) = tmp_path.iterdir()
    return folder


def test_a_zip_is_verified_as_its_folder_is(unpacked):
    zipped, folder = ts.verify(ZIP), ts.verify(unpacked)
    assert zipped == folder
    assert zipped.is_right
    assert zipped.same["files"] == 37


@pytest.mark.parametrize("is_zipped", [False, True], ids=["folder", "zip"])
def test_a_changed_file_of_a_release_is_named(is_zipped, unpacked, tmp_path):
    with (unpacked / "qrels.txt").open("a") as qrels:
        qrels.write("1 0 nobody 1\n")
    where = unpacked
    if is_zipped:
        where = tmp_path / "changed.zip"
        with zipfile.ZipFile(where, "w") as archive:
            for path in unpacked.rglob("*"):
                archive.write(path, path.relative_to(tmp_path))
    found = ts.verify(where)
    assert not found.is_right
    assert any("qrels.txt" in words for words in found.different)


def test_a_zip_and_its_folder_evaluate_alike(unpacked):
    found = [ts.evaluate(where, ["run0", "run1"], "P@10").frame.to_dicts() for where in (ZIP, unpacked)]
    assert found[0] == found[1]
    assert [row["run"] for row in found[0]] == ["run0", "run1"]
