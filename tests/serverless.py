"""Which test files need neither a server nor a browser, told from what they and the modules they import use.

`pytest --fast` collects these alone: they run in seconds, also where the wheels of PostgreSQL and Redis are missing.
"""

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TESTS = Path(__file__).parent
# Fixtures and marks that start a server or a browser, and the modules behind them.
SERVER_FIXTURES = frozenset(
    {"db", "transactional_db", "django_db_setup", "live_server", "servers", "child_environment"}
)
SERVER_MARKS = frozenset({"django_db", "browser"})
SERVER_MODULES = frozenset({"touchstone.embedded", "playwright", "playwright.sync_api"})


@dataclass(frozen=True)
class Words:
    """What a file names: arguments and whole texts (where fixtures stand), attributes (marks), imported modules."""

    fixtures: frozenset[str]
    attributes: frozenset[str]
    modules: frozenset[str]

    @property
    def is_of_a_server(self) -> bool:
        return bool(
            SERVER_FIXTURES & self.fixtures or SERVER_MARKS & self.attributes or SERVER_MODULES & self.modules
        )


@cache
def words_of(path: Path) -> Words:
    """Return what the file names, at any depth; `from a import b` is both `a` and `a.b`."""
    fixtures: set[str] = set()
    attributes: set[str] = set()
    modules: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.arg(arg=name) | ast.Constant(value=str(name)):
                fixtures.add(name)
            case ast.Attribute(attr=name):
                attributes.add(name)
            case ast.Import(names=aliases):
                modules.update(alias.name for alias in aliases)
            case ast.ImportFrom(module=str(module), names=aliases):
                modules.update([module, *(f"{module}.{alias.name}" for alias in aliases)])
    return Words(frozenset(fixtures), frozenset(attributes), frozenset(modules))


def files_behind(path: Path, tests: Path) -> list[Path]:
    """Return the files of the tests that this one rests on: modules it imports, and conftest.py of its folders.

    The conftest.py of all tests is left out: its fixtures start servers only where a test asks for them.
    """
    modules = [tests / f"{name}.py" for name in words_of(path).modules if "." not in name]
    folders = [folder for folder in path.parents if folder.is_relative_to(tests) and folder != tests]
    return [file for file in [*modules, *(folder / "conftest.py" for folder in folders)] if file.exists()]


def needs_server(path: Path, tests: Path = TESTS) -> bool:
    """Return whether the test file, or one it rests on, uses a server or a browser; of a folder, whether all do."""
    if path.is_dir():
        return all(needs_server(file, tests) for file in path.rglob("test_*.py"))
    seen: set[Path] = set()
    waiting = [path]
    while waiting:
        file = waiting.pop()
        if file not in seen:
            seen.add(file)
            if words_of(file).is_of_a_server:
                return True
            waiting += files_behind(file, tests)
    return False
