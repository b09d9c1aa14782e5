"""Collections frozen as of one snapshot."""

import uuid

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django.db.models import Q

from analytics.aggregation.rules import DEFAULT_RULE, aggregation_choices
from analytics.models.results import Computation
from judging.models import Campaign
from touchstone.models import Job


class Release(models.Model):
    """A collection frozen as of one snapshot: one file, hashed, that says all it takes to be used and cited.

    Once ready it never changes (a trigger sees to it), but for its withdrawal, for forgetting the key of its
    assessors' pseudonyms, and for whether its page is public.
    """

    class State(models.TextChoices):
        BUILDING = "building"
        READY = "ready"
        FAILED = "failed"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="releases")
    version = models.CharField(max_length=20)
    title = models.CharField(max_length=200)
    authors = models.TextField(blank=True)  # one a line, for the citation
    notes = models.TextField(blank=True)  # what is new, in the maker's words (Markdown)
    licence = models.CharField(max_length=200, blank=True)
    doi = models.CharField(
        max_length=200,
        blank=True,
        db_default="",
        validators=[
            RegexValidator(
                r"\A10\.\d{4,9}(\.\d+)?/[A-Za-z0-9:/_;\-.()\[\]\\]+\Z", "A DOI, such as 10.5281/zenodo.1"
            )
        ],
    )
    url = models.URLField(max_length=500, blank=True, db_default="")  # where it will be found
    aggregation = models.CharField(max_length=40, choices=aggregation_choices, default=DEFAULT_RULE)
    prefers_gold = models.BooleanField(
        default=True
    )  # a grade of an audit or an adjudication stands before the others
    includes_documents = models.BooleanField(default=False)
    includes_runs = models.BooleanField(default=True)  # those that may be published
    state = models.CharField(max_length=8, choices=State, default=State.BUILDING)
    job = models.ForeignKey(Job, null=True, on_delete=models.PROTECT, related_name="+")
    computation = models.ForeignKey(Computation, null=True, on_delete=models.PROTECT, related_name="+")
    previous = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="+")
    last_judgment_id = models.BigIntegerField(null=True)
    pseudonym_key = models.CharField(max_length=64, blank=True)  # deleted: nobody can make the release again
    file = models.FileField(upload_to="releases/", max_length=300, blank=True)
    n_bytes = models.BigIntegerField(null=True)
    sha256 = models.CharField(max_length=64, blank=True)
    merkle_root = models.CharField(max_length=64, blank=True)
    manifest = models.JSONField(default=dict)
    changes = models.JSONField(default=dict)  # against the release before: what was added, changed, removed
    made_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    ready_at = models.DateTimeField(null=True, blank=True)
    withdrawn_at = models.DateTimeField(null=True, blank=True)
    withdrawn_reason = models.CharField(max_length=2000, blank=True)
    public_since = models.DateTimeField(null=True, blank=True)  # its page needs no log-in from then on

    class Meta:
        ordering = ["-created_at"]
        constraints = [
            # A failed attempt does not use its version up.
            models.UniqueConstraint(
                name="analytics_release_unique", fields=["campaign", "version"], condition=~Q(state="failed")
            ),
            models.CheckConstraint(
                name="analytics_release_version", condition=Q(version__regex=r"^[0-9]+(\.[0-9]+){0,2}$")
            ),
            models.CheckConstraint(
                name="analytics_release_ready",
                condition=Q(state__in=["building", "failed"], ready_at__isnull=True)
                | (
                    Q(state="ready", ready_at__isnull=False, n_bytes__isnull=False)
                    & Q(last_judgment_id__isnull=False)
                    & ~Q(sha256="")
                    & ~Q(merkle_root="")
                    & ~Q(file="")
                ),
            ),
            models.CheckConstraint(
                name="analytics_release_withdrawn",
                condition=Q(withdrawn_at__isnull=True) | ~Q(withdrawn_reason=""),
            ),
            models.CheckConstraint(
                name="analytics_release_public", condition=Q(public_since__isnull=True) | Q(state="ready")
            ),
        ]

    def __str__(self) -> str:
        return f"{self.title} {self.version}"
