"""What README.md and docs/ name exists: make targets, commands, variables, processes, modules.

Links, paths and names: tests/test_references.py.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.core.management import get_commands

from touchstone.management.commands.stack import BEAT, LANES_OF, WEB, worker_command

REPOSITORY = Path(__file__).resolve().parents[2]
DOCS = REPOSITORY / "docs"
PAGES = [REPOSITORY / "README.md", REPOSITORY / "CHANGELOG.md", *sorted(DOCS.rglob("*.md"))]
SETTINGS = [
    REPOSITORY / "platform" / "touchstone" / name
    for name in ("settings.py", "mail_settings.py", "sign_on_settings.py")
]

MAKE = re.compile(r"\bmake ([a-z]+)\b")
COMMAND = re.compile(r"manage\.py (?:help )?([a-z_]+)(?![\w.])")
# A row of the table of variables, or of any other place: capitals in backticks.
VARIABLE_ROW = re.compile(r"^\| `([A-Z_]+)` \|", re.MULTILINE)
PLACE = re.compile(r"^\d+\. (.+)$", re.MULTILINE)


def name_of(page: Path) -> str:
    return page.relative_to(REPOSITORY).as_posix()


def code_of(text: str) -> str:
    """Return what is set as code: indented blocks and backticks. In prose "make a new campaign" is no command."""
    blocks = [line for line in text.splitlines() if line.startswith("    ")]
    return "\n".join([*blocks, *re.findall(r"`([^`\n]+)`", text)])


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z]+):", (REPOSITORY / "Makefile").read_text(), re.MULTILINE))


def unknown(names: re.Pattern[str], known: set[str], page: Path) -> set[str]:
    return set(names.findall(code_of(page.read_text()))) - known


def variables_of_settings() -> set[str]:
    """Return every name that the settings look up in os.environ, by [], get() or `in`."""
    found = set()
    for node in [node for path in SETTINGS for node in ast.walk(ast.parse(path.read_text()))]:
        key: ast.expr | None = None
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "os.environ":
            key = node.slice
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("os.environ.get", "os.getenv"):
            key = node.args[0]
        elif isinstance(node, ast.Compare) and ast.unparse(node.comparators[0]) == "os.environ":
            key = node.left
        if isinstance(key, ast.Constant):
            found.add(str(key.value))
    return found


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_make_target_and_command_named_exists(page):
    assert unknown(MAKE, make_targets(), page) == set()
    assert unknown(COMMAND, {*get_commands(), "help"}, page) == set()


def test_a_planted_target_and_command_are_seen_and_prose_is_not(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "You make campaigns. `make coffee`, `make demo`\n\n    manage.py brew\n    manage.py migrate\n"
    )
    assert unknown(MAKE, make_targets(), page) == {"coffee"}
    assert unknown(COMMAND, set(get_commands()), page) == {"brew"}


def test_the_commands_of_the_product_are_documented():
    ours = {
        name
        for name, app in get_commands().items()
        if app in {"touchstone", "judging", "sampling", "analytics"}
    }
    named = {name for page in PAGES for name in COMMAND.findall(page.read_text())}
    assert ours - named - {"load_demo"} == set()  # `demo` calls load_demo; nobody else should


def test_operations_lists_exactly_the_variables_that_settings_read():
    listed = VARIABLE_ROW.findall((DOCS / "operations.md").read_text())
    assert len(listed) == len(set(listed))
    assert set(listed) == variables_of_settings()


def test_the_variables_of_settings_are_found_whichever_way_they_are_read():
    assert {"SECRET_KEY", "DATABASE_URL", "TOUCHSTONE_ROLE", "HTTPS"} <= variables_of_settings()


def test_operations_starts_the_processes_that_the_embedded_stack_starts():
    commands = (DOCS / "operations.md").read_text()
    started = (WEB, *map(worker_command, LANES_OF), BEAT)
    assert [command for command in started if " ".join(command) not in commands] == []


def test_the_readme_names_ten_places_to_read_that_exist():
    section = (
        (REPOSITORY / "README.md").read_text().partition("## Ten places to read")[2].partition("\n## ")[0]
    )
    lines = PLACE.findall(section)
    assert len(lines) == 10
    for line in lines:
        paths = re.findall(r"`([^`]+)`", line.partition(":")[0])
        assert paths, line
        assert [path for path in paths if not (REPOSITORY / path).exists()] == []


def drawn_paths() -> list[str]:
    """Return the paths in the tree of docs/architecture.md: two more blanks are one folder deeper, names come first."""
    tree = (DOCS / "architecture.md").read_text().partition("## The tree")[2].partition("\n## ")[0]
    folders: dict[int, str] = {}
    paths = []
    for line in filter(str.strip, tree.splitlines()):
        depth = len(line) - len(line.lstrip())
        names = re.split(r"\s{2,}", line.strip())[0].split()
        folder = folders.get(depth - 2, "")
        paths += [folder + name for name in names]
        folders[depth] = folder + names[0]
    return paths


def test_the_architecture_page_draws_every_module_and_nothing_else():
    drawn = drawn_paths()
    assert [path for path in drawn if not (REPOSITORY / path).exists()] == []
    modules = [
        path.relative_to(REPOSITORY).as_posix()
        for folder in ("judging", "sampling", "analytics", "platform/touchstone")
        for path in sorted((REPOSITORY / folder).glob("*.py"))
        if path.name not in {"__init__.py", "apps.py"}
    ]
    assert [path for path in modules if path not in drawn] == []


def built_with(makefile: str, folder: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """Return the end of the build of a folder's documentation by the options that the Makefile has."""
    (options,) = re.findall(r"/mkdocs build (.*)$", makefile, re.MULTILINE)
    words = [sys.executable, "-m", "mkdocs", "build", *options.split(), "--site-dir", str(site)]
    return subprocess.run(words, cwd=folder, capture_output=True, text=True)


def test_the_documentation_builds_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path):
    built = built_with((REPOSITORY / "Makefile").read_text(), REPOSITORY, tmp_path / "site")
    assert built.returncode == 0, built.stdout + built.stderr
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) >= len(list(DOCS.rglob("*.md")))
    loaded = re.compile(
        r"<(?:script|img|iframe)[^>]*\ssrc=\"(?:https?:)?//|<link[^>]*rel=\"stylesheet\"[^>]*\"(?:https?:)?//"
    )
    assert [page.name for page in pages if loaded.search(page.read_text())] == []


@pytest.mark.parametrize("link", ["nowhere.md", "index.md#nowhere", ""])
def test_a_planted_link_to_nothing_ends_the_build(link, tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"# Here\n[a]({link})\n" if link else "# Here\n")
    (tmp_path / "mkdocs.yml").write_text("site_name: x\nvalidation:\n  anchors: warn\n")
    built = built_with((REPOSITORY / "Makefile").read_text(), tmp_path, tmp_path / "site")
    assert (built.returncode != 0) == bool(link)
