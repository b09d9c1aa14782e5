"""Imports: files that were looked at, kept or taken back. The rows they brought name them."""

import uuid
from typing import TYPE_CHECKING

from django.conf import settings
from django.db import models
from django.db.models import Q

if TYPE_CHECKING:
    from judging.models.campaigns import Campaign
    from judging.models.collections import Collection


class Import(models.Model):
    """Files that came together, what they were taken for, and what has become of them.

    An entry of `files` has name, path (of the stored upload, "" where none is kept), n_bytes, sha256, kind, options,
    counts, and by table the first and the last id of the rows that it brought: one import at a time adds to a
    collection. Judgments do not name their import: they are those between the ids, by the assessors it made.
    """

    class State(models.TextChoices):
        LOOKED_AT = "looked-at", "Looked at"
        KEPT = "kept", "Kept"
        TAKEN_BACK = "taken-back", "Taken back"
        DISCARDED = "discarded", "Discarded"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    collection: "models.ForeignKey[Collection]" = models.ForeignKey(
        "judging.Collection", on_delete=models.PROTECT, related_name="imports"
    )
    # For judgments.
    campaign: "models.ForeignKey[Campaign | None]" = models.ForeignKey(
        "judging.Campaign", null=True, on_delete=models.PROTECT, related_name="imports"
    )
    state = models.CharField(max_length=10, choices=State, default=State.LOOKED_AT)
    kind = models.CharField(max_length=20, blank=True, default="", db_default="")  # "": of several kinds
    files = models.JSONField(default=list)
    options = models.JSONField(default=dict)
    report = models.JSONField(default=dict)  # what the look saw
    user = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    kept_at = models.DateTimeField(null=True)
    taken_back_at = models.DateTimeField(null=True)
    taken_back_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )

    class Meta:
        ordering = ["-created_at", "id"]
        constraints = [
            models.CheckConstraint(
                name="judging_import_state",
                condition=Q(state__in=["looked-at", "discarded"], kept_at__isnull=True, taken_back_at__isnull=True)
                | Q(state="kept", kept_at__isnull=False, taken_back_at__isnull=True)
                | Q(state="taken-back", kept_at__isnull=False, taken_back_at__isnull=False),
            )
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"{self.kind or 'files'} {self.state} {self.id}"
