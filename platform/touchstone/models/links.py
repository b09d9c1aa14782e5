"""Secret links that work once: into a new account, to a new password, to the proof of an address."""

from django.conf import settings
from django.db import models
from django.db.models import F, Q


class AccountLink(models.Model):
    """What a link is for, until when, and whether it was used. Only the SHA-256 of its token is kept.

    An invitation becomes an account of this role, which then is `user`. The other two are of an account that is there:
    the one sets its password, the other proves that letters to `email` reach its person.
    """

    class Kind(models.TextChoices):
        INVITATION = "invitation"
        PASSWORD = "password"  # noqa: S105 (a kind of link)
        ADDRESS = "address"

    kind = models.CharField(max_length=10, choices=Kind)
    token_sha256 = models.CharField(max_length=64, unique=True)
    role = models.CharField(max_length=10, blank=True, default="")
    email = models.EmailField(blank=True, default="")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="account_links"
    )
    # NULL: a command made it, or somebody who has forgotten their password.
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="touchstone_accountlink_kind",
                condition=(
                    Q(kind="invitation", role__in=["assessor", "researcher", "manager"])
                    & (Q(user=None, used_at=None) | Q(user__isnull=False, used_at__isnull=False))
                )
                | Q(kind="password", role="", email="", user__isnull=False)
                | (Q(kind="address", role="", user__isnull=False) & ~Q(email="")),
            ),
            models.CheckConstraint(
                name="touchstone_accountlink_token",
                condition=Q(token_sha256__regex="^[0-9a-f]{64}$"),  # noqa: S106 (the form of a hash)
            ),
            models.CheckConstraint(
                name="touchstone_accountlink_end",
                condition=Q(expires_at__gt=F("created_at")) & (Q(used_at=None) | Q(revoked_at=None)),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.pk}"
