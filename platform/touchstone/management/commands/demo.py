"""`manage.py demo`: the stack with a real collection in it, one campaign to judge and one that is judged already."""

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from touchstone.management.commands.stack import MANAGE, line_writer, run_stack
from touchstone.processes import Program
from touchstone.views import DEMO_LOGINS


class Command(BaseCommand):
    help = "Start everything with a demo collection; prints the address and one login per role. Ctrl-C stops all."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--collection", help="a folder with documents, topics, qrels and runs (TREC, BEIR, Cranfield)"
        )
        parser.add_argument("--port", type=int, default=8000, help="port of the web pages (default 8000)")

    def handle(self, *args: Any, collection: str | None, port: int, **options: Any) -> None:
        if collection and not Path(collection).is_dir():
            raise CommandError(f"{collection} is not a folder")

        preparation = ["--demo", *(["--collection", str(Path(collection).resolve())] if collection else [])]
        programs = Program("simulated", [sys.executable, MANAGE, "load_demo", "--judge"])
        run_stack(
            port, line_writer(self.stdout), preparation, self._welcome, {"TOUCHSTONE_DEMO": "1"}, [programs]
        )

    def _welcome(self, address: str) -> None:
        logins = json.loads((settings.VAR / DEMO_LOGINS).read_text())
        self.stdout.write(f"\n  Touchstone runs at {address}   (Ctrl-C stops everything)\n")
        for login in logins:
            self.stdout.write(f"  {login['role']:<14} {login['username']:<8} password {login['password']}")
        self.stdout.write("\n  The login page has a button for each of them.")
        self.stdout.write("  Simulated assessors judge two of the campaigns from now on, for some minutes.\n")
        self.stdout.flush()
