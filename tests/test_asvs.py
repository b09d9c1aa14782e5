"""docs/security/asvs.yml: every requirement once, with a test that exists or a reason of its own."""

import ast
import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
import yaml
from references import anchor_of

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "security" / "requirements.md"
# So many requirements of the levels 1 and 2 has each chapter of ASVS 5.0.0.
CHAPTERS = {1: 27, 2: 11, 3: 19, 4: 10, 5: 9, 6: 35, 7: 18, 8: 7, 9: 7, 10: 29, 11: 14, 12: 9, 13: 13, 14: 9}
CHAPTERS |= {15: 13, 16: 16, 17: 7}
KEYS = {"met": {"status", "test"}, "not applicable": {"status", "reason"}, "not met": {"status", "reason"}}


class Once(yaml.SafeLoader):
    """Refuses a number that stands twice, where YAML would take the last."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key) for key, _ in node.value]
        assert len(keys) == len(set(keys)), [key for key, n in Counter(keys).items() if n > 1]
        return super().construct_mapping(node, deep)


ROWS = yaml.load((ROOT / "docs" / "security" / "asvs.yml").read_text(), Once)  # noqa: S506 (a safe one)


@cache
def names_of_tests(path: Path) -> set[str]:
    """Return the names of a file's tests, without running it."""
    found = ast.walk(ast.parse(path.read_text()))
    return {
        node.name for node in found if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def faults(rows: dict) -> list[str]:
    """Return what is wrong with rows: a test that is not there, a reason that is none."""
    found = []
    reasons = Counter(row.get("reason") for row in rows.values())
    for number, row in rows.items():
        if row["status"] not in KEYS or set(row) - {"where"} != KEYS[row["status"]]:
            found.append(f"{number}: {sorted(row)}")
        elif "test" in row:
            name, _, test = row["test"].partition("::")
            if not (ROOT / name).is_file() or test not in names_of_tests(ROOT / name):
                found.append(f"{number}: no test {row['test']}")
        elif len(row["reason"].split()) < 6 or reasons[row["reason"]] > 1:
            found.append(f"{number}: {row['reason']!r} is no reason of its own")
    return found


def test_every_requirement_is_there_once():
    assert Counter(int(number.partition(".")[0]) for number in ROWS) == CHAPTERS
    assert len(ROWS) == sum(CHAPTERS.values()) == 253
    assert all(re.fullmatch(r"\d+\.\d+\.\d+", number) for number in ROWS)
    assert list(ROWS) == sorted(ROWS, key=lambda number: [int(part) for part in number.split(".")])


def test_every_row_names_a_test_that_exists_or_a_reason_of_its_own():
    assert faults(ROWS) == []


@pytest.mark.parametrize(
    "planted",
    [
        {"status": "met", "test": "tests/test_asvs.py::test_that_is_not_there"},
        {"status": "met", "test": "tests/test_nowhere.py::test_x"},
        {"status": "met", "reason": "We do this for sure and always, trust us."},
        {"status": "not met", "reason": "Not done."},
        {"status": "not applicable", "reason": ROWS["10.5.5"]["reason"]},
        {"status": "partly", "reason": "Some of it is there and the rest is not."},
    ],
)
def test_a_planted_fault_is_seen(planted):
    assert faults({**ROWS, "1.1.1": planted})


def section(where: str) -> str:
    """Return the text of a page, or of the section that is named by its anchor."""
    name, _, anchor = where.partition("#")
    page = (ROOT / name).read_text()
    if not anchor:
        return page
    parts = re.split(r"^(#+ .+)$", page, flags=re.MULTILINE)
    return {
        anchor_of(title.lstrip("# ")): text for title, text in zip(parts[1::2], parts[2::2], strict=True)
    }[anchor]


def test_what_the_documentation_must_say_is_there():
    documented = {number: row["where"] for number, row in ROWS.items() if "where" in row}
    assert len(documented) > 15
    for number, where in documented.items():
        assert len(section(where).split()) > 40, number
        assert ROWS[number]["test"].endswith("::test_what_the_documentation_must_say_is_there")
    with pytest.raises(KeyError):
        section("docs/operations.md#a-section-that-is-not-there")


def test_every_threat_has_its_test_and_what_is_left():
    page = (ROOT / "docs" / "security" / "threat-model.md").read_text()
    table = section("docs/security/threat-model.md#who-could-do-what")
    rows = [line.strip("|").split(" | ") for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) > 10
    for who, _, stops, left in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)(?:::(\w+))?`", stops)
        assert named, who
        for name, test in named:
            known = names_of_tests(ROOT / name)
            assert test in known if test else known, (name, test)
        assert len(left.split()) > 3, who
    assert page.count("`tests/") > 15


def test_the_page_counts_what_the_file_says():
    rows = re.findall(r"^\| (\d+)\. [^|]+\| (\d+) \| (\d+) \| (\d+) \|$", PAGE.read_text(), re.MULTILINE)
    said = {int(chapter): tuple(map(int, counts)) for chapter, *counts in rows}
    assert said == {
        chapter: tuple(
            sum(row["status"] == status for number, row in ROWS.items() if number.startswith(f"{chapter}."))
            for status in KEYS
        )
        for chapter in CHAPTERS
    }
