"""`manage.py stack`: the whole product on this machine, embedded servers included, until Ctrl-C."""

import secrets
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, OutputWrapper

from touchstone import embedded
from touchstone.processes import Program, StackError

# docker-compose.yml runs the same three; a test compares them.
WEB = [
    "gunicorn",
    "touchstone.wsgi",
    "--workers",
    "2",
    "--threads",
    "4",
    "--timeout",
    "60",
    "--max-requests",
    "20000",
    "--no-control-socket",
]
WORKER = ["celery", "-A", "touchstone", "worker", "--concurrency", "1", "--loglevel", "info"]
BEAT = ["celery", "-A", "touchstone", "beat", "--loglevel", "info"]

MANAGE = str(Path(__file__).resolve().parents[4] / "manage.py")
PORTS_TRIED = 5


@dataclass
class Web(Program):
    """The web process, on its port or, where somebody else has taken that in the meantime, on another."""

    port: int = 8000
    stack: str = field(default_factory=lambda: secrets.token_hex(8))

    def __post_init__(self) -> None:
        self.environment = {**self.environment, "TOUCHSTONE_STACK": self.stack}
        self.ready = self._until_it_answers
        self._bind(self.port)

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def _bind(self, port: int) -> None:
        self.port, self.command = port, _module(WEB, "--bind", f"127.0.0.1:{port}")

    def _lives(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def _until_it_answers(self) -> None:
        for _ in range(PORTS_TRIED):
            try:
                return embedded.answers(f"{self.address}livez", self.stack, self._lives)()
            except StackError:
                if self._lives() or embedded.is_free(self.port):
                    raise
                self._bind(embedded.free_port())
                self.start(settings.VAR / "log")
        raise StackError(f"{PORTS_TRIED} ports were taken, one after the other")


def run_stack(
    port: int,
    say: Callable[[str], None],
    preparation: Sequence[str],
    welcome: Callable[[str], None],
    environment_of_web: dict[str, str] | None = None,
    more: Sequence[Program] = (),
) -> None:
    """Start the servers, prepare the database, then run web, worker, beat and `more` until SIGINT or SIGTERM."""
    root = settings.VAR
    embedded.stoppable()
    try:
        say("Starting PostgreSQL and Redis ...")
        with embedded.stack(root) as servers:
            _prepare(preparation)
            say("Starting the web pages, the worker and the scheduler ...")
            port = port if embedded.is_free(port) else embedded.free_port()
            web = Web("web", [], environment_of_web or {}, port=port)
            embedded.supervise(root, servers, [web, *_background(), *more], say, lambda: welcome(web.address))
    except embedded.Stop:
        say(f"Stopped. Your data stay in {root}.")
    except StackError as error:
        raise CommandError(str(error)) from error


def line_writer(stream: OutputWrapper) -> Callable[[str], None]:
    """Return what writes a line at once, into a file too: whoever waits sees what is being done."""

    def write(line: str) -> None:
        stream.write(line)
        stream.flush()

    return write


def _prepare(arguments: Sequence[str]) -> None:
    """Run `manage.py prepare` in a process of its own, which reads the addresses of the servers just started."""
    result = subprocess.run([sys.executable, MANAGE, "prepare", *arguments])
    if result.returncode:
        raise StackError("the database could not be prepared; the reason stands above")


def _module(command: list[str], *more: str) -> list[str]:
    return [sys.executable, "-m", *command, *more]


def _background() -> list[Program]:
    beat_schedule = str(settings.VAR / "beat")
    return [
        Program("worker", _module(WORKER), {"TOUCHSTONE_ROLE": "worker"}),
        Program("beat", _module(BEAT, "--schedule", beat_schedule, "--pidfile", "")),
    ]


class Command(BaseCommand):
    help = "Run PostgreSQL, Redis, web, worker and beat on this machine until Ctrl-C."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=8000, help="port of the web pages (default 8000)")

    def handle(self, *args: Any, port: int, **options: Any) -> None:
        def welcome(address: str) -> None:
            self.stdout.write(f"Touchstone runs at {address}   (Ctrl-C stops everything)")
            self.stdout.flush()

        run_stack(port, line_writer(self.stdout), [], welcome)
