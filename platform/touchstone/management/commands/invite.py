"""`manage.py invite`: a link to an account, for whoever sets a server up, before there is a manager."""

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.core.validators import validate_email

from judging.services.errors import Refused
from touchstone import links
from touchstone.models import AccountLink, User


class Command(BaseCommand):
    help = "Print a link that makes an account of this role, once, within 14 days; with --email also write a letter."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--role", required=True, choices=User.Role.values)
        parser.add_argument("--email", default="", help="the address of the account, which gets the link too")
        parser.add_argument("--site", default="", help="how the link begins (default: SITE_URL)")
        parser.add_argument(
            "--if-none", action="store_true", help="only if there is no active user of this role yet"
        )

    def handle(self, *, role: str, email: str, site: str, if_none: bool, **options: Any) -> None:
        if if_none and User.objects.filter(role=role, is_active=True).exists():
            return
        if if_none:  # of those that earlier starts printed, only the newest works
            printed = AccountLink.objects.filter(kind=links.INVITATION, role=role, created_by=None, email="")
            for link in printed.filter(used_at=None, revoked_at=None):
                links.revoke_link(link=link, actor=None)
            self.stdout.write(f"There is no {role} yet. This link makes one, once, within 14 days:")
        try:
            if email:
                validate_email(email)
            link, token = links.invite(role=role, email=email, actor=None)
        except ValidationError as error:
            raise CommandError(f"{email!r} is no e-mail address") from error
        except Refused as refusal:
            raise CommandError(refusal.title) from refusal
        self.stdout.write((site or settings.SITE_URL).rstrip("/") + links.path_of(link.kind, token))
