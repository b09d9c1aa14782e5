import argparse
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from judging.formats import MissingPackageError
from touchstone_ir import evaluate_command
from touchstone_ir.kept_files import require_other_output


class Command(BaseCommand):
    help = evaluate_command.DESCRIPTION
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        evaluate_command.add_arguments(parser)

    def handle(self, **options: Any) -> None:
        try:
            require_other_output(options)
            evaluate_command.run(argparse.Namespace(**options), self.stdout.write)
        except (OSError, ValueError, MissingPackageError) as error:
            raise CommandError(str(error)) from error
