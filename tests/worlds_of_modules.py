"""Which tests share what their module makes, and which cannot: see the fixture `module_world`."""

from collections.abc import Iterable, Iterator
from functools import cache

import pytest

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


def kept_together(items: Iterable[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield the tests of modules that make something once: on two test processes it would be made twice.

    That is a fixture of the module, or a function that keeps its results. Tests that name a group keep theirs.
    """
    for item in items:
        if item.get_closest_marker("xdist_group") is None and (
            _has_module_fixture(item) or _keeps_results(item)
        ):
            yield item


def _has_module_fixture(item: pytest.Item) -> bool:
    found = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    return any(one.scope == "module" for fixtures in found.values() for one in fixtures)


def _keeps_results(item: pytest.Item) -> bool:
    """Whether a function of the test's own file has `functools.cache` or `lru_cache` around it."""
    module = getattr(item, "module", None)
    own = [one for one in vars(module).values() if isinstance(one, KEPT)] if module else []
    return any(one.__module__ == module.__name__ for one in own)
