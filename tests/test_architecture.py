"""The house rules, each a function on (path, source), and beside each a planted violation that it must see."""

import ast
import doctest
import importlib
import subprocess
import sys
import types
from collections.abc import Iterator
from functools import cache
from pathlib import Path, PurePath

import pytest
from django.apps import apps as django_apps
from django.core.management import call_command
from django.db import models
from django.db.migrations.autodetector import MigrationAutodetector
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.questioner import NonInteractiveMigrationQuestioner
from django.db.migrations.state import ProjectState
from pure_modules import (
    APPS,
    BLOCKED,
    DJANGO_NAMES,
    FACADE,
    REPOSITORY,
    module_name,
    pure_modules,
)
from pure_modules import PACKAGES as LINE  # from left to right
from test_released_keys import RELEASED

PACKAGES = (*LINE, "platform/touchstone", "platform/console")
ALL_FOLDERS = (*PACKAGES, "wheel", "tests", "benchmarks", "experiments")
LONGEST_FILE = 400
LONG_FILES: frozenset[str] = frozenset()  # exceptions: none
OUTSIDE = ("tests", "benchmarks", "experiments")  # they use the product, never the other way round
GROUND_FLOOR = (
    "touchstone.models",
    "touchstone.jobs",
    "touchstone.watermark",
    "touchstone.files",
    "touchstone.memory",
    "touchstone.letters",
)
CONSOLE_IS_NAMED_BY = ("touchstone.urls", "touchstone.settings")
FLOORS = {"models": 1, "frames": 1, "services": 2}
ROOF = 3


def sources() -> list[Path]:
    """Return every Python file of the packages but migrations, which are written by Django."""
    found = [path for package in PACKAGES for path in sorted((REPOSITORY / package).rglob("*.py"))]
    return [path for path in found if "migrations" not in path.parts]


def all_files() -> list[Path]:
    """Return every Python file that people write: of the packages, the tests, the benchmarks and the experiments."""
    files = [path for folder in ALL_FOLDERS for path in sorted((REPOSITORY / folder).rglob("*.py"))]
    return [path for path in files if "migrations" not in path.parts]


def below_repository(path: Path) -> PurePath:
    return PurePath(path.relative_to(REPOSITORY))


@cache  # a file that is as it was is read once for all rules
def imports(path: PurePath, source: str) -> tuple[str, ...]:
    """Return the dotted name of everything the file imports, at any depth; `from a import b` is `a.b`."""
    return tuple(_imports(path, source))


def _imports(path: PurePath, source: str) -> Iterator[str]:
    package = module_name(path).split(".")
    if path.stem != "__init__":
        package = package[:-1]
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = node.module.split(".") if node.module else []
            if node.level:
                origin = package[: len(package) - node.level + 1] + origin
            yield from (".".join([*origin, alias.name]) for alias in node.names)


def floor(module: str) -> int:
    """Return 0 for pure, 1 for models and frames, 2 for services, 3 for what stands on them."""
    first, *rest = module.split(".")
    if first == "touchstone":
        return 1 if module.startswith(GROUND_FLOOR) else ROOF
    if first == FACADE:
        return 0
    return next((FLOORS.get(name, ROOF) for name in rest if name in DJANGO_NAMES), 0)


def is_below(module: str, parents: tuple[str, ...]) -> bool:
    return any(module == parent or module.startswith(f"{parent}.") for parent in parents)


def is_reserved(here: str, name: str) -> bool:
    """Return whether `name` belongs to others than `here`: the console to the roof, an app's views to that app."""
    target, *rest = name.split(".")
    if target == "console":
        return not is_below(here, ("console", *CONSOLE_IS_NAMED_BY))
    return target in APPS and rest[:1] == ["views"] and here.split(".")[0] != target


def wrong_imports(path: PurePath, source: str) -> list[str]:
    """Return the imports that do not point down: to an app further right, to the roof, or to a higher floor."""
    here = module_name(path)
    app = here.split(".")[0]
    wrong = []
    for name in imports(path, source):
        target = name.split(".")[0]
        if app in LINE and target == "touchstone":
            allowed = is_below(name, GROUND_FLOOR) and floor(here) > 0
        elif app in LINE and target in LINE:
            allowed = LINE.index(target) <= LINE.index(app) and floor(name) <= floor(here)
        elif is_below(here, GROUND_FLOOR):
            allowed = target not in LINE
        else:
            allowed = True
        if not allowed or is_reserved(here, name) or target in OUTSIDE:
            wrong.append(f"{path}: {here} imports {name}")
    return wrong


