"""What is forecast of audits to come."""

from django.db import models
from django.db.models import F, Q

from analytics.models.results import Computation, finite
from judging.models import Run


class AuditForecast(models.Model):
    """How wide an interval would be after one more audit, as far as the computation could tell. Append-only.

    `refusal` says why there is no forecast. What came of an audit is in the computations after it.
    """

    computation = models.ForeignKey(Computation, on_delete=models.PROTECT, related_name="audit_forecasts")
    strategy = models.CharField(max_length=40)
    n_more = models.FloatField()  # expected gold labels of the audit
    run = models.ForeignKey(Run, null=True, on_delete=models.PROTECT, related_name="+")
    run_b = models.ForeignKey(Run, null=True, on_delete=models.PROTECT, related_name="+")
    measure = models.CharField(max_length=40)
    half_width_now = models.FloatField(null=True)
    half_width_after = models.FloatField(null=True)
    half_width_error = models.FloatField(null=True)  # standard error of the forecast
    # Between what the middle 80 % of the simulated audits lie, the drawing's part of the variance (the rest is the
    # assessors'), and the forecast for topics like these with the topics' part. NULL in older rows, the last two also
    # where the spread between topics is not known.
    middle_low = models.FloatField(null=True)
    middle_high = models.FloatField(null=True)
    drawing_share = models.FloatField(null=True)
    topics_half_width_after = models.FloatField(null=True)
    topics_share = models.FloatField(null=True)
    refusal = models.TextField(blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                name="analytics_auditforecast_unique", fields=["computation", "strategy"]
            ),
            models.CheckConstraint(
                name="analytics_auditforecast_value_or_reason",
                condition=Q(half_width_after__isnull=False, refusal="")
                | (Q(half_width_after__isnull=True) & ~Q(refusal="")),
            ),
            models.CheckConstraint(
                name="analytics_auditforecast_finite",
                condition=finite("n_more", "half_width_now", "half_width_after", "half_width_error"),
            ),
            models.CheckConstraint(
                name="analytics_auditforecast_middle",
                condition=Q(middle_low=None, middle_high=None, drawing_share=None)
                | Q(
                    half_width_after__isnull=False,
                    middle_low__gte=0,
                    middle_low__lte=F("middle_high"),
                    middle_high__lt=1e300,
                    drawing_share__gte=0,
                    drawing_share__lte=1,
                ),
            ),
            models.CheckConstraint(
                name="analytics_auditforecast_topics",
                condition=Q(topics_half_width_after=None, topics_share=None)
                | Q(
                    middle_low__isnull=False,
                    topics_half_width_after__gte=0,
                    topics_half_width_after__lt=1e300,
                    topics_share__gte=0,
                    topics_share__lte=1,
                ),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.strategy} {self.n_more}"
