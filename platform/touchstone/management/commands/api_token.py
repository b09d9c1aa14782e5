"""`manage.py api_token`: a key for a program whose account nobody logs in to."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from judging.services.errors import Refused
from touchstone.authentication import make_token
from touchstone.models import User, all_scopes
from touchstone.token_pages import LONGEST_LIFE


class Command(BaseCommand):
    help = "Make a key with which a program works in a user's name; it is printed once, and nobody can look it up."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--name", required=True, help="what the key is for")
        parser.add_argument("--days", type=int, default=90, help="how long it is valid (default: 90)")

        parser.add_argument(
            "--scopes",
            nargs="+",
            choices=all_scopes(),
            default=all_scopes(),
            help="what it may do (default: all)",
        )

    def handle(self, *, username: str, name: str, days: int, scopes: list[str], **options: Any) -> None:
        user = User.objects.filter(username=username, is_active=True).first()
        if user is None:
            raise CommandError(f"there is no user {username!r}")
        if not 1 <= days <= LONGEST_LIFE:
            raise CommandError(f"a key is valid for 1 to {LONGEST_LIFE} days")
        if not 1 <= len(name) <= 100:
            raise CommandError("a key's name has 1 to 100 characters")
        try:
            _, key = make_token(user=user, name=name, days=days, scopes=scopes)
        except Refused as refusal:
            raise CommandError(refusal.title) from refusal
        self.stdout.write(key)
