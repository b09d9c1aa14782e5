"""List the pure modules: text and arithmetic, importable without Django and Celery. Tests and the wheel go by it."""

from collections.abc import Iterator
from pathlib import Path, PurePath

REPOSITORY = Path(__file__).resolve().parents[1]
APPS = ("judging", "sampling", "analytics")
FACADE = "touchstone_ir"  # what the wheel shows of the three: right of them, and pure as a whole
# From left to right: a package imports only from itself and from those to its left.
PACKAGES = (*APPS, FACADE)
# These names belong to Django; every other file of an app is pure.
DJANGO_NAMES = {
    "models",
    "frames",
    "services",
    "serializers",
    "views",
    "tasks",
    "admin",
    "urls",
    "apps",
    "forms",
}
DJANGO_NAMES |= {"migrations", "management", "templates", "static"}
# What pure modules do without: servers, their clients, and what stands on the packages.
BLOCKED = ("django", "celery", "kombu", "rest_framework", "psycopg", "redis", "touchstone", "console")


def is_pure(path: PurePath) -> bool:
    """Return whether the file, given below the repository, must do without Django.

    >>> is_pure(PurePath("sampling/draws.py")), is_pure(PurePath("judging/services/assign.py"))
    (True, False)
    """
    if path.suffix != ".py" or path.parts[0] not in PACKAGES:
        return False
    return path.parts[0] == FACADE or DJANGO_NAMES.isdisjoint(path.with_suffix("").parts)


def pure_modules(root: Path = REPOSITORY) -> Iterator[PurePath]:
    """Yield the paths of the pure modules, relative to `root`, sorted."""
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            if is_pure(path.relative_to(root)):
                yield path.relative_to(root)


def module_name(path: PurePath) -> str:
    """Return the dotted name under which Python imports the file.

    >>> module_name(PurePath("sampling/draws.py")), module_name(PurePath("judging/services/__init__.py"))
    ('sampling.draws', 'judging.services')
    """
    parts = path.with_suffix("").parts
    if parts[0] == "platform":
        parts = parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
