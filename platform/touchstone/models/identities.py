"""Who somebody is at an OpenID provider."""

from django.conf import settings
from django.db import models
from django.db.models import Q


class Identity(models.Model):
    """A person at a provider: its address and what it calls them there, never an e-mail address.

    An address is given to somebody else one day; the provider's subject never is. `label` is what one recognises it by.
    """

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="identities")
    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255)
    label = models.CharField(max_length=254, blank=True, default="", db_default="")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="touchstone_identity_person", fields=["issuer", "subject"]),
            models.UniqueConstraint(name="touchstone_identity_account", fields=["user", "issuer"]),
            models.CheckConstraint(
                name="touchstone_identity_named", condition=~Q(issuer="") & ~Q(subject="")
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user_id} {self.issuer}"
