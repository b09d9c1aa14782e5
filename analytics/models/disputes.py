"""The items as computations found them: what people should decide, and what lists are ordered by."""

from django.db import models
from django.db.models import Q, Value

from analytics.models.results import Computation
from judging.models import Campaign, Item


class DisputedItem(models.Model):
    """An item whose joint grade may be wrong and matters: one place of the adjudication queue of a computation.

    `influence`: how far one grade moves the differences between runs; `error_probability`: how likely the grade that
    its judgments say together is wrong. The queue is ordered by their product. `reasons`: keys of the rules that put
    it there (analytics/estimation/questioned.py); empty in rows from before. Append-only.
    """

    computation = models.ForeignKey(Computation, on_delete=models.PROTECT, related_name="disputed_items")
    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="+")
    position = models.PositiveIntegerField()
    influence = models.FloatField()
    error_probability = models.FloatField()
    joint_grade = models.SmallIntegerField()
    reasons = models.JSONField(default=list, db_default=Value([], models.JSONField()))

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(name="analytics_disputeditem_unique", fields=["computation", "position"]),
            models.CheckConstraint(
                name="analytics_disputeditem_numbers",
                condition=Q(influence__gte=0, influence__lt=1e300)
                & Q(error_probability__gte=0, error_probability__lte=1),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.position}: {self.item_id}"


class ItemDigest(models.Model):
    """What lists of items filter and order by, and no index of facts serves: a row an item with judgments.

    A computation writes the rows of the items that were judged since the one before. It may write any of them anew, for
    all follows from the facts. NULL: nobody has graded the item, or no joint grade counts.
    """

    item = models.OneToOneField(Item, primary_key=True, on_delete=models.PROTECT, related_name="digest")
    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="+", db_index=False)
    spread = models.PositiveSmallIntegerField(null=True)  # the highest less the lowest grade that stands
    influence = models.FloatField(null=True)  # as DisputedItem has it
    milliseconds = models.PositiveIntegerField()  # of the judgment that took longest
    newest = models.BigIntegerField()  # the id of the newest judgment
    computation = models.BigIntegerField()  # the id of the one that wrote the row; it may be pruned since

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="analytics_itemdigest_numbers",
                condition=(Q(influence__isnull=True) | Q(influence__gte=0, influence__lt=1e300))
                & (Q(spread__isnull=True) | Q(spread__lte=9)),
            )
        ]
        indexes = [
            models.Index(fields=["campaign", "spread", "item"], name="analytics_digest_spread"),
            models.Index(fields=["campaign", "influence", "item"], name="analytics_digest_influence"),
            models.Index(fields=["campaign", "milliseconds", "item"], name="analytics_digest_seconds"),
            models.Index(fields=["campaign", "newest", "item"], name="analytics_digest_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.item_id}: {self.spread}"

    @property
    def seconds(self) -> float:
        return self.milliseconds / 1000
