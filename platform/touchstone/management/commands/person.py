"""`manage.py person`: everything that is held about somebody as a file, and their erasure."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from touchstone.models import User
from touchstone.people.erasing import CannotErase, erase, releases_of
from touchstone.people.exporting import export


class Command(BaseCommand):
    help = (
        "Export everything that the system holds about a person, or erase the person: the account becomes erased-17 "
        "(17 is its number), texts lose the names, judgments keep their pseudonym. docs/privacy.md has the details."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", help="the user name; of somebody who was erased also the number")
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--export", type=Path, metavar="FILE.zip", help="write the file; it must not exist")
        what.add_argument("--erase", action="store_true", help="erase the person, for ever")
        parser.add_argument("--comments", action="store_true", help="erase the comments of the judgments too")
        parser.add_argument(
            "--also", nargs="+", default=[], metavar="WORD", help="more words that name the person in texts"
        )

    def handle(self, *, user: str, comments: bool, also: list[str], **options: Any) -> None:
        found = User.objects.filter(username=user).first()
        if found is None and user.isdecimal():
            found = User.objects.filter(pk=int(user)).first()
        if found is None:
            raise CommandError(f"there is no user {user!r}")
        if options["export"] is not None:
            if comments or also:
                raise CommandError("--comments and --also belong to --erase")
            self._export(found, options["export"])
        else:
            self._erase(found, comments, also)

    def _export(self, user: User, path: Path) -> None:
        try:
            names = export(user, path)
        except FileExistsError as error:
            raise CommandError(f"{path} is there already") from error
        except OSError as error:
            raise CommandError(f"{path} cannot be written: {error.strerror}") from error
        self.stdout.write(f"{path}: {', '.join(names)}. Only its owner can read the file.")

    def _erase(self, user: User, comments: bool, also: list[str]) -> None:
        try:
            done = erase(user, comments=comments, also=also, say=self.stdout.write)
        except CannotErase as error:
            raise CommandError(str(error)) from error
        texts = ", ".join(f"{table} {n:,}" for table, n in sorted(done.texts.items()) if n)
        self.stdout.write(f"The account is {done.name} now. Texts that lost a name: {texts or 'none'}.")
        if comments:
            self.stdout.write(f"Comments erased: {done.comments:,}.")
        for table, column, n in done.left:
            self.stdout.write(f"Not touched: {n:,} rows of {table} have one of the words in {column}.")
        for release, names in releases_of(user):
            where = f"{release.campaign.name}, release {release.version}"
            if names:
                self.stdout.write(
                    f"{where} holds {', '.join(names)}. The file stays as it was published; on the release's page "
                    "“Forget the key” cuts the link to the account, of all assessors in it."
                )
            else:
                self.stdout.write(f"{where}: its key is forgotten, nothing links it to the account.")
