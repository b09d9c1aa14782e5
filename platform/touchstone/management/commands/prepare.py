"""`manage.py prepare`: bring database and static files up to date, once, before web and workers start."""

from argparse import ArgumentParser
from typing import Any

from django.core.management import call_command
from django.core.management.base import BaseCommand


class Command(BaseCommand):
    help = "Migrate the database and collect the static files; with --demo, load the demo as well."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--demo", action="store_true", help="load the demo where it is not loaded yet")
        parser.add_argument(
            "--collection", help="for the demo: a folder to load instead of the standard library"
        )

    def handle(self, *args: Any, demo: bool, collection: str | None, **options: Any) -> None:
        self.stdout.write("Preparing the database ...")
        self.stdout.flush()
        call_command("migrate", verbosity=0, interactive=False)
        call_command("collectstatic", verbosity=0, interactive=False)
        if demo:
            call_command("load_demo", collection=collection)
