"""Which test files need neither a server nor a browser, told from what they and the modules they import use.

`pytest --fast` collects these alone: they run in seconds, also where the wheels of PostgreSQL and Redis are missing.
"""

import ast
from pathlib import Path

TESTS = Path(__file__).parent
# Fixtures and marks that start a server or a browser, and the modules behind them.
SERVER_FIXTURES = frozenset(
    {"db", "transactional_db", "django_db_setup", "live_server", "servers", "child_environment"}
)
SERVER_MARKS = frozenset({"django_db", "browser"})
SERVER_MODULES = frozenset({"touchstone.embedded", "playwright", "playwright.sync_api"})


def imported_modules(tree: ast.Module) -> set[str]:
    """Return the dotted names that the file imports, at any depth; `from a import b` is both `a` and `a.b`."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def uses_server(tree: ast.Module) -> bool:
    """Return whether the file itself names a fixture, a mark or a module that starts a server or a browser."""
    arguments = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    marks = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    return bool(
        SERVER_FIXTURES & arguments
        or SERVER_FIXTURES & {text for text in texts if isinstance(text, str)}
        or SERVER_MARKS & marks
        or SERVER_MODULES & imported_modules(tree)
    )


def files_behind(path: Path, tree: ast.Module, tests: Path) -> list[Path]:
    """Return the files of the tests that this one rests on: modules it imports, and conftest.py of its folders.

    The conftest.py of all tests is left out: its fixtures start servers only where a test asks for them.
    """
    modules = [tests / f"{name}.py" for name in imported_modules(tree) if "." not in name]
    folders = [folder for folder in path.parents if folder.is_relative_to(tests) and folder != tests]
    return [file for file in [*modules, *(folder / "conftest.py" for folder in folders)] if file.exists()]


def needs_server(path: Path, tests: Path = TESTS) -> bool:
    """Return whether the test file, or one it rests on, uses a server or a browser."""
    seen: set[Path] = set()
    waiting = [path]
    while waiting:
        file = waiting.pop()
        if file in seen:
            continue
        seen.add(file)
        tree = ast.parse(file.read_text())
        if uses_server(tree):
            return True
        waiting += files_behind(file, tree, tests)
    return False
