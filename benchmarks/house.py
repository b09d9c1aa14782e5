"""Measure what it costs to change and to read this repository, before it was put in order and now, as a page.

    python benchmarks/house.py [--mypy] [--test SECONDS SECONDS] [--fast SECONDS] > docs/house.md

Before is the commit BEFORE, unpacked from the history of this repository into a temporary folder; now is the checkout
in which the program stands. Measured are the files that an extension touches, the reader's trail (`trail.py`), lines
by application, with `--mypy` the errors of `mypy --strict` under today's configuration without its exceptions, and
with `--time` the seconds of `make test` and `make test-fast`; both are slow, so the seconds of an earlier run may be
given instead. A goal that is missed needs its reason in REASONS, else the program fails.
"""

import argparse
import os
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks import trail

REPOSITORY = trail.REPOSITORY
BEFORE = "35d1568"
APPS = ("judging", "sampling", "analytics", "platform/touchstone", "platform/console")
OTHERS = ("tests", "benchmarks", "experiments")
MOST_LINES = {"analytics": 24_500}
MOST_RETURNS = dict(zip(trail.STARTS, (75, 50, 6), strict=True))
# The estimate calls its methods through a table: followed as well, so that the table hides nothing.
METHODS = tuple(
    ("analytics/methods.py", function)
    for function in (
        "analytics/estimation/naive.py:estimate",
        "analytics/estimation/audit_correction.py:estimate",
        "analytics/papers/assessor_matrices.py:estimate",
        "analytics/estimation/replacement.py:estimate",
        "analytics/estimation/truth.py:estimate",
    )
)
# So it does with what a kind of measure asks for.
TARGETS = tuple(
    ("analytics/numbers/targets.py", f"analytics/numbers/targets.py:{function}")
    for function in ("linear_targets", "_ratio_targets", "_complete_targets")
)
REASONS: dict[str, str] = {}  # why a goal is missed, by the name of its row
INTRODUCTION = f"""What it costs to extend and to read this repository, before and after it was put in order. Written by
`benchmarks/house.py`; before is the commit {BEFORE}.
"""
ABOUT_EXTENSIONS = """Code and templates count, tests and documentation do not. Where a commit is named, the files
are those of `git show --stat`; elsewhere they are those of the recipe in CONTRIBUTING.md, and
`tests/test_extension.py` plants one and finds it in every form, command, page and release.
"""
ABOUT_TRAILS = """How often a file must be opened again by a reader who follows every call
([Benchmarks](benchmarks.md#how-far-a-reader-travels)). Calls through a table are not followed, but for the methods of
the estimate in its second row, and what its kinds of measures ask for in the third, one after the other. Before there
were no such tables.
"""


@dataclass(frozen=True)
class Extension:
    """Something the field adds: what it took before, how many files it may take, and what shows what it takes now.

    `subject` names the commit that added one; without it, `files` are those that the recipe in CONTRIBUTING.md names,
    and tests/test_extension.py plants one to show that no other file is needed.
    """

    name: str
    before: str
    goal: int
    subject: str = ""
    files: tuple[str, ...] = ()


EXTENSIONS = (
    Extension(
        "measure (and its verification in releases)", "9 files", 3, subject="Compute ERR@k in every topic"
    ),
    Extension("strategy", "5 files and a migration", 1, files=("sampling/strategies.py",)),
    Extension(
        "method (and its verification in releases)",
        "12 files, 2 templates and a migration",
        3,
        files=(
            "analytics/estimation/replacement.py",
            "analytics/methods.py",
            "analytics/releases/verify_methods.py",
        ),
    ),
    Extension("export format", "7 files", 2, subject="Export judgments as crowd labels"),
    Extension("import format", "7 files", 2, files=("judging/trec.py", "judging/formats/table.py")),
    Extension(
        "file of a release",
        "7 files",
        2,
        files=(
            "analytics/releases/formats.py",
            "analytics/releases/services/writing.py",
        ),
    ),
)


@dataclass(frozen=True)
class Row:
    """A line of a table: what is measured, before, now, and the goal as a limit, if there is one."""

    name: str
    before: str
    now: str
    value: float | None = None
    goal: float | None = None

    @property
    def is_missed(self) -> bool:
        return self.goal is not None and self.value is not None and self.value > self.goal

    def line(self) -> str:
        goal = "" if self.goal is None else f"at most {self.goal:,g}"
        return f"| {self.name} | {self.before} | {self.now}{' (missed)' if self.is_missed else ''} | {goal} |"


