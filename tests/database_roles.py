"""The database's roles on the tests' database, and tests that log in as one of them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from django.db import connection

from touchstone import roles
from touchstone.settings import database_from_url


def make(passwords: dict[str, str]) -> None:
    """Make the roles and give them their rights, as `prepare` does."""
    with connection.cursor() as cursor:
        roles.make_roles(cursor, passwords)
        roles.take_over(cursor)
        roles.give_rights(cursor)


def session(servers: Any, role: str) -> psycopg.Connection[Any]:
    """Return a connection to the tests' database as the product makes it for the role: it sends what Django sends."""
    settings: dict[str, Any] = database_from_url(servers.url_of(role))
    sent: Any = {**settings["OPTIONS"], "dbname": connection.settings_dict["NAME"]}
    for name in ("HOST", "PORT", "USER", "PASSWORD"):
        sent[name.lower()] = settings[name]
    return psycopg.connect(**sent, autocommit=True)


@contextmanager
def logged_in(servers: Any, role: str) -> Iterator[None]:
    """Let every connection of this process, also those of threads, be the role's; afterwards the owner's again."""
    before = dict(connection.settings_dict)
    connection.close()
    as_role = database_from_url(servers.url_of(role))
    connection.settings_dict.update({name: as_role[name] for name in ("USER", "PASSWORD", "OPTIONS")})
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict.update(before)
