"""Which tests cannot share what their module makes: see the fixture `module_world`."""

from collections.abc import Iterable, Iterator

import pytest


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
