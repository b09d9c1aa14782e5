"""Which manager looks at which item in question just now."""

from django.conf import settings
from django.db import models

from judging.models.judgments import Item


class Reservation(models.Model):
    """That an item in question is before a manager's eyes, so that no other gets it: one row an item.

    Whoever opens the next item takes a free one, or one whose time has passed; the row is the lock. It may be thrown
    away at any time: two managers then may see the same item, and the newer word counts.
    """

    item = models.OneToOneField(Item, on_delete=models.CASCADE, related_name="reservation")
    manager = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    until = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.item_id} {self.manager_id}"
