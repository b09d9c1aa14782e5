"""`manage.py stack`: the whole product on this machine, embedded servers included, until Ctrl-C."""

import os
import socket
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from touchstone import embedded
from touchstone.embedded import Program

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
# Whoever starts the demo may have a real server's address in the environment: the embedded stack ignores it.
OUTSIDE = ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "HTTPS")


def run_stack(
    port: int, say: Callable[[str], None], preparation: Sequence[str], welcome: Callable[[str], None]
) -> None:
    """Start the servers, prepare the database, then run web, worker and beat until SIGINT or SIGTERM."""
    for name in OUTSIDE:
        os.environ.pop(name, None)
    root = settings.VAR
    embedded.stoppable()
    try:
        with embedded.stack(root) as servers:
            _prepare(preparation)
            port = port if _is_free(port) else embedded.free_port()
            embedded.supervise(
                root, servers, _programs(port), say, lambda: welcome(f"http://127.0.0.1:{port}/")
            )
    except embedded.Stop:
        say(f"Stopped. Your data stay in {root}.")
    except embedded.StackError as error:
        raise CommandError(str(error)) from error


def _prepare(arguments: Sequence[str]) -> None:
    """Run `manage.py prepare` in a process of its own, which reads the addresses of the servers just started."""
    result = subprocess.run([sys.executable, MANAGE, "prepare", *arguments])
    if result.returncode:
        raise embedded.StackError("the database could not be prepared; the reason stands above")


def _programs(port: int) -> list[Program]:
    def module(command: list[str], *more: str) -> list[str]:
        return [sys.executable, "-m", *command, *more]

    beat_schedule = str(settings.VAR / "beat")
    return [
        Program(
            "web",
            module(WEB, "--bind", f"127.0.0.1:{port}"),
            ready=embedded.answers(f"http://127.0.0.1:{port}/livez"),
        ),
        Program("worker", module(WORKER), {"TOUCHSTONE_ROLE": "worker"}),
        Program("beat", module(BEAT, "--schedule", beat_schedule, "--pidfile", "")),
    ]


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


class Command(BaseCommand):
    help = "Run PostgreSQL, Redis, web, worker and beat on this machine until Ctrl-C."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=int, default=8000, help="port of the web pages (default 8000)")

    def handle(self, *args: Any, port: int, **options: Any) -> None:
        def welcome(address: str) -> None:
            self.stdout.write(f"Touchstone runs at {address}   (Ctrl-C stops everything)")
            self.stdout.flush()

        run_stack(port, self.stdout.write, [], welcome)