def git(*words: str) -> bytes:
    return subprocess.run(["git", *words], cwd=REPOSITORY, capture_output=True, check=True).stdout


@contextmanager
def former_checkout() -> Iterator[Path]:
    """Yield a folder with the files of the commit BEFORE."""
    with tempfile.TemporaryDirectory(prefix="touchstone-house-") as folder:
        with tarfile.open(fileobj=BytesIO(git("archive", "--format=tar", BEFORE))) as archive:
            archive.extractall(folder, filter="data")
        yield Path(folder)


# -- what an extension touches --------------------------------------------------------------------------------


def product_files(names: list[str]) -> list[str]:
    """Return the product's files among the names: code, templates and scripts, not tests, pages and catalogues."""
    folders = tuple(f"{folder}/" for folder in APPS)
    return [name for name in names if name.startswith(folders) and not name.endswith((".md", ".po", ".mo"))]


def files_of_commit(subject: str) -> list[str]:
    """Return the product's files that the newest commit whose subject begins so has touched."""
    lines = git("log", "--format=%H %s").decode().splitlines()
    commits = [line.split(" ", 1)[0] for line in lines if line.split(" ", 1)[1].startswith(subject)]
    if not commits:
        raise SystemExit(f"no commit's subject begins with {subject!r}")
    return product_files(git("show", "--format=", "--name-only", commits[0]).decode().splitlines())


def extension_row(extension: Extension) -> Row:
    files = files_of_commit(extension.subject) if extension.subject else list(extension.files)
    absent = [] if extension.subject else [name for name in files if not (REPOSITORY / name).exists()]
    if absent:
        raise SystemExit(f"{extension.name}: there is no {', '.join(absent)}")
    names = ", ".join(f"`{name}`" for name in files)
    source = f"commit “{extension.subject} ...”" if extension.subject else "recipe"
    return Row(
        extension.name, extension.before, f"{len(files)}: {names} ({source})", len(files), extension.goal
    )


# -- what a reader passes -------------------------------------------------------------------------------------


def shown(summary: dict[str, int]) -> str:
    return f"{summary['returns']} ({summary['stays']} stays in {summary['files']} files)"


def trail_rows(before: dict[str, dict[str, int]], now: dict[str, dict[str, int]]) -> list[Row]:
    """Return a row a start. The estimate's goal is for the trail with all methods of the table."""
    first, *others = trail.STARTS
    whole = trail.measure_together(REPOSITORY, first, METHODS)
    everything = trail.measure_together(REPOSITORY, first, TARGETS + METHODS)
    rows = [
        Row(f"`{first}`, to its table of methods", shown(before[first]), shown(now[first])),
        Row(
            f"`{first}`, and all methods of the table",
            shown(before[first]),
            shown(whole),
            whole["returns"],
            MOST_RETURNS[first],
        ),
        Row(f"`{first}`, all methods and all kinds of measures", shown(before[first]), shown(everything)),
    ]
    return rows + [
        Row(f"`{start}`", shown(before[start]), shown(now[start]), now[start]["returns"], MOST_RETURNS[start])
        for start in others
    ]


def lines_of(root: Path, folder: str) -> int:
    """Return the lines of the folder's Python files, without migrations."""
    paths = [path for path in (root / folder).rglob("*.py") if "migrations" not in path.parts]
    return sum(len(path.read_text().splitlines()) for path in paths)


def line_rows(former: Path) -> list[Row]:
    rows = []
    for folder in (*APPS, *OTHERS):
        now = lines_of(REPOSITORY, folder)
        rows.append(
            Row(f"`{folder}/`", f"{lines_of(former, folder):,}", f"{now:,}", now, MOST_LINES.get(folder))
        )
    return rows


# -- types ----------------------------------------------------------------------------------------------------


