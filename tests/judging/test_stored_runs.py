"""Stored runs: their ranks and their top, many files at once, and files that are damaged."""

import gzip
import io

import numpy as np
import polars as pl
import pytest
from run_samples import GOOD, _frame, _lines, _stored

from judging.rankings import (
    convert_runs,
    find_ranks,
    read_rankings,
    top,
    write_rankings,
)
from judging.run_columns import hash_pairs
from judging.trec import TrecFormatError


def test_ranks_are_found_by_pair_and_are_0_where_the_run_does_not_return_it():
    rankings = _stored(_frame(b"1 Q0 A 1 2 t\n1 Q0 B 1 3 t\n2 Q0 A 1 1 t\n"))
    hashes = hash_pairs(["1", "1", "2", "2", "3"], ["A", "B", "A", "B", "A"])
    assert find_ranks(rankings, ["1", "2", "3"], np.array([0, 0, 1, 1, 2]), hashes).tolist() == [
        2,
        1,
        1,
        0,
        0,
    ]


def test_the_top_of_a_run_has_at_most_depth_documents_a_topic():
    rankings = _stored(_frame(b"1 Q0 A 1 2 t\n1 Q0 B 1 3 t\n1 Q0 C 1 1 t\n2 Q0 A 1 1 t\n"))
    assert top(rankings, 2).rows() == [("1", "B", 1, 3.0), ("1", "A", 2, 2.0), ("2", "A", 1, 1.0)]
    assert top(rankings, 9).height == 4
    with pytest.raises(ValueError, match="at least 1, not 0"):
        top(rankings, 0)


def test_files_are_converted_in_order_and_the_first_bad_one_fails_all(tmp_path):
    paths = []
    for number in range(8):
        path = tmp_path / f"run{number}.gz"
        path.write_bytes(gzip.compress(_lines({"1": {f"d{number}": 1.0}}, f"tag{number}")))
        paths.append(path)
    written = []
    summaries = convert_runs(
        paths, lambda index, summary, payload: written.append((index, read_rankings(payload)))
    )
    assert [summary.run_tag for summary in summaries] == [f"tag{number}" for number in range(8)]
    assert [(index, stored.run_tag, stored.doc_ids.to_list()) for index, stored in written] == [
        (number, f"tag{number}", [f"d{number}"]) for number in range(8)
    ]
    paths[5].write_bytes(b"1 Q0 A 1 nan t\n")
    written.clear()
    with pytest.raises(TrecFormatError, match=r"run5.gz:1:10: score"):
        convert_runs(paths, lambda index, summary, payload: written.append(index))
    assert written == [0, 1, 2, 3, 4]
    with pytest.raises(ValueError, match="at least 1, not 0"):
        convert_runs(paths, lambda index, summary, payload: None, workers=0)


def test_a_stored_file_is_read_from_a_path_and_a_damaged_one_is_refused(tmp_path):
    path = tmp_path / "run"
    write_rankings(_frame(GOOD), path)
    assert read_rankings(path).doc_ids.to_list() == ["A"]
    data = path.read_bytes()
    for damaged in (data[:-64], data[:-1] + b"x", data[:8] + b"\xff" * 8 + data[16:], b"", GOOD):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match="rankings file"):
            read_rankings(path)


def test_a_frame_that_is_no_run_is_not_written():
    frame = _frame(GOOD)
    with pytest.raises(ValueError, match="twice"):
        write_rankings(pl.concat([frame, frame]), io.BytesIO())
    with pytest.raises(ValueError, match="finite"):
        write_rankings(frame.with_columns(score=pl.lit(float("nan"))), io.BytesIO())
    with pytest.raises(ValueError, match="one run tag"):
        write_rankings(frame.clear(), io.BytesIO())
