from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.apps import AppConfig

if TYPE_CHECKING:
    from judging.models import Campaign, Item
    from sampling.measures.families import Measure
    from sampling.services.learned_audits import GoldSpread


class AnalyticsConfig(AppConfig):
    name = "analytics"

    def ready(self) -> None:
        from sampling.services.learned_audits import predict_gold_with

        predict_gold_with(_predicted_spread)


def _predicted_spread(
    campaign: "Campaign", items: "Sequence[Item]", measure: "Measure[Any]"
) -> "GoldSpread | None":
    """Predict gold for an audit that learns; the libraries of estimation load only when there is one."""
    from analytics.services.gold_spread import predicted_spread

    return predicted_spread(campaign, items, measure)
