"""The wheel touchstone-ir, of the same files: built, installed for every Python found, its numbers the tree's."""

import ast
import doctest
import json
import math
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from contents import REQUIRED, guests_at_once, shipped_modules
from hook import write_files
from pure_modules import FACADE, REPOSITORY
from rewriting import CORE
from wheel_builds import answer_of, build, copy_tree, interpreter, pip, plant, python_with
from wheel_child import numbers_of

DATA = REPOSITORY / "docs" / "examples" / "data"
OWN = "{}.{}".format(*sys.version_info)
OTHERS = [version for version in ("3.10", "3.11", "3.12", "3.13", "3.14") if version != OWN]
CLOSE = 1e-9  # between versions of NumPy

pytestmark = pytest.mark.xdist_group("wheel")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return copy_tree(tmp_path / "tree")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("dist")
    built = build(REPOSITORY, target)
    assert built.returncode == 0, built.stderr
    (found,) = target.iterdir()
    return found


def names_in_wheel() -> dict[str, set[str]]:
    """Return the modules as the wheel calls them, each with the guests that its import needs."""
    modules = shipped_modules(REPOSITORY)
    guests = guests_at_once(modules)
    return {
        name if module.is_facade else f"{CORE}.{name}": guests[name]
        for name, module in modules.items()
        if not name.endswith("__main__")
    }


@pytest.fixture(scope="module")
def own_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return python_with(set(REQUIRED), tmp_path_factory.mktemp("own"))


@pytest.fixture(scope="module")
def numbers_of_tree() -> dict[str, Any]:
    numbers: dict[str, Any] = json.loads(json.dumps(numbers_of("", str(DATA))))
    return numbers


# -- what is compared -----------------------------------------------------------------------------------------


def count_examples(*, has_guests: bool) -> int:
    """Return how many examples the files of the wheel have, of those that need guests or of the others."""
    modules = shipped_modules(REPOSITORY)
    guests, parser, count = guests_at_once(modules), doctest.DocTestParser(), 0
    for name, module in modules.items():
        if name.endswith("__main__") or bool(guests[name]) != has_guests:
            continue
        tree = ast.parse(module.source)
        in_classes = [node for top in tree.body if isinstance(top, ast.ClassDef) for node in top.body]
        for node in (tree, *tree.body, *in_classes):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                examples = parser.get_examples(ast.get_docstring(node) or "")
                count += sum(doctest.SKIP not in example.options for example in examples)
    return count


def differing(found: Any, expected: Any, is_close: bool, where: str = "") -> list[str]:
    """Return where two answers differ; numbers may differ by a part in a thousand million if `is_close`."""
    if isinstance(expected, dict) and isinstance(found, dict) and found.keys() == expected.keys():
        pairs = [(f"{where}.{key}", found[key], expected[key]) for key in expected]
    elif isinstance(expected, list) and isinstance(found, list) and len(found) == len(expected):
        pairs = [(f"{where}[{at}]", *pair) for at, pair in enumerate(zip(found, expected, strict=True))]
    else:
        same = found == expected
        if is_close and isinstance(expected, float) and isinstance(found, float):
            same = math.isclose(found, expected, rel_tol=CLOSE, abs_tol=CLOSE)
        return [] if same else [f"{where}: {found!r} is not {expected!r}"]
    return [line for place, one, other in pairs for line in differing(one, other, is_close, place)]


