"""What was computed from the facts, and from which of them. Append-only: a newer computation is a new row."""

from analytics.models.comparisons import ComparisonFamily, JudgingConditions
from analytics.models.disputes import DisputedItem, ItemDigest
from analytics.models.forecasts import AuditForecast
from analytics.models.releases import Release
from analytics.models.results import (
    Computation,
    ConfusionEstimate,
    Estimate,
    before_cutting,
    method_choices,
)
from analytics.models.screening import AssessorScreening, Flag, Screening
from analytics.models.shares import ShareEstimate

__all__ = [
    "AssessorScreening",
    "AuditForecast",
    "ComparisonFamily",
    "Computation",
    "ConfusionEstimate",
    "DisputedItem",
    "Estimate",
    "Flag",
    "ItemDigest",
    "JudgingConditions",
    "Release",
    "Screening",
    "ShareEstimate",
    "before_cutting",
    "method_choices",
]