def strict_configuration(folder: Path) -> Path:
    """Write mypy's configuration of this checkout without the modules whose errors it ignores."""
    tool = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["tool"]
    untyped = [one["module"] for one in tool["mypy"]["overrides"] if one.get("ignore_missing_imports")]
    lines = ["[mypy]", "strict = True", "mypy_path = platform", "explicit_package_bases = True"]
    lines += [f"plugins = {', '.join(tool['mypy']['plugins'])}", "exclude = /migrations/"]
    lines += ["untyped_calls_exclude = drf_spectacular", "[mypy.plugins.django-stubs]"]
    lines += [f"django_settings_module = {tool['django-stubs']['django_settings_module']}"]
    for name in [name for names in untyped for name in ([names] if isinstance(names, str) else names)]:
        lines += [f"[mypy-{name}]", "ignore_missing_imports = True"]
    path = folder / "mypy.ini"
    path.write_text("\n".join(lines) + "\n")
    return path


def mypy_errors(root: Path) -> int:
    """Return how many errors `mypy --strict` finds in the whole product of the checkout."""
    with tempfile.TemporaryDirectory(prefix="touchstone-mypy-") as folder:
        options = [f"--config-file={strict_configuration(Path(folder))}", f"--cache-dir={folder}/cache"]
        command = [sys.executable, "-m", "mypy", "--no-error-summary", *options]
        folders = [name for name in APPS if (root / name).exists()]
        run = subprocess.run(
            [*command, *folders],
            cwd=root,
            env={**os.environ, "PYTHONPATH": f"{root / 'platform'}:{root}"},
            capture_output=True,
            text=True,
            check=False,
        )
    if run.returncode not in (0, 1):
        raise SystemExit(f"mypy failed in {root}: {run.stderr or run.stdout}")
    return sum(": error: " in line for line in run.stdout.splitlines())


# -- the page -------------------------------------------------------------------------------------------------


def seconds_of(target: str) -> float:
    begin = time.monotonic()
    subprocess.run(["make", target], cwd=REPOSITORY, check=True, stdout=sys.stderr)
    return time.monotonic() - begin


def slow_rows(arguments: argparse.Namespace, former: Path) -> list[Row]:
    rows = []
    if arguments.mypy:
        errors = mypy_errors(REPOSITORY)
        rows.append(Row("errors of `mypy --strict`", f"{mypy_errors(former)}", f"{errors}", errors, 0))
    if arguments.time:
        arguments.test, arguments.fast = [None, seconds_of("test")], seconds_of("test-fast")
    if arguments.test:
        before, now = arguments.test
        rows.append(
            Row("seconds of `make test`", "not measured" if before is None else f"{before:.0f}", f"{now:.0f}")
        )
    if arguments.fast:
        fast = arguments.fast
        rows.append(Row("seconds of `make test-fast`", "no such target", f"{fast:.0f}", fast, 60))
    return rows


def table(title: str, rows: list[Row]) -> str:
    lines = [
        f"## {title}",
        "",
        "| | before | now | goal |",
        "|---|---|---|---|",
        *(row.line() for row in rows),
    ]
    return "\n".join(lines) + "\n"


def reasons(rows: list[Row]) -> str:
    missed = [row.name for row in rows if row.is_missed]
    silent = [name for name in missed if name not in REASONS]
    if silent:
        raise SystemExit(f"missed, and REASONS does not say why: {', '.join(silent)}")
    return "".join(f"- {name}: {REASONS[name]}\n" for name in missed) or "None.\n"


def page(arguments: argparse.Namespace) -> str:
    with former_checkout() as former:
        extensions = [extension_row(extension) for extension in EXTENSIONS]
        trails = trail_rows(trail.measure(former), trail.measure(REPOSITORY))
        lines, slow = line_rows(former), slow_rows(arguments, former)
    parts = [
        "# The house\n",
        INTRODUCTION,
        table("Files that an extension touches", extensions),
        ABOUT_EXTENSIONS,
        table("Returns of a reader", trails),
        ABOUT_TRAILS,
        table("Lines of Python, without migrations", lines),
        *([table("Types and time", slow)] if slow else []),
        "## What was missed, and why\n",
        reasons([*extensions, *trails, *lines, *slow]),
    ]
    return "\n".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mypy", action="store_true", help="count mypy's errors in both checkouts (minutes)")
    parser.add_argument(
        "--time", action="store_true", help="run make test and make test-fast now (many minutes)"
    )
    parser.add_argument("--test", type=float, nargs=2, metavar=("BEFORE", "NOW"), help="seconds of make test")
    parser.add_argument("--fast", type=float, help="seconds of make test-fast")
    print(page(parser.parse_args()), end="")


if __name__ == "__main__":
    main()
