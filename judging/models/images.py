"""Images that documents show: uploaded beside them, decoded and encoded anew."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Length
from django.db.models.lookups import LessThanOrEqual

from judging.images import LONGEST_PATH, MOST_BYTES
from judging.models.collections import Collection
from judging.models.imports import Import


class DocumentImage(models.Model):
    """A picture of a collection; documents name it by its path, seen from their own.

    `content` is what the limited child made of the uploaded file, whose SHA-256 is `sha256`. It lies in the row, being
    short, so that it comes and goes with its import. Append-only.
    """

    collection = models.ForeignKey(
        Collection, on_delete=models.PROTECT, related_name="images", db_index=False
    )
    path = models.CharField(max_length=LONGEST_PATH)
    sha256 = models.CharField(max_length=64)
    media_type = models.CharField(max_length=20)
    content = models.BinaryField()
    # Without an index, as of documents: an import knows between which ids its rows are.
    imported_by = models.ForeignKey(
        Import, null=True, editable=False, on_delete=models.PROTECT, related_name="+", db_index=False
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(name="judging_documentimage_unique", fields=["collection", "path"]),
            models.CheckConstraint(name="judging_documentimage_path", condition=Q(path__regex=r"^\S+$")),
            models.CheckConstraint(
                name="judging_documentimage_media_type",
                condition=Q(media_type__in=["image/png", "image/jpeg", "image/webp"]),
            ),
            models.CheckConstraint(
                name="judging_documentimage_short", condition=LessThanOrEqual(Length("content"), MOST_BYTES)
            ),
        ]

    def __str__(self) -> str:
        return self.path
