"""What speaks against an assessor: flags, and the screenings of the log from which most of them come. Append-only."""

from django.db import models
from django.db.models import Q

from analytics.models.results import Computation, finite
from analytics.screening.kinds import ACCURACY, FlagKind, flag_choices, flag_kind
from judging.models import Assessor


class Flag(models.Model):
    """Evidence against an assessor, for the manager to look at: of each computation a row for every kind.

    It does not suspend the assessor. `p_adjusted` is adjusted for the assessor's tests and for the assessors;
    `effect` is in the unit that the kind names; `topics` are ids of those that show it; `evidence` says it in words.
    """

    assessor = models.ForeignKey(Assessor, on_delete=models.PROTECT, related_name="flags")
    computation = models.ForeignKey(Computation, on_delete=models.PROTECT, related_name="flags")
    kind = models.CharField(max_length=40, choices=flag_choices, default=ACCURACY.key)
    p_adjusted = models.FloatField(null=True)
    effect = models.FloatField(null=True)
    topics = models.JSONField(default=list)
    evidence = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(name="analytics_flag_unique", fields=["assessor", "computation", "kind"]),
            models.CheckConstraint(
                name="analytics_flag_numbers",
                condition=finite("effect")
                & (Q(p_adjusted__isnull=True) | Q(p_adjusted__gte=0, p_adjusted__lte=1)),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.assessor}: {self.evidence}"

    @property
    def registered_kind(self) -> FlagKind:
        """Return the kind's entry in the table: its words, and what to do."""
        return flag_kind(self.kind)


class Screening(models.Model):
    """What the log of the judgments showed when a computation was screened. Append-only.

    `overview` holds what the picture of all assessors shows: see analytics/services/screening.py.
    """

    computation = models.OneToOneField(Computation, on_delete=models.PROTECT, related_name="screening")
    n_judgments = models.PositiveIntegerField()
    overview = models.JSONField(default=dict)
    seconds = models.FloatField()
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.computation}: {self.n_judgments} judgments screened"


class AssessorScreening(models.Model):
    """What every test said of one assessor, or why there is no test; and what the pictures show. Append-only."""

    screening = models.ForeignKey(Screening, on_delete=models.PROTECT, related_name="assessors")
    assessor = models.ForeignKey(Assessor, on_delete=models.PROTECT, related_name="screenings")
    tests = models.JSONField(default=dict)
    profile = models.JSONField(default=dict)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="analytics_assessorscreening_unique", fields=["assessor", "screening"]
            )
        ]

    def __str__(self) -> str:
        return f"{self.assessor}: {len(self.tests)} tests"