def folder_of(path: PurePath) -> str:
    """Return the folder that a pure file stands in, as a dotted name; the façade is one folder."""
    return FACADE if path.parts[0] == FACADE else ".".join(path.parent.parts)


def pure_folders(files: dict[PurePath, str]) -> dict[str, set[str]]:
    """Return for each folder of pure files the other folders of pure files that it imports from."""
    modules = {module_name(path): folder_of(path) for path in files}
    edges: dict[str, set[str]] = {folder: set() for folder in modules.values()}
    for path, source in files.items():
        for name in imports(path, source):
            target = modules.get(name) or modules.get(name.rpartition(".")[0])
            if target and target != folder_of(path):
                edges[folder_of(path)].add(target)
    return edges


def circles(edges: dict[str, set[str]]) -> set[str]:
    """Return the nodes that are part of a circle or lead from one to another: what no topological order can place."""
    left = {node: set(targets) for node, targets in edges.items()}
    while True:
        free = [node for node, targets in left.items() if not targets & left.keys()]
        if not free:
            return set(left)
        for node in free:
            del left[node]


def too_long(path: PurePath, source: str) -> list[str]:
    length = len(source.splitlines())
    if length <= LONGEST_FILE or str(path) in LONG_FILES:
        return []
    return [f"{path}: {length} lines, more than {LONGEST_FILE}"]


def stray_packages(root: Path) -> list[PurePath]:
    """Return the __init__.py files that make a package of a folder that must not be one: platform/ and tests/."""
    found = [root / "platform" / "__init__.py", *sorted((root / "tests").rglob("__init__.py"))]
    return [PurePath(path.relative_to(root)) for path in found if path.exists()]


def import_without_django(names: list[str], root: Path) -> str:
    """Import the modules in a child to which Django and Celery do not exist; return what it complained about."""
    program = f"""
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {BLOCKED!r}:
            raise ImportError(name + " is blocked: a pure module does without it")
sys.meta_path.insert(0, Blocked())
sys.path.insert(0, {str(root)!r})
import importlib
for name in {names!r}:
    importlib.import_module(name)
"""
    child = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, timeout=60
    )
    return child.stderr if child.returncode else ""


def failed_examples(module: types.ModuleType) -> int:
    """Return how many doctest examples of the module fail; their report goes to standard output."""
    return doctest.testmod(module, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE).failed


def missing_migrations(state: ProjectState) -> dict[str, list[str]]:
    """Return what `makemigrations` would write to lead the migrations to `state`."""
    loader = MigrationLoader(None)
    detector = MigrationAutodetector(loader.project_state(), state, NonInteractiveMigrationQuestioner())
    changes = detector.changes(graph=loader.graph)
    return {
        app: [step.describe() for made in found for step in made.operations] for app, found in changes.items()
    }


def enumerating_checks(state: ProjectState, registries: dict[str, set[str]]) -> list[str]:
    """Return the checks of the database that list two or more keys of a registry: a new key would need a migration."""
    return [
        f"{constraint.name} lists keys of {registry}"
        for model in state.models.values()
        for constraint in model.options.get("constraints", [])
        if isinstance(constraint, models.CheckConstraint)
        for values in listed_values(constraint.condition)
        for registry, keys in registries.items()
        if len(keys & set(values)) >= 2
    ]


def listed_values(condition: object) -> Iterator[list[str]]:
    """Yield the lists that a condition compares a field with, at any depth."""
    if isinstance(condition, models.Q):
        for child in condition.children:
            yield from listed_values(child)
        same = [child for child in condition.children if isinstance(child, tuple)]
        if condition.connector == models.Q.OR:  # a = "x" or a = "y" is a list as well
            yield [str(value) for name, value in same if "__" not in name]
    elif isinstance(condition, tuple) and condition[0].endswith("__in"):
        yield [str(value) for value in condition[1]]


