"""How many SQL statements a page or a read of the API takes: twelve at most but for five, as whoever may see it."""

from typing import Any

import pytest
from django.db import connection, reset_queries
from django.test import Client
from django.test.utils import CaptureQueriesContext
from worlds import Route, World, make_user, make_world, routes

from touchstone.models import User

pytestmark = pytest.mark.django_db(transaction=True)

MOST = 12
NOT_FOR_PEOPLE = {"readyz", "metrics"}  # they try what the product rests on, part by part
PAGES = ("text/html", "application/json")  # files to download are read otherwise
# These take more, in the campaign of this test too; none may take more than that.
ABOVE = {
    "console:campaign": 15,
    "console:reuse": 31,
    "console:api-estimates": 18,
    "console:api-comparisons": 15,
    "console:api-planner": 14,
}


@pytest.fixture
def world(tmp_path: Any) -> World:
    return make_world(tmp_path, [make_user("mia", "manager"), make_user("rhea", "researcher")], "bob")


def test_a_page_or_a_read_takes_twelve_statements_at_most(world: World) -> None:
    n_pages = 0
    over: list[str] = []
    for name in ("mia", "rhea", "bob"):
        client = Client(raise_request_exception=False)
        client.force_login(User.objects.get(username=name))
        for route in (one for one in routes() if one.name not in NOT_FOR_PEOPLE):
            taken = _statements(client, route, world)
            n_pages += taken is not None
            if taken is not None and len(taken) > ABOVE.get(route.name, MOST):
                over.append(f"{name}, {route}: {len(taken)}\n    " + "\n    ".join(taken))
            if route.name == "logout":
                client.force_login(User.objects.get(username=name))
    assert not over, "\n".join(over)
    assert n_pages > 200


def _statements(client: Client, route: Route, world: World) -> list[str] | None:
    """Return the beginnings of a page's statements; None where there is no page for who asks."""
    reset_queries()
    with CaptureQueriesContext(connection) as queries:
        answer = client.get(world.address(route))
        answer.close()
    if answer.status_code != 200 or not answer.headers["Content-Type"].startswith(PAGES):
        return None
    return [str(query["sql"])[:160] for query in queries]
