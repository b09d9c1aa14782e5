"""`manage.py person`: everything that is held about somebody as a file, and their erasure."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from touchstone.models import User
from touchstone.people.erasing import CannotErase, erase, free_name, releases_of
from touchstone.people.exporting import export


class Command(BaseCommand):
    help = (
        "Export everything that the system holds about a person, or erase the person: the account becomes erased-17 "
        "(17 is its number), texts lose the names, judgments keep their pseudonym. docs/privacy.md has the details."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", nargs="?", help="the user name, or the number of the account")
        what = parser.add_mutually_exclusive_group(required=True)
        what.add_argument("--export", type=Path, metavar="FILE.zip", help="write the file; it must not exist")
        what.add_argument("--erase", action="store_true", help="erase the person, for ever")
        what.add_argument(
            "--again",
            type=Path,
            metavar="FILE",
            help="after a restore: erase whoever this file says was erased",
        )
        parser.add_argument("--comments", action="store_true", help="erase the comments of the judgments too")
        parser.add_argument(
            "--also", nargs="+", default=[], metavar="WORD", help="more words that name the person in texts"
        )

    def handle(self, *, user: str | None, comments: bool, also: list[str], **options: Any) -> None:
        if (user is None) != (options["again"] is not None):
            raise CommandError("name the user, or with --again the file alone")
        if not options["erase"] and (comments or also):
            raise CommandError("--comments and --also belong to --erase")
        if options["again"] is not None:
            self._erase_again(options["again"])
        elif options["erase"]:
            self._erase(_user(user or ""), comments, also)
        else:
            self._export(_user(user or ""), options["export"])

    def _erase_again(self, path: Path) -> None:
        wanted: dict[int, bool] = {}
        try:
            for key, *rest in (line.split() for line in path.read_text().splitlines() if line.strip()):
                wanted[int(key)] = "comments" in rest or wanted.get(int(key), False)
        except (OSError, ValueError) as error:
            raise CommandError(f"{path} cannot be read as lines like “17 comments”: {error}") from error
        for user in User.objects.filter(pk__in=wanted).order_by("pk"):
            self._erase(user, wanted[user.pk], [])

    def _note(self, user: User, comments: bool) -> None:
        """Write down who is to be erased again after a restore: a number, no name; otherwise nothing is begun."""
        path = settings.VAR / "erased.txt"
        line = f"{user.pk} comments" if comments else f"{user.pk}"
        try:
            if not path.exists() or line not in path.read_text().splitlines():
                with path.open("a") as file:
                    file.write(f"{line}\n")
        except OSError as error:
            raise CommandError(
                f"Nothing was erased: {path} cannot be written ({error.strerror}), and after a restore nobody would "
                "know whom to erase again. Make it writable; docs/privacy.md says how with Docker Compose."
            ) from error

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
            free_name(user)  # who is refused is not noted
            self._note(user, comments)
            done = erase(user, comments=comments, also=also, say=self.stdout.write)
        except CannotErase as error:
            raise CommandError(str(error)) from error
        texts = ", ".join(f"{table} {n:,}" for table, n in sorted(done.texts.items()) if n)
        self.stdout.write(f"The account is {done.name} now. Texts that lost a name: {texts or 'none'}.")
        if comments:
            self.stdout.write(f"Comments erased: {done.comments:,}.")
        if done.not_sought:
            self.stdout.write(
                f"Not looked for in texts: the market's names {', '.join(done.not_sought)}, which anybody may have "
                "chosen. Run it again with the number and --also for those that name the person."
            )
        for table, column, n in done.left:
            self.stdout.write(f"Not touched: {n:,} rows of {table} have one of the words in {column}.")
        for release, names in releases_of(user):
            where = f"{release.campaign.name}, release {release.version}"
            if names:
                self.stdout.write(
                    f"{where} holds {', '.join(names)}. The file stays as it was published; on the release's page "
                    "“Delete the pseudonym key” cuts the link to the account, for all assessors in it."
                )
            else:
                self.stdout.write(f"{where}: its key is forgotten, nothing links it to the account.")


def _user(name: str) -> User:
    found = User.objects.filter(username=name).first()
    if found is None and name.isdecimal():
        found = User.objects.filter(pk=int(name)).first()
    if found is None:
        raise CommandError(f"there is no user {name!r}")
    return found
