"""The items that people should decide, as a computation found them."""

from django.db import models
from django.db.models import Q

from analytics.models.results import Computation
from judging.models import Item


class DisputedItem(models.Model):
    """An item whose joint grade may be wrong and matters: one place of the adjudication queue of a computation.

    `influence`: how far one grade moves the differences between runs; `error_probability`: how likely the grade that
    its judgments say together is wrong. The queue is ordered by their product. Append-only.
    """

    computation = models.ForeignKey(Computation, on_delete=models.PROTECT, related_name="disputed_items")
    item = models.ForeignKey(Item, on_delete=models.PROTECT, related_name="+")
    position = models.PositiveIntegerField()
    influence = models.FloatField()
    error_probability = models.FloatField()
    joint_grade = models.SmallIntegerField()

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
