"""CSV for people: one writer guards every file; the one that is read back is not guarded."""

import csv
import io
import re
from pathlib import Path

import pytest

from judging.spreadsheets import FORMULA, SheetWriter

REPOSITORY = Path(__file__).resolve().parents[2]
PRODUCT = [
    path
    for folder in ("judging", "sampling", "analytics", "platform")
    for path in (REPOSITORY / folder).rglob("*.py")
    if "migrations" not in path.parts
]
# What writes CSV in another way, and why it needs no guard.
UNGUARDED = {
    "judging/spreadsheets.py": "the guard itself",
    "judging/trec_tables.py": "crowd labels, which are imported again: an apostrophe would change an id",
    "analytics/services/persistence.py": "rows for the database",
    "analytics/releases/tables.py": "tables of a release, which programs read",
}
WRITES_CSV = re.compile(r"csv\.(?:writer|DictWriter)|\.write_csv\(|quote_style")


@pytest.mark.parametrize("beginning", FORMULA)
def test_a_text_that_would_run_is_shown_and_numbers_stay_numbers(beginning):
    lines = io.StringIO()
    SheetWriter(lines).writerow([f"{beginning}1+1", -1.5, None, "plain", f"a{beginning}b"])
    (row,) = csv.reader(io.StringIO(lines.getvalue(), newline=""))
    assert row == [f"'{beginning}1+1", "-1.5", "", "plain", f"a{beginning}b"]


def test_every_file_for_people_is_written_by_the_guarded_writer():
    writers = {
        path.relative_to(REPOSITORY).as_posix() for path in PRODUCT if WRITES_CSV.search(path.read_text())
    }
    assert writers - set(UNGUARDED) == set()


def test_a_writer_without_a_guard_is_noticed():
    """The positive control of the test above."""
    assert WRITES_CSV.search("csv.writer(target)")
    assert WRITES_CSV.search("csv.DictWriter(target, [])")