def standard_platform(folder: Path, *command: str) -> str:
    """Return the file that `import platform` finds for a program started in the folder."""
    child = subprocess.run(
        [sys.executable, *command], cwd=folder, capture_output=True, text=True, timeout=60, check=True
    )
    return child.stdout.strip()


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(below_repository(path)))
def test_a_file_imports_only_downwards(path: Path) -> None:
    assert wrong_imports(below_repository(path), path.read_text()) == []


def test_no_file_is_too_long() -> None:
    paths = all_files()
    assert {path.relative_to(REPOSITORY).parts[0] for path in paths} >= {"judging", "tests", "benchmarks"}
    assert [line for path in paths for line in too_long(below_repository(path), path.read_text())] == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("judging/services/assign.py", "from sampling.models import Draw"),
        ("judging/services/assign.py", "import analytics.services"),
        ("sampling/services.py", "def late():\n    from analytics import labels"),
        ("sampling/views.py", "from touchstone.settings import VAR"),
        ("judging/views.py", "from touchstone import views"),
        ("analytics/tasks.py", "import touchstone"),
        ("sampling/draws.py", "from touchstone.models import User"),
        ("sampling/draws.py", "from .models import Draw"),
        ("sampling/draws.py", "from . import frames"),
        ("judging/models.py", "from judging.services.assign import claim"),
        ("judging/services/assign.py", "from ..views import page"),
        ("analytics/frames.py", "from sampling.services import draw"),
        ("sampling/services.py", "from sampling.tasks import draw_items"),
        ("judging/services/assign.py", "from judging.serializers import Submission"),
        ("platform/touchstone/models.py", "from judging.models import Campaign"),
        ("platform/touchstone/jobs.py", "from analytics import services"),
        ("analytics/numbers/estimates.py", "from console.researcher import prose"),
        ("judging/views/judge.py", "import console.urls"),
        ("analytics/papers/inverse.py", "from experiments.papers.labels import naive"),
        ("platform/touchstone/views.py", "from console.manager import overview"),
        ("platform/console/api/me.py", "from judging.views import training"),
        ("platform/touchstone/views.py", "from judging.views.judge import home"),
        ("analytics/releases/manifest.py", "from analytics.releases.services import writing"),
        ("analytics/services/estimates.py", "from touchstone_ir import compare"),
        ("judging/trec.py", "import touchstone_ir as ts"),
        ("platform/touchstone/files.py", "from touchstone_ir import read_run"),
        ("touchstone_ir/readers.py", "from judging.services import files"),
        ("touchstone_ir/views.py", "from judging.models import Topic"),
        ("touchstone_ir/client.py", "from touchstone.models import User"),
        ("touchstone_ir/command.py", "from console.researcher import prose"),
    ],
)
def test_a_planted_import_upwards_is_seen(path: str, source: str) -> None:
    assert len(wrong_imports(PurePath(path), source)) == 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("analytics/services.py", "from sampling.draws import poisson_draw\nfrom judging.models import Item"),
        ("judging/models.py", "from touchstone.models import User"),
        ("judging/services/campaigns.py", "from touchstone import jobs\nfrom .errors import Refused"),
        ("judging/management/commands/import.py", "from judging.services import campaigns"),
        ("platform/touchstone/tasks.py", "from analytics.services import start_due_recomputations"),
        ("platform/touchstone/urls.py", "import console.urls"),
        ("platform/console/manager/audits.py", "from console.forms.audits import AuditPlanForm"),
        ("judging/urls.py", "from judging.views import judge"),
        ("sampling/draws.py", "import numpy as np\nfrom sampling.measures.families import FloatArray"),
        (
            "touchstone_ir/results.py",
            "from analytics.estimation import claims\nfrom touchstone_ir import tables",
        ),
        ("platform/touchstone/management/commands/evaluate.py", "from touchstone_ir import evaluate"),
        ("platform/console/researcher/results.py", "import touchstone_ir as ts"),
    ],
)
def test_an_import_downwards_is_allowed(path: str, source: str) -> None:
    assert wrong_imports(PurePath(path), source) == []


