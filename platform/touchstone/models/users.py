"""Accounts, and the keys of their API clients."""

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib.auth.models import AbstractUser
from django.contrib.auth.models import UserManager as BaseUserManager
from django.core.exceptions import PermissionDenied
from django.db import models, transaction
from django.http import HttpRequest
from django.utils.crypto import salted_hmac

if TYPE_CHECKING:
    from rest_framework.request import Request


class UserManager(BaseUserManager["User"]):
    def create_superuser(self, username: str, *arguments: Any, **fields: Any) -> "User":
        """Create the first manager: `manage.py createsuperuser` on an empty database."""
        made: User = super().create_superuser(username, *arguments, **{"role": User.Role.MANAGER, **fields})
        return made


class User(AbstractUser):
    objects: ClassVar[UserManager] = UserManager()
    ends_access = False  # no column: whether the save at hand ends sessions and keys (touchstone/access.py)

    class Role(models.TextChoices):
        ASSESSOR = "assessor"
        RESEARCHER = "researcher"
        MANAGER = "manager"

    role = models.CharField(max_length=10, choices=Role, default=Role.ASSESSOR)
    # Chosen for the assessors' pages. Without choices: a language added to the settings makes no migration.
    language = models.CharField(max_length=20, blank=True, default="", db_default="")
    # In which pages name times; empty: UTC. Without choices, for the same reason: the world's zones change.
    time_zone = models.CharField(max_length=50, blank=True, default="", db_default="")
    # When a page was answered last, to the hour (touchstone/readers.py).
    seen_at = models.DateTimeField(null=True, editable=False)
    # Part of what every session is checked against: another salt ends them all (touchstone/access.py).
    session_salt = models.CharField(max_length=32, blank=True, default="", db_default="", editable=False)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="touchstone_user_role",
                condition=models.Q(role__in=["assessor", "researcher", "manager"]),
            )
        ]

    def save(self, *arguments: Any, **named: Any) -> None:
        """Save it in one transaction with what its signals do: access ends with the change, or nothing changes."""
        with transaction.atomic():
            super().save(*arguments, **named)

    def _get_session_auth_hash(self, secret: str | None = None) -> str:
        """Return what a session is checked against, as Django makes it of the password, with the salt in it.

        Without a salt it is Django's own, so that sessions from before there were salts go on.
        """
        name = "django.contrib.auth.models.AbstractBaseUser.get_session_auth_hash"
        mixed = f"{self.password}{self.session_salt}"
        return salted_hmac(name, mixed, secret=secret, algorithm="sha256").hexdigest()

    @property
    def may_manage(self) -> bool:
        return self.role == self.Role.MANAGER

    @property
    def may_research(self) -> bool:
        return self.role in {self.Role.MANAGER, self.Role.RESEARCHER}


def user_of(request: "HttpRequest | Request") -> User:
    """Return who sends the request; the pages and the API let nobody through who is not logged in."""
    if not isinstance(request.user, User):
        raise PermissionDenied
    return request.user


def all_scopes() -> list[str]:
    return ["read", "judge", "write"]


class ApiToken(models.Model):
    """What a program shows instead of a password. Only the SHA-256 of the key is kept: the key is shown once."""

    class Scope(models.TextChoices):
        READ = "read", "Read what I may read"
        JUDGE = "judge", "Judge in my name"
        WRITE = "write", "Change what I may change"

    user = models.ForeignKey(User, on_delete=models.PROTECT, related_name="api_tokens")
    name = models.CharField(max_length=100)
    scopes = models.JSONField(default=all_scopes)
    key_sha256 = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return self.name
