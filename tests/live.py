"""The real web server with somebody who does its jobs, for tests of programs that are not ours: clients, notebooks."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from browser import served
from django.db import connection

import analytics.tasks  # noqa: F401
import judging.tasks  # noqa: F401
import sampling.tasks  # noqa: F401 (all three: the kinds of job are registered)
from touchstone import jobs
from touchstone.authentication import make_token
from touchstone.models import Job, User

PAUSE = 0.05  # seconds between two looks for work


@contextmanager
def stack(environment: dict[str, str]) -> Iterator[str]:
    """Give the address of the web server, with a worker at its side. Its test is of `django_db(transaction=True)`."""
    stop = threading.Event()
    worker = threading.Thread(target=_work, args=[stop], name="worker", daemon=True)
    worker.start()
    try:
        with served(environment) as address:
            yield address
    finally:
        stop.set()
        worker.join(60)


def _work(stop: threading.Event) -> None:
    """Do what is queued, as a worker does; on a connection of its own."""
    try:
        while not stop.wait(PAUSE):
            queued = Job.objects.filter(state=Job.State.QUEUED).order_by("created_at")
            for key in list(queued.values_list("pk", flat=True)):
                jobs.run(key)
    finally:
        connection.close()


def key_of(username: str, role: str = "assessor") -> str:
    """Return a key of the user, who is made if need be."""
    user, _ = User.objects.get_or_create(username=username, defaults={"role": role})
    return make_token(user=user, name="test", days=1)[1]
