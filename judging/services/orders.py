"""Which order of judging a campaign can have, and until when it can be chosen."""

from judging.judging_orders import refused_judgments
from judging.models import Campaign, Judgment
from judging.services.errors import OrderRefused
from judging.services.sources import begin_import


def refuse_judgments(order: str, judgments_per_item: int) -> None:
    """Refuse an order that does not go with so many judgments an item."""
    if reason := refused_judgments(order, judgments_per_item):
        raise OrderRefused(reason)


def refuse_order(campaign: Campaign, order: str) -> None:
    """Refuse another order once there are items: what was drawn, imported or judged rests on the one it has."""
    begin_import(campaign.collection)  # no draw and no import beside this
    refuse_judgments(order, campaign.judgments_per_item)
    was_random = campaign.has_random_order
    if Judgment.objects.filter(item__campaign=campaign).exists():
        words = "in random order" if was_random else "by what it tells"
        raise OrderRefused(f"the campaign has judgments {words}, and they would not fit another order")
    if campaign.items.exists():
        raise OrderRefused("its items are drawn already: choose the order before the draw")
