"""Which tests share what their module makes, and which cannot: see the fixture `module_world`."""

import inspect
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import pytest

TESTS = Path(__file__).parent
KEPT = type(cache(repr))


def commits(item: pytest.Item) -> bool:
    """Return whether the test commits: a transaction around it would hide its rows from others, and never end."""
    mark = item.get_closest_marker("django_db")
    has_mark = mark is not None and bool(mark.kwargs.get("transaction") or mark.args[:1] == (True,))
    return has_mark or bool({"transactional_db", "live_server"} & set(getattr(item, "fixturenames", ())))


def wrongly_shared(items: Iterable[pytest.Item]) -> Iterator[str]:
    """Yield the tests that commit and have asked for a world of their module."""
    for item in items:
        if "module_world" in getattr(item, "fixturenames", ()) and commits(item):
            yield item.nodeid


def group_of(item: pytest.Item) -> str | None:
    """Return what the test shares with others that is made once: on two test processes it would be made twice.

    That is a fixture of its module, or a function that keeps its results, of its module or of one it imports from here.
    Tests that name a group keep theirs.
    """
    if item.get_closest_marker("xdist_group"):
        return None
    return next(_keeping(item), None) or (str(item.path) if _has_module_fixture(item) else None)


def _keeping(item: pytest.Item) -> Iterator[str]:
    """Yield the names of files of tests whose functions with `functools.cache` or `lru_cache` the test's module has."""
    for one in vars(getattr(item, "module", None) or SimpleNamespace()).values():
        if isinstance(one, KEPT) and Path(inspect.getfile(one.__wrapped__)).is_relative_to(TESTS):
            yield inspect.getfile(one.__wrapped__)


def _has_module_fixture(item: pytest.Item) -> bool:
    found = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    return any(one.scope == "module" for fixtures in found.values() for one in fixtures)
