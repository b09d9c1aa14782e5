"""Spreadsheets: all cells as text, faults by their cell, and whatever the file does to the child, one sentence."""

import io
import time
import zipfile

import pytest
from small_sheets import Date, sheet_xml, workbook, workbook_of

from judging import sheets
from judging.faults import Faults
from judging.file_options import options_from
from judging.records import DocumentRecord, read_documents
from judging.sheets import open_sheet
from judging.tables import open_rows
from judging.textfiles import TrecFormatError
from judging.topics import TopicRecord, read_topics

ROWS = [
    ["id", "title", "n"],
    ["007", "bears", 301],
    [7, "a\nb", 1.5],
    [None, None, None],
    [True, "é", Date(45000)],
]


def rows_of(data: bytes) -> list[tuple[str, int, list[str]]]:
    return list(open_sheet(io.BytesIO(data), "a.xlsx")[1])


def refusal(data: bytes) -> str:
    with pytest.raises(TrecFormatError) as caught:
        list(open_rows(io.BytesIO(data), "a.xlsx"))
    return str(caught.value)


def test_all_cells_are_text_and_rows_keep_their_numbers():
    assert rows_of(workbook(ROWS)) == [
        ("Sheet1", 1, ["id", "title", "n"]),
        ("Sheet1", 2, ["007", "bears", "301"]),
        ("Sheet1", 3, ["7", "a\nb", "1.5"]),
        ("Sheet1", 4, ["", "", ""]),
        ("Sheet1", 5, ["true", "é", "2023-03-15 00:00:00"]),
    ]


def test_a_table_may_begin_anywhere_in_the_sheet():
    data = workbook([["id", "text"], ["d1", "x"], ["d2", "y"]], first_row=4, first_column=27)
    found = list(open_rows(io.BytesIO(data), "a.xlsx"))
    assert [(row.line, row.cells["id"]) for row in found] == [(5, "d1"), (6, "d2")]
    assert found[0].column("text") == 29


def test_faults_name_the_cell():
    data = workbook(
        [
            ["query_id", "x", "query"],
            ["1", "", "bears"],
            ["2", "", None],
            ["a b", "", "honey"],
            ["1", "", "x"],
        ]
    )
    faults = Faults()
    found = list(read_topics(io.BytesIO(data), "q.xlsx", faults=faults))
    assert found == [TopicRecord("1", "bears")]
    assert str(faults) == (
        "q.xlsx:Sheet1!C3: topic 2 has an empty title\n"
        "q.xlsx:Sheet1!A4: topic id 'a b' holds white space or a control character\n"
        "q.xlsx:Sheet1!A5: topic 1 occurs twice (first on line 2)\n"
        "3 faults"
    )


def test_a_cell_beyond_the_header_is_a_fault():
    data = workbook([["id", "text"], ["d1", "x", "note"], ["d2", "y"]])
    faults = Faults()
    assert list(read_documents(io.BytesIO(data), "d.xlsx", faults=faults)) == [DocumentRecord("d2", "", "y")]
    assert str(faults) == "d.xlsx:Sheet1!C2: expected 2 columns, found 3"


def test_columns_without_a_title_have_the_name_of_their_letter():
    data = workbook([["id", None, "text"], ["d1", "more", "x"]])
    options = options_from({"mapping": {"text": ["text", "column B"]}})
    found = list(read_documents(io.BytesIO(data), "d.xlsx", options=options))
    assert found == [DocumentRecord("d1", "", "x\n\nmore")]


def test_the_first_sheet_with_anything_in_it_is_read():
    data = workbook_of(
        {"Notes": sheet_xml([]), "The data": sheet_xml([["id", "text"], ["d1", ""]]), "Z": sheet_xml([["x"]])}
    )
    names, rows = open_sheet(io.BytesIO(data), "a.xlsx")
    assert names == ["Notes", "The data", "Z"]
    assert [sheet for sheet, _, _ in rows] == ["The data", "The data"]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"PK\x03\x04 nothing", "a.xlsx:1:1: a damaged zip ("),
        (workbook([]), "a.xlsx:1:1: no header line"),
        (workbook_of({"A": "<no xml"}), "a.xlsx:1:1: no spreadsheet that can be read ("),
        (workbook([["a", "a"], ["1", "2"]]), "a.xlsx:Sheet1!A1: two columns have the same name: 'a'"),
    ],
    ids=["no zip", "nothing in it", "no XML", "a column twice"],  # a zip holds the time at which it was made
)
def test_what_is_no_sheet_is_one_sentence(data, reason):
    said = refusal(data)
    assert said.startswith(reason)
    assert "\n" not in said


def test_a_zip_without_a_sheet_is_no_table():
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        archive.writestr("a.txt", "x")
    assert refusal(target.getvalue()) == (
        "a.xlsx:1:1: a zip archive without a sheet in it, where a table was expected"
    )


def test_a_bomb_is_refused_before_the_child_starts(monkeypatch):
    monkeypatch.setattr(sheets, "_answers", lambda *_: pytest.fail("the child was started"))
    bomb = workbook_of({"A": sheet_xml([["x"]]) + " " * 30_000_000})
    assert refusal(bomb) == "a.xlsx:1:1: a zip bomb: it expands to more than 200 times its size"


WIDE = workbook_of(
    {"A": sheet_xml([[f"cell {row} {column}" for column in range(200)] for row in range(2_000)])}
)


def test_a_sheet_that_needs_too_much_memory_is_one_sentence(monkeypatch):
    assert len(rows_of(WIDE)) == 2_000  # the control: within the limits it is read
    monkeypatch.setattr(sheets, "MEMORY_BYTES", 1 << 28)
    assert refusal(WIDE) == f"a.xlsx:1:1: {sheets.KILLED}"


def test_a_sheet_that_needs_too_long_is_one_sentence(monkeypatch):
    monkeypatch.setattr(sheets, "WALL_SECONDS", 0)
    assert refusal(WIDE) == f"a.xlsx:1:1: {sheets.KILLED}"


def test_a_sheet_may_not_be_larger_than_the_limit(monkeypatch):
    monkeypatch.setattr(sheets, "MAX_SHEET", 100)
    assert "a spreadsheet of more than 0 MB; save it as CSV" in refusal(workbook(ROWS))


def test_who_stops_reading_ends_the_child():
    _, rows = open_sheet(io.BytesIO(WIDE), "a.xlsx")
    next(rows)
    started = time.monotonic()
    rows.close()
    assert time.monotonic() - started < 2