def test_a_planted_long_file_is_seen_and_one_at_the_limit_is_not() -> None:
    assert too_long(PurePath("judging/models.py"), "x = 1\n" * LONGEST_FILE) == []
    assert len(too_long(PurePath("judging/models.py"), "x = 1\n" * (LONGEST_FILE + 1))) == 1


def test_folders_of_pure_files_import_each_other_without_a_circle() -> None:
    files = {path: (REPOSITORY / path).read_text() for path in pure_modules()}
    assert len(pure_folders(files)) > 8
    assert circles(pure_folders(files)) == set()
    # The control: one import back closes a circle.
    back = PurePath("sampling/draws.py")
    planted = files | {
        back: files[back] + "\nfrom analytics.estimation.estimators import difference_estimator\n"
    }
    assert {"sampling", "analytics.estimation"} <= circles(pure_folders(planted))


def test_platform_and_tests_are_folders_and_no_packages(tmp_path: Path) -> None:
    assert stray_packages(REPOSITORY) == []
    for folder in ("platform", "tests/judging"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "__init__.py").touch()
    assert [str(path) for path in stray_packages(tmp_path)] == [
        "platform/__init__.py",
        "tests/judging/__init__.py",
    ]


def test_import_platform_finds_the_standard_library(tmp_path: Path) -> None:
    standard = Path(subprocess.__file__).with_name("platform.py")
    program = "import platform; print(platform.__file__)"
    assert Path(standard_platform(REPOSITORY, "-c", program)) == standard
    # The control: the same program in a folder where platform/ is a package finds that instead.
    (tmp_path / "platform").mkdir()
    (tmp_path / "platform" / "__init__.py").touch()
    assert Path(standard_platform(tmp_path, "-c", program)) == tmp_path / "platform" / "__init__.py"


def test_pure_modules_import_without_django_and_celery(tmp_path: Path) -> None:
    names = [module_name(path) for path in pure_modules()]
    assert {"judging.trec", "sampling.designs", "analytics.estimation.estimators", FACADE} <= set(names)
    assert import_without_django(names, REPOSITORY) == ""
    # The control: the same child does see a module that needs Django, even one that hides it from ast.
    (tmp_path / "planted.py").write_text("__import__('d' + 'jango.conf')\n")
    assert "django is blocked" in import_without_django(["planted"], tmp_path)


@pytest.mark.parametrize("path", list(pure_modules()), ids=str)
def test_the_examples_of_a_pure_module_are_right(path: PurePath) -> None:
    assert failed_examples(importlib.import_module(module_name(path))) == 0


def test_a_planted_wrong_example_is_seen(capsys: pytest.CaptureFixture[str]) -> None:
    planted = types.ModuleType("planted", ">>> 1 + 1\n3\n")
    assert failed_examples(planted) == 1
    assert "Expected:\n    3" in capsys.readouterr().out


def test_no_migration_is_missing() -> None:
    assert missing_migrations(ProjectState.from_apps(django_apps)) == {}


def test_a_planted_field_without_a_migration_is_seen() -> None:
    planted = ProjectState.from_apps(django_apps)
    planted.models["judging", "topic"].fields["planted"] = models.IntegerField(null=True)
    assert list(missing_migrations(planted)) == ["judging"]


def test_no_check_of_the_database_lists_the_keys_of_a_registry() -> None:
    registries = {name: set(keys()) for name, (keys, _) in RELEASED.items()}
    state = ProjectState.from_apps(django_apps)
    assert enumerating_checks(state, registries) == []
    # Planted violations: a list, and the same said by "or".
    listed = models.Q(campaign__isnull=True) | models.Q(strategy__in=["simple", "full"])
    either = models.Q(strategy="simple") | models.Q(strategy="full")
    for number, condition in enumerate((listed, either)):
        planted = models.CheckConstraint(name=f"planted_{number}", condition=condition)
        state.models["sampling", "audit"].options["constraints"].append(planted)
    assert enumerating_checks(state, registries) == [
        "planted_0 lists keys of strategies",
        "planted_1 lists keys of strategies",
    ]


@pytest.mark.django_db
def test_makemigrations_agrees_that_none_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("makemigrations", check=True, dry_run=True)
    assert "No changes detected" in capsys.readouterr().out
