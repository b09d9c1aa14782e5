"""The reader's trail, counted on a product of a few lines whose stays are counted by hand."""

from pathlib import Path

import pytest

from benchmarks.trail import STARTS, measure, measure_together

REPOSITORY = Path(__file__).resolve().parents[1]


def product(folder: Path, files: dict[str, str]) -> Path:
    """Write the files below the folder, given by their names without ".py"."""
    for name, source in files.items():
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    return folder


def trail(folder: Path, start: str) -> tuple[int, int, int, int]:
    summary = measure(folder, (start,))[start]
    return summary["stays"], summary["files"], summary["returns"], summary["definitions"]


def test_a_reader_goes_to_each_call_and_comes_back(tmp_path: Path) -> None:
    files = {
        "judging/a": """
from judging import b
from judging.b import g
def start():
    b.f(g())
    g()
    near()
def near(): pass
""",
        "judging/b": """
def f(): g()
def g(): pass
""",
    }
    product(tmp_path, files)
    # a, b (f, then g inside it), a; g is known by then, and near() stands in the same file.
    assert trail(tmp_path, "judging/a.py:start") == (3, 2, 1, 4)


def test_a_class_is_read_with_its_methods_and_entered_once(tmp_path: Path) -> None:
    files = {
        "sampling/a": """
from .b import Box
def start():
    Box()
    Box()
""",
        "sampling/b": """
from judging.c import check
class Box:
    def __post_init__(self): check()
    def size(self): check()
""",
        "judging/c": "def check(): pass",
    }
    product(tmp_path, files)
    assert trail(tmp_path, "sampling/a.py:start") == (5, 3, 2, 3)  # a b c b a


def test_reexports_and_late_imports_are_followed_and_methods_are_not(tmp_path: Path) -> None:
    files = {
        "analytics/__init__": "from analytics.deep import f",
        "analytics/deep": """
def f(): pass
def never(): pass
""",
        "analytics/a": """
import json
def start(box):
    from analytics import f
    f()
    box.never()
    json.dumps(1)
    len([])
""",
    }
    product(tmp_path, files)
    assert trail(tmp_path, "analytics/a.py:start") == (3, 2, 1, 2)


def test_calls_are_followed_in_the_order_of_the_source(tmp_path: Path) -> None:
    files = {
        "judging/a": """
from judging.b import f
from judging.c import g
def start(): f(g(), f())
""",
        "judging/b": "def f(): pass",
        "judging/c": """
from judging.b import f
def g(): f()
""",
    }
    product(tmp_path, files)
    assert trail(tmp_path, "judging/a.py:start") == (5, 3, 2, 3)  # a b a c a: f is known when g calls it


def test_functions_that_call_each_other_end(tmp_path: Path) -> None:
    files = {
        "judging/a": """
from judging.b import g
def start(): g()
""",
        "judging/b": """
from judging.a import start
def g(): start()
""",
    }
    product(tmp_path, files)
    assert trail(tmp_path, "judging/a.py:start") == (3, 2, 1, 2)


def test_what_a_table_hides_is_counted_from_the_tables_file(tmp_path: Path) -> None:
    files = {
        "judging/a": """
from judging import table
def start(): table.METHODS[0]()
""",
        "judging/table": "",
        "judging/b": "def method(): pass",
        "judging/c": """
from judging.b import method
def other(): method()
""",
    }
    product(tmp_path, files)
    entries = tuple(("judging/table.py", name) for name in ("judging/b.py:method", "judging/c.py:other"))
    # a, table b, table c: other's call of method is known by then
    assert measure_together(tmp_path, "judging/a.py:start", entries) == {
        "stays": 5,
        "files": 4,
        "returns": 1,
        "definitions": 3,
    }


def test_a_start_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"has no judging/a\.py:start"):
        measure(product(tmp_path, {"judging/a": ""}), ("judging/a.py:start",))


def test_the_three_starts_of_the_product_exist() -> None:
    assert all(summary["files"] > 1 for summary in measure(REPOSITORY, STARTS).values())
