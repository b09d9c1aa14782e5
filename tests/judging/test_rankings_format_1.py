"""Runs that an earlier release stored in its own layout become Parquet, row for row."""

import io
import json
import struct
import zlib
from importlib import import_module

import pytest
from django.apps import apps
from django.core.files.base import ContentFile

from judging.models import Collection, Run, ScoreList
from judging.rankings import rankings_frame, read_rankings, write_rankings
from judging.rankings_format_1 import as_parquet
from judging.run_columns import hash_pairs
from judging.runs import read_run
from touchstone.files import store

migration = import_module("judging.migrations.0004_runs_are_parquet")
LINES = b"7 Q0 b 1 2.5 old\n7 Q0 a 2 -1 old\n10 Q0 \xc3\xa9 1 0.5 old\n"
# The rows in trec_eval's order, topics ascending as strings.
TOPICS, DOCUMENTS, SCORES = ["10", "7"], ["é", "b", "a"], [0.5, 2.5, -1.0]


def file_of_format_1() -> bytes:
    """Return a file as the first release wrote it, made here from its description."""
    hashes = hash_pairs(["10", "7", "7"], DOCUMENTS).tolist()
    order = sorted(range(3), key=hashes.__getitem__)
    documents = zlib.compress("".join(f"{name}\n" for name in DOCUMENTS).encode(), 1)
    arrays = [
        struct.pack("<3q", 0, 1, 3),
        struct.pack("<3Q", *(hashes[row] for row in order)),
        struct.pack("<3I", *order),
        struct.pack("<3d", *SCORES),
        documents,
    ]
    sizes = {"offsets": 3, "hashes": 3, "positions": 3, "scores": 3, "documents": len(documents)}
    facts = {"format": 1, "run_tag": "old", "topic_ids": TOPICS, "sizes": sizes}
    header = json.dumps(facts, separators=(",", ":")).encode()
    parts = [b"TSRANK01" + struct.pack("<Q", len(header)) + header, *arrays]
    return b"".join(part + bytes(-len(part) % 64) for part in parts)


def file_of_today() -> bytes:
    target = io.BytesIO()
    write_rankings(read_run(io.BytesIO(LINES), "run"), target)
    return target.getvalue()


def test_a_run_of_format_1_becomes_the_file_that_its_lines_make_today():
    assert as_parquet(file_of_format_1()) == file_of_today()
    assert rankings_frame(read_rankings(as_parquet(file_of_format_1()))).rows() == [
        ("10", "é", 1, 0.5, "old"),
        ("7", "b", 1, 2.5, "old"),
        ("7", "a", 2, -1.0, "old"),
    ]


def test_an_old_file_is_not_read_as_one_of_today_and_no_other_file_is_taken_for_an_old_one():
    with pytest.raises(ValueError, match="not a rankings file"):
        read_rankings(file_of_format_1())
    with pytest.raises(ValueError, match="format 1"):
        as_parquet(file_of_today())


def test_a_damaged_old_file_stays_as_it_is_and_leaves_nothing_beside_it(tmp_path):
    path = tmp_path / "run"
    path.write_bytes(file_of_format_1()[:-64])
    with pytest.raises(ValueError, match="buffer"):
        migration.convert_file(path)
    assert path.read_bytes() == file_of_format_1()[:-64]
    assert [found.name for found in tmp_path.iterdir()] == ["run"]


@pytest.mark.django_db
def test_the_migration_converts_runs_and_scores_once_and_passes_missing_files():
    collection = Collection.objects.create(name="old")
    for name in ("kept", "lost"):
        Run.objects.create(
            collection=collection,
            run_id=name,
            rankings=store("rankings", ContentFile(file_of_format_1()), ".rankings"),
            n_topics=2,
            n_lines=3,
        )
    stored = store("scores", ContentFile(file_of_format_1()), ".rankings")
    scores = ScoreList.objects.create(collection=collection, name="scores", scores=stored, n_lines=3)
    run, lost = Run.objects.order_by("run_id")
    lost.rankings.storage.delete(lost.rankings.name)
    for _ in range(2):
        migration.convert_files(apps, None)
        for path in (run.rankings.path, scores.scores.path):
            with open(path, "rb") as stream:
                assert stream.read() == file_of_today()
    assert not lost.rankings.storage.exists(lost.rankings.name)
