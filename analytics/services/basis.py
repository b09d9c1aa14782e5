"""What all measures of a campaign are estimated from, computed once."""

from analytics.frames import CampaignArrays
from analytics.numbers import basis
from analytics.numbers.predictions import Predictions
from analytics.services.confusions import ConfusionCounts
from analytics.services.label_classes import bronze_classes
from judging.models import Campaign


class Basis(basis.Basis):
    """What all measures of a campaign are estimated from. What does not depend on the measure is computed once."""

    arrays: CampaignArrays

    def __init__(
        self, campaign: Campaign, arrays: CampaignArrays, predictions: Predictions, counts: ConfusionCounts
    ) -> None:
        super().__init__(
            arrays,
            predictions,
            scale_gains=campaign.scale.gains(),
            relevant_grade=campaign.scale.relevant_grade,
            confusion_counts=counts.total,
            classes=lambda: bronze_classes(arrays, campaign),
        )
        self.campaign, self.counts = campaign, counts
