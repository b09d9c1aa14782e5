"""`manage.py stack`: the whole product on this machine, embedded servers included, until Ctrl-C."""

import contextlib
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

from touchstone import embedded, front, lanes
from touchstone.processes import Program, StackError, patience

# docker-compose.yml runs the same; a test compares them. There are two web processes behind the front door: one that is
# killed takes half of the site. Each has loaded all before its port is there: whoever reaches it is answered.
WEB = [
    "gunicorn",
    "touchstone.wsgi",
    "--workers",
    "1",
    "--preload",
    "--threads",
    "4",
    "--keep-alive",
    "75",
    "--timeout",
    "60",
    "--max-requests",
    "20000",
    "--no-control-socket",
    "--logger-class",
    "touchstone.gunicorn_log.Log",
]
N_WEB = 2
WORKER = ["celery", "-A", "touchstone", "worker", "--concurrency", "1", "--loglevel", "info"]
# Short jobs have a process of their own; the other one does numbers and long jobs in turn.
LANES_OF = {"worker": (lanes.NUMBERS, lanes.HEAVY), "quick": (lanes.QUICK,)}
BEAT = ["celery", "-A", "touchstone", "beat", "--loglevel", "info"]

METRICS = ["manage.py", "metrics"]
MANAGE = str(Path(__file__).resolve().parents[4] / "manage.py")
PORTS_TRIED = 5


@dataclass
class Web(Program):
    """The web process, on its port or, where somebody else has taken that in the meantime, on another."""

    port: int = 8000
    stack: str = field(default_factory=lambda: secrets.token_hex(8))
    say: Callable[[str], None] = lambda line: None  # to whoever waits for it

    def __post_init__(self) -> None:
        self.environment = {**self.environment, "TOUCHSTONE_STACK": self.stack}
        self.ready = self._until_it_answers
        self._bind(self.port)

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def _bind(self, port: int) -> None:
        self.port, self.command = port, _module(WEB, "--bind", f"127.0.0.1:{port}")

    def _lives(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def _until_it_answers(self) -> None:
        with patience(self.say):
            self._on_some_port()

    def _on_some_port(self) -> None:
        for _ in range(PORTS_TRIED):
            try:
                return embedded.answers(f"{self.address}livez", self.stack, self._lives)()
            except StackError:
                if self._lives() or embedded.is_free(self.port):
                    raise
                self._bind(embedded.free_port())
                self.start(settings.VAR / "log")
        raise StackError(f"{PORTS_TRIED} ports were taken, one after the other")


@dataclass
class Front(Web):
    """The front door, on the port that people know, before the web processes."""

    upstreams: Sequence[Web] = ()
    welcome: Callable[[str], None] = lambda address: None

    def __post_init__(self) -> None:
        super().__post_init__()
        self.ready = self._until_people_are_served

    def _until_people_are_served(self) -> None:
        self._until_it_answers()
        self.welcome(self.address)

    def _bind(self, port: int) -> None:
        self.port, self.command = port, front.command()

    def start(self, log_folder: Path) -> None:
        address = f"http://:{self.port}"
        places = [web.place for web in self.upstreams]
        self.environment |= front.environment(address, places, settings.VAR / "front", bind="127.0.0.1")
        super().start(log_folder)


@dataclass
class Metrics(Program):
    """The process that Prometheus asks; it looks after the pages where they are."""

    web: Web | None = None

    def start(self, log_folder: Path) -> None:
        if self.web is not None:
            self.environment = {**self.environment, "METRICS_SITE": self.web.address}
        super().start(log_folder)


def run_stack(
    port: int,
    say: Callable[[str], None],
    preparation: Sequence[str],
    welcome: Callable[[str], None],
    environment_of_web: dict[str, str] | None = None,
    more: Sequence[Program] = (),
) -> None:
    """Start the servers, prepare the database, then run web, workers, beat and `more` until SIGINT or SIGTERM.

    `welcome` gets the address when the first page can be asked for: what serves nobody yet starts after that.
    """
    root = settings.VAR
    embedded.stoppable()
    try:
        say("Starting PostgreSQL and Redis ...")
        with contextlib.ExitStack() as running:
            with patience(say):
                servers = running.enter_context(embedded.stack(root))
            _prepare(preparation)
            say("Starting the web pages, the workers and the scheduler ...")
            port = port if embedded.is_free(port) else embedded.free_port()
            (first, *others), door = site(port, environment_of_web or {})
            first.say = door.say = say
            door.welcome = welcome
            programs = [first, door, *others, *_background(), *_metrics(door), *more]
            embedded.supervise(root, servers, programs, say)
    except embedded.Stop:
        say(f"Stopped. Your data stay in {root}.")
    except StackError as error:
        raise CommandError(str(error)) from error


def site(port: int, environment: dict[str, str]) -> tuple[list[Web], Front]:
    """Return the web processes, and the front door that serves them on this port."""
    mark, theirs = secrets.token_hex(8), {"TRUSTED_PROXIES": "1", **environment}
    webs = [Web(f"web-{n}", [], theirs, port=embedded.free_port(), stack=mark) for n in range(1, N_WEB + 1)]
    return webs, Front("front", [], port=port, stack=mark, upstreams=webs)


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


def worker_command(name: str) -> list[str]:
    """Return the command of a worker, with its lanes and the name by which Celery tells it from the others."""
    return [*WORKER, "--queues", ",".join([*LANES_OF[name], lanes.TICK]), "--hostname", f"{name}@%h"]


def _background() -> list[Program]:
    beat_schedule = str(settings.VAR / "beat")
    role = {"TOUCHSTONE_ROLE": "worker"}
    programs = [
        *(Program(name, _module(worker_command(name)), role) for name in LANES_OF),
        Program("beat", _module(BEAT, "--schedule", beat_schedule, "--pidfile", "")),
    ]
    if settings.BACKUP:
        programs.append(Program("backup", [sys.executable, MANAGE, "backup", settings.BACKUP, "--daily"]))
    return programs


def _metrics(web: Web) -> list[Program]:
    if not settings.METRICS_BIND:
        return []
    return [Metrics("metrics", [sys.executable, MANAGE, *METRICS[1:]], web=web)]


class Command(BaseCommand):
    help = "Run PostgreSQL, Redis, web, worker, beat and metrics on this machine until Ctrl-C."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=8000, help="port of the web pages (default 8000)")

    def handle(self, *args: Any, port: int, **options: Any) -> None:
        def welcome(address: str) -> None:
            self.stdout.write(f"Touchstone runs at {address}   (Ctrl-C stops everything)")
            self.stdout.flush()
            # In a process of its own, which reads the servers' addresses; the site's is known by now.
            subprocess.run(
                [sys.executable, MANAGE, "invite", "--role", "manager", "--if-none", "--site", address]
            )

        run_stack(port, line_writer(self.stdout), ["--no-link"], welcome)
