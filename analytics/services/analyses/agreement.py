"""How far the tiers agree: about documents, and about which run is better."""

from typing import Any

from analytics.frames import CampaignArrays
from analytics.services.analyses.wanted import AnalysisRefused, Wanted
from analytics.services.recomputation import Progress
from judging.models import Campaign


def agreement(
    campaign: Campaign, arrays: CampaignArrays, wanted: Wanted, progress: Progress = lambda *_: None
) -> dict[str, Any]:
    """Return what each pair of tiers says of the same documents, and how each orders the runs."""
    raise AnalysisRefused("the agreement of the tiers is not computed yet")
