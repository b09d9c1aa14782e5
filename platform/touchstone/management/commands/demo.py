"""`manage.py demo`: the stack with a real collection in it, one campaign to judge and one that is judged already."""

import json
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from judging.import_table import import_table
from judging.services.errors import ImportRefused
from judging.services.folder_imports import parse_settings
from judging.services.looking import obstacles
from touchstone.demo.own_collection import look_for_demo, missing
from touchstone.management.commands.stack import MANAGE, line_writer, run_stack
from touchstone.processes import Program
from touchstone.views import DEMO_LOGINS


class Command(BaseCommand):
    help = "Start everything with a demo collection; prints the address and one login per role. Ctrl-C stops all."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--collection", help="a folder or zip with documents, topics, and perhaps gold and runs"
        )
        parser.add_argument(
            "--set",
            action="append",
            default=[],
            dest="settings_of_files",
            metavar="FILE:OPTION=VALUE",
            help="what a file of the collection is or how it is read, as in import_collection",
        )
        parser.add_argument("--port", type=int, default=8000, help="port of the web pages (default 8000)")

    def handle(
        self, *args: Any, collection: str | None, settings_of_files: list[str], port: int, **options: Any
    ) -> None:
        preparation = ["--demo"]
        if collection:
            self._look(Path(collection), settings_of_files)
            preparation += ["--collection", str(Path(collection).resolve())]
            preparation += [f"--set={setting}" for setting in settings_of_files]
        programs = Program("simulated", [sys.executable, MANAGE, "load_demo", "--judge"])
        run_stack(
            port, line_writer(self.stdout), preparation, self._welcome, {"TOUCHSTONE_DEMO": "1"}, [programs]
        )

    def _look(self, path: Path, given: list[str]) -> None:
        """Say what is in the collection, before any server starts; refuse what cannot be loaded."""
        try:
            cards, _ = look_for_demo(path, parse_settings(given))
        except ImportRefused as refusal:
            raise CommandError(str(refusal), returncode=2) from refusal
        self.stdout.write("\n".join(import_table(cards)))
        if found := [*obstacles(cards), *missing(cards)]:
            raise CommandError("\n".join(found), returncode=2)

    def _welcome(self, address: str) -> None:
        logins = json.loads((settings.VAR / DEMO_LOGINS).read_text())
        self.stdout.write(f"\n  Touchstone runs at {address}   (Ctrl-C stops everything)\n")
        for login in logins:
            self.stdout.write(f"  {login['role']:<14} {login['username']:<8} password {login['password']}")
        self.stdout.write("\n  The login page has a button for each of them.")
        self.stdout.write("  Simulated assessors judge two of the campaigns from now on, for some minutes.\n")
        self.stdout.flush()
