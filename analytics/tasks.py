"""Background work of analytics: recomputations."""

from analytics.services.recomputation import recompute
from judging.models import Campaign
from touchstone.jobs import Context, handler


@handler("estimate")
def estimate(context: Context) -> None:
    computation = recompute(
        campaign=Campaign.objects.get(pk=context.payload["campaign"]), progress=context.progress
    )
    context.result = {"computation": computation.pk}
