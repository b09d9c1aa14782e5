"""Real servers for every test run: a throw-away PostgreSQL and Redis, one pair per test process."""

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

# Before Django reads its settings (pyproject.toml names none, so that pytest-django does not read them earlier):
# tests never touch a stack that runs on this machine, nor its data.
_FOLDER = Path(tempfile.mkdtemp(prefix="touchstone-test-"))
os.environ["TOUCHSTONE_VAR"] = str(_FOLDER / "var")
os.environ["DJANGO_SETTINGS_MODULE"] = "touchstone.settings"
for _name in (
    "DATABASE_URL",
    "DATABASE_OWNER_URL",
    "READ_DATABASE_URL",
    "REDIS_URL",
    "SECRET_KEY",
    "HTTPS",
    "DEBUG",
    "TOUCHSTONE_DEMO",
    "TOUCHSTONE_STACK",
    # Processes that tests start share what is compiled: half a second less for each.
    "PYTHONDONTWRITEBYTECODE",
):
    os.environ.pop(_name, None)

import shutil  # noqa: E402

import django  # noqa: E402
import hypothesis  # noqa: E402
import pytest  # noqa: E402
from django.conf import settings  # noqa: E402
from django.core.management import call_command  # noqa: E402
from serverless import needs_server  # noqa: E402
from worlds_of_modules import group_of, wrongly_shared  # noqa: E402

# How long an example takes is no test: a busy machine is no fault of the code.
hypothesis.settings.register_profile("patient", hypothesis.settings.default, deadline=None)
hypothesis.settings.load_profile("patient")

django.setup()
# A test process of xdist inherits this one's environment: named there, the settings would be read before this file.
del os.environ["DJANGO_SETTINGS_MODULE"]

import quick_flush  # noqa: E402
import quick_static  # noqa: E402

from touchstone.celery import app  # noqa: E402
from touchstone.settings import database_from_url  # noqa: E402

quick_static.install()

if TYPE_CHECKING:
    from pytest_django.plugin import DjangoDbBlocker

    from touchstone.embedded import Servers


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--fast",
        action="store_true",
        help="only the files that need no server and no browser, without slow tests",
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Under `--fast`, leave out every file that needs a server, and folders of such files, before they are imported."""
    is_test = collection_path.is_dir() or collection_path.match("test_*.py")
    return True if config.getoption("fast") and is_test and needs_server(collection_path) else None


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if wrong := list(wrongly_shared(items)):
        raise pytest.UsageError(
            f"these commit, and cannot share a world with their module: {', '.join(wrong)}"
        )
    if config.getoption("fast"):
        slow = [item for item in items if item.get_closest_marker("slow")]
        config.hook.pytest_deselected(items=slow)
        items[:] = [item for item in items if item not in slow]
    for item in items:
        if group := group_of(item):
            item.add_marker(pytest.mark.xdist_group(Path(group).relative_to(Path(__file__).parent)))


def close_browser() -> None:
    if "browser" in sys.modules:
        sys.modules["browser"].close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Stop the shared Chromium after the last browser test in a row: its event loop would be in others' way."""
    yield
    if item.get_closest_marker("browser") and nextitem and not nextitem.get_closest_marker("browser"):
        close_browser()


@pytest.fixture(scope="session")
def servers() -> Iterator["Servers"]:
    # Imported late: `--fast` runs where the embedded servers are not installed.
    from touchstone import embedded

    running = embedded.Servers(_FOLDER / "servers")
    # What a power cut would lose is not tested on this pair, and a killed process loses nothing of what it has handed
    # to the system: no waiting for the disk. Tests of faults start servers of their own, with the product's settings.
    running.postgres.command += ["--fsync=off", "--full_page_writes=off"]
    running.start()
    try:
        yield running
    finally:
        running.stop()
        shutil.rmtree(_FOLDER, ignore_errors=True)


@pytest.fixture(scope="session")
def django_db_modify_db_settings(servers: "Servers") -> None:
    """Point Django and Celery at the throw-away servers before pytest-django makes the test database."""
    from django.db import connections

    settings.DATABASES["default"].update(database_from_url(servers.database_url))
    connections["default"].settings_dict.update(database_from_url(servers.database_url))
    quick_flush.install()
    settings.REDIS_URL = servers.redis_url
    app.conf.update(broker_url=servers.redis_url)


@pytest.fixture(scope="session")
def made_roles(servers: "Servers", django_db_setup: None, django_db_blocker: "DjangoDbBlocker") -> None:
    """The roles as which the product logs in, on the tests' database; tests run as the owner all the same."""
    import database_roles

    with django_db_blocker.unblock():
        database_roles.make(servers.passwords)


@pytest.fixture(scope="module")
def module_world(django_db_setup: None, django_db_blocker: "DjangoDbBlocker") -> Iterator[None]:
    """One transaction around a module's tests: what a fixture of the module makes in it, each test finds unchanged.

    Every test's own transaction is a savepoint within. A fixture gives the tests copies of the objects (`deepcopy`):
    a rollback takes back rows, no attributes. It is not for tests that commit.
    """
    from django.db import transaction

    around = transaction.atomic()
    around._from_testcase = True  # type: ignore[attr-defined]  # as Django's own: `atomic(durable=True)` is allowed within
    with django_db_blocker.unblock(), around:
        yield
        transaction.set_rollback(True)


@pytest.fixture(autouse=True)
def one_request_id(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers are compared byte by byte: give every request one id, but where ids are tested (`own_ids`)."""
    if "own_ids" not in request.fixturenames:
        monkeypatch.setattr("touchstone.traffic.new_id", lambda: "0" * 32)


@pytest.fixture
def own_ids() -> None:
    """Ask for requests with the product's own ids."""


@pytest.fixture(scope="session", autouse=True)
def static_files(request: pytest.FixtureRequest) -> None:
    """Pages name static files by their hash: collect them once, if any test shows a page."""
    items = request.session.items
    if any("django_db" in item.keywords or "db" in getattr(item, "fixturenames", ()) for item in items):
        call_command("collectstatic", interactive=False, verbosity=0)


@pytest.fixture(scope="session")
def child_environment(servers: "Servers", django_db_setup: None) -> Iterator[dict[str, str]]:
    """The environment in which a child process (web, worker, a command) uses the tests' database and Redis.

    A child sees only what is committed: its test needs `django_db(transaction=True)`.
    """
    name = settings.DATABASES["default"]["NAME"]
    yield {
        **os.environ,
        "DATABASE_URL": servers.database_url.rpartition("/")[0] + f"/{name}",
        "REDIS_URL": servers.redis_url,
        "SECRET_KEY": settings.SECRET_KEY,
        "HTTPS": "0",
        "JUDGING_REQUESTS": "1000000",  # of a session: programs that judge are faster than people
        "DJANGO_SETTINGS_MODULE": "touchstone.settings",
    }
    close_browser()  # its web servers use the database, which goes next
