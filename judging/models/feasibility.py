"""What the open places of a campaign can still get: the newest answer, and the items that are stuck."""

from django.db import models

from judging.models.campaigns import Campaign
from judging.models.judgments import Item


class PlacesLeft(models.Model):
    """How many open places the people of a campaign can fill, which items lack some, and what helps.

    A job writes it, and it may be thrown away at any time. `basis` is a hash of what it was computed from. `stuck`
    lists some of the items with the reason, `helps` by remedy how many more places could be filled; both without names.
    """

    campaign = models.OneToOneField(Campaign, on_delete=models.PROTECT, related_name="places_left")
    basis = models.CharField(max_length=32)
    wanted = models.PositiveIntegerField()
    possible = models.PositiveIntegerField()
    n_stuck = models.PositiveIntegerField()
    newcomers = models.PositiveIntegerField()
    is_exact = models.BooleanField()
    stuck = models.JSONField(default=list)
    helps = models.JSONField(default=dict)
    computed_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="judging_placesleft_possible", condition=models.Q(possible__lte=models.F("wanted"))
            )
        ]

    def __str__(self) -> str:
        return f"{self.campaign}: {self.possible} of {self.wanted}"


class StuckItem(models.Model):
    """That some best filling leaves the item short, by the campaign's newest answer: all those that it counts."""

    item = models.OneToOneField(Item, primary_key=True, on_delete=models.PROTECT, related_name="stuck")
    campaign = models.ForeignKey(Campaign, on_delete=models.PROTECT, related_name="+")

    def __str__(self) -> str:
        return str(self.item_id)
