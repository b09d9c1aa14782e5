"""Real servers for every test run: a throw-away PostgreSQL and Redis, one pair per test process."""

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

# Before Django reads its settings (pyproject.toml names none, so that pytest-django does not read them earlier):
# tests never touch a stack that runs on this machine, nor its data.
_FOLDER = Path(tempfile.mkdtemp(prefix="touchstone-test-"))
os.environ["TOUCHSTONE_VAR"] = str(_FOLDER / "var")
os.environ["DJANGO_SETTINGS_MODULE"] = "touchstone.settings"
for _name in (
    "DATABASE_URL",
    "REDIS_URL",
    "SECRET_KEY",
    "HTTPS",
    "DEBUG",
    "TOUCHSTONE_DEMO",
    "TOUCHSTONE_STACK",
):
    os.environ.pop(_name, None)

import shutil  # noqa: E402

import django  # noqa: E402
import pytest  # noqa: E402
from django.conf import settings  # noqa: E402
from django.core.management import call_command  # noqa: E402

django.setup()
# A test process of xdist inherits this one's environment: named there, the settings would be read before this file.
del os.environ["DJANGO_SETTINGS_MODULE"]

from touchstone import embedded  # noqa: E402
from touchstone.celery import app  # noqa: E402
from touchstone.settings import database_from_url  # noqa: E402


@pytest.fixture(scope="session")
def servers() -> Iterator[embedded.Servers]:
    running = embedded.Servers(_FOLDER / "servers")
    running.start()
    try:
        yield running
    finally:
        running.stop()
        shutil.rmtree(_FOLDER, ignore_errors=True)


@pytest.fixture(scope="session")
def django_db_modify_db_settings(servers: embedded.Servers) -> None:
    """Point Django and Celery at the throw-away servers before pytest-django makes the test database."""
    from django.db import connections

    settings.DATABASES["default"].update(database_from_url(servers.database_url))
    connections["default"].settings_dict.update(database_from_url(servers.database_url))
    settings.REDIS_URL = app.conf.broker_url = servers.redis_url


@pytest.fixture(scope="session", autouse=True)
def static_files(request: pytest.FixtureRequest) -> None:
    """Pages name static files by their hash: collect them once, if any test shows a page."""
    if any("django_db" in item.keywords for item in request.session.items):
        call_command("collectstatic", interactive=False, verbosity=0)


@pytest.fixture(scope="session")
def child_environment(servers: embedded.Servers, django_db_setup: None) -> dict[str, str]:
    """The environment in which a child process (web, worker, a command) uses the tests' database and Redis.

    A child sees only what is committed: its test needs `django_db(transaction=True)`.
    """
    name = settings.DATABASES["default"]["NAME"]
    return {
        **os.environ,
        "DATABASE_URL": servers.database_url.rpartition("/")[0] + f"/{name}",
        "REDIS_URL": servers.redis_url,
        "SECRET_KEY": settings.SECRET_KEY,
        "HTTPS": "0",
        "DJANGO_SETTINGS_MODULE": "touchstone.settings",
    }
