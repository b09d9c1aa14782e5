from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from django.apps import AppConfig

if TYPE_CHECKING:
    from judging.models import Campaign, Item
    from sampling.campaign_plan import CampaignPlan, PlayedWidths
    from sampling.measures.families import Measure
    from sampling.services.learned_audits import GoldSpread


class AnalyticsConfig(AppConfig):
    name = "analytics"

    def ready(self) -> None:
        from sampling.services.learned_audits import predict_gold_with
        from sampling.services.outlook import play_campaigns_with

        predict_gold_with(_predicted_spread)
        play_campaigns_with(_played_widths)


def _predicted_spread(
    campaign: "Campaign", items: "Sequence[Item]", measure: "Measure[Any]"
) -> "GoldSpread | None":
    """Predict gold for an audit that learns; the libraries of estimation load only when there is one."""
    from analytics.services.gold_spread import predicted_spread

    return predicted_spread(campaign, items, measure)


def _played_widths(plan: "CampaignPlan", seed: int) -> "PlayedWidths | str":
    """Play a campaign, or say why its number would have no interval."""
    from analytics.estimation.estimate import Refusal
    from analytics.planning.campaign_plays import played_widths

    found = played_widths(plan, seed)
    return found.reason if isinstance(found, Refusal) else found