def assert_as_the_tree(python: Path, expected: dict[str, Any]) -> dict[str, Any]:
    """Check that the wheel imports in this Python, its examples are right and its numbers are the tree's."""
    names = [name for name, guests in names_in_wheel().items() if not guests]
    question = {"modules": ["touchstone_ir._core", *names], "core": f"{CORE}.", "data": str(DATA)}
    answer = answer_of(python, question)
    assert answer["failed"] == {}
    assert answer["wrong"] == {}
    numbers = answer["numbers"]
    is_close = numbers.pop("numpy") != expected["numpy"]
    assert differing(numbers, {key: expected[key] for key in numbers}, is_close) == []
    described = subprocess.run(
        [str(python.with_name("touchstone")), "describe"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert {"estimate", "compare", "gate"} <= {
        one["name"] for one in json.loads(described.stdout)["commands"]
    }
    return answer


# -- the tests ------------------------------------------------------------------------------------------------


def test_the_wheel_is_the_tree_on_the_python_that_runs_this(
    wheel: Path, own_python: Path, numbers_of_tree: dict[str, Any]
) -> None:
    installed = pip(own_python, "--no-deps", "--no-index", str(wheel))
    assert installed.returncode == 0, installed.stderr
    answer = assert_as_the_tree(own_python, numbers_of_tree)
    assert answer["python"].startswith(f"{OWN}.")
    assert answer["examples"] == count_examples(has_guests=False) > 300
    assert len(numbers_of_tree["audit"]) > 80
    assert numbers_of_tree["compare"][0]["value"] is not None


@pytest.mark.slow
@pytest.mark.parametrize("version", OTHERS)
def test_the_wheel_is_the_tree_on_other_pythons(
    version: str, wheel: Path, tmp_path: Path, numbers_of_tree: dict[str, Any]
) -> None:
    base = interpreter(version)
    if base is None:
        pytest.skip(f"no Python {version} on this machine")
    subprocess.run([base, "-m", "venv", "--without-pip", str(tmp_path / "env")], check=True, timeout=60)
    python = tmp_path / "env" / "bin" / "python"
    installed = pip(python, "--only-binary", ":all:", "--timeout", "15", "--retries", "0", str(wheel))
    if installed.returncode:
        pytest.skip(
            f"numpy, scipy and polars cannot be installed for Python {version}: {installed.stderr[-300:]}"
        )
    answer = assert_as_the_tree(python, numbers_of_tree)
    assert answer["python"].startswith(f"{version}.")


def test_what_stands_behind_an_extra_works_with_it(wheel: Path, tmp_path: Path) -> None:
    behind = {name: guests for name, guests in names_in_wheel().items() if guests}
    needed = {guest for guests in behind.values() for guest in guests}
    assert behind["touchstone_ir.client"] == {"httpx"}
    assert not {FACADE, f"{FACADE}.command", f"{FACADE}.numbers"} & behind.keys()
    python = python_with({*REQUIRED, *needed}, tmp_path)
    assert pip(python, "--no-deps", "--no-index", str(wheel)).returncode == 0
    answer = answer_of(python, {"modules": sorted(behind)})
    assert answer["failed"] == answer["wrong"] == {}
    assert answer["examples"] == count_examples(has_guests=True)


def test_the_wheel_has_one_name_and_asks_for_three_packages(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.split("/")[0] for name in archive.namelist()}
        (about,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        words = archive.read(about).decode()
        licence = archive.read(about.replace("METADATA", "licenses/LICENSE"))
    assert tops == {FACADE, about.split("/")[0]}
    required = {line.split(": ", 1)[1] for line in words.splitlines() if line.startswith("Requires-Dist: ")}
    assert {line for line in required if "extra ==" not in line} == {
        "numpy>=2.2",
        "polars>=2.0",
        "scipy>=1.15",
    }
    assert "Requires-Python: >=3.10" in words
    assert f"Version: {metadata.version('touchstone')}" in words
    assert licence == (REPOSITORY / "LICENSE").read_bytes()


def test_the_same_files_give_the_same_bytes(wheel: Path, tree: Path, tmp_path: Path) -> None:
    built = build(tree, tmp_path / "again", PYTHONHASHSEED="7", TZ="Asia/Tokyo")
    assert built.returncode == 0, built.stderr
    assert (tmp_path / "again" / wheel.name).read_bytes() == wheel.read_bytes()


# -- planted violations ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "named"),
    [
        ("from django.db import models\n", "django.db.models"),
        ("def late():\n    import celery\n", "celery"),
        ("from judging.models import Topic\n", "judging.models.Topic"),
        ("from touchstone.files import opened\n", "touchstone.files.opened"),
    ],
)
def test_a_planted_pure_file_with_django_ends_the_build(tree: Path, source: str, named: str) -> None:
    plant(tree, {"sampling/planted.py": source})
    built = build(tree, tree / "dist")
    assert built.returncode != 0
    assert f"sampling/planted.py: a pure module cannot import {named}" in built.stderr
    assert not list(tree.glob("dist/*.whl"))


HIDDEN = "__import__('samp' + 'ling.draws', fromlist=['draws'])"
AT_ONCE = f"draws = {HIDDEN}\n"
IN_AN_EXAMPLE = (
    f'def late():\n    """Return it.\n\n    >>> late().seed\n    7\n    """\n    return {HIDDEN}\n'
)


@pytest.mark.parametrize(
    ("source", "kind"), [(AT_ONCE, "failed"), (IN_AN_EXAMPLE, "wrong")], ids=["failed", "wrong"]
)
def test_a_planted_import_that_the_hook_misses_is_seen(
    tree: Path, own_python: Path, tmp_path: Path, source: str, kind: str
) -> None:
    plant(tree, {"sampling/planted.py": source})
    write_files(tree, tmp_path / "files")
    name = f"{CORE}.sampling.planted"
    answer = answer_of(own_python, {"modules": [name], "before": [str(tmp_path / "files")]})
    assert "No module named 'sampling'" in answer[kind].pop(name)
    assert answer["failed"] == answer["wrong"] == {}


def test_differences_are_seen() -> None:
    tree = {"a": [1.0, 2.0, "x"], "b": None}
    assert differing({"a": [1.0, 2.0 + 1e-12, "x"], "b": None}, tree, is_close=True) == []
    assert differing({"a": [1.0, 2.0 + 1e-12, "x"], "b": None}, tree, is_close=False) != []
    assert differing({"a": [1.0, 2.1, "y"], "b": 0.0}, tree, is_close=True) == [
        ".a[1]: 2.1 is not 2.0",
        ".a[2]: 'y' is not 'x'",
        ".b: 0.0 is not None",
    ]
    assert differing({"a": [1.0]}, tree, is_close=True) != []
