"""Background work of analytics: recomputations, the forecasts and top-ups of large pools, analyses."""

from analytics.services import forecast as forecasts
from analytics.services.analyses import AnalysisRefused, Wanted, analyse
from analytics.services.lacking import lacking
from analytics.services.recomputation import recompute
from analytics.services.reuse import Asked, ReuseRefused
from judging.models import Campaign
from sampling.frames import FrameRefused
from sampling.questions import Design, QuestionRefused
from touchstone.jobs import Context, JobRefused, handler


@handler("estimate")
def estimate(context: Context) -> None:
    computation = recompute(
        campaign=Campaign.objects.get(pk=context.payload["campaign"]), progress=context.progress
    )
    context.result = {"computation": computation.pk}


@handler("forecast")
def forecast(context: Context) -> None:
    campaign = Campaign.objects.get(pk=context.payload["campaign"])
    context.progress(0, 1, "looking at what every run returns")
    try:
        design = Design(**context.payload["design"])
        shown, pool = forecasts.compute(campaign=campaign, design=design, progress=context.progress)
    except (FrameRefused, QuestionRefused) as refusal:
        raise JobRefused(forecasts.reason(refusal)) from refusal
    context.progress(1, 1, f"{shown.n_frame} pooled documents weighed")
    context.result = forecasts.as_json(shown, pool)


@handler("reuse")
def reuse(context: Context) -> None:
    """Work out which judgments a run lacks."""
    campaign = Campaign.objects.select_related("collection", "scale").get(pk=context.payload["campaign"])
    context.progress(0, 1, "looking at what every run returns")
    try:
        asked = Asked(**context.payload["asked"])
        made = lacking(campaign=campaign, asked=asked, half_width=context.payload["half_width"])
    except ReuseRefused as refusal:
        raise JobRefused(str(refusal)) from refusal
    context.progress(1, 1, f"{made.n_new:.0f} more items")
    context.result = made.as_json()


@handler("analysis")
def analysis(context: Context) -> None:
    """Analyse a campaign's judgments in a way that somebody asked for."""
    campaign = Campaign.objects.select_related("collection", "scale").get(pk=context.payload["campaign"])
    try:
        made = analyse(
            campaign=campaign, wanted=Wanted(**context.payload["asked"]), progress=context.progress
        )
    except (AnalysisRefused, FrameRefused) as refusal:
        raise JobRefused(str(refusal)) from refusal
    context.progress(3, 3, f"as of judgment {made['as_of']}")
    context.result = made
