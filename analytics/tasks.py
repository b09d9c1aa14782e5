"""Background work of analytics: recomputations, the forecasts and top-ups of large pools, analyses."""

from django.db import transaction

from analytics.models import Release
from analytics.releases.services.grading import GradesRefused
from analytics.releases.services.releasing import build
from analytics.services import forecast as forecasts
from analytics.services import parts
from analytics.services.analyses import AnalysisRefused, AnalysisSubject, analyse
from analytics.services.recomputation import MERGE, PART, recompute
from analytics.services.rejudging import RejudgingChoice, preview
from analytics.services.reuse import ReuseQuestion, ReuseRefused
from analytics.services.rounds import compare_rounds, rounds_question
from analytics.services.rounds.question import RoundsRefused
from analytics.services.run_upload import delete_upload, take
from analytics.services.screening import queue_screening, screen_campaign
from analytics.services.simulations import SimulationRefused, simulate
from analytics.services.top_up import lacking
from judging.models import Campaign
from judging.services.errors import ImportRefused
from sampling.frames import FrameRefused
from sampling.outlook import USUAL_RATES
from sampling.questions import Design, QuestionRefused
from touchstone.jobs import Context, JobCancelled, JobRefused, handler


@handler("estimate")
def estimate(context: Context) -> None:
    """Compute the campaign's numbers anew, and have its log screened: flags follow new judgments.

    Those of a large campaign are computed by further jobs.
    """
    campaign = Campaign.objects.get(pk=context.payload["campaign"])
    try:
        if parts.is_large(campaign):
            context.result = parts.begin(campaign, context.progress)
            return
        computation = recompute(campaign=campaign, progress=context.progress)
    except FrameRefused as refusal:
        raise JobRefused(str(refusal)) from refusal
    queue_screening(campaign=campaign)
    context.result = {"computation": computation.pk}


@handler(PART)
def estimate_part(context: Context) -> None:
    """Estimate a measure of a large campaign, from the files of one moment."""
    campaign = Campaign.objects.select_related("scale").get(pk=context.payload["campaign"])
    try:
        context.result = parts.do_part(
            campaign, context.payload["moment"], context.payload["part"], context.progress
        )
    except (parts.PartsRefused, FrameRefused) as refusal:
        raise JobRefused(str(refusal)) from refusal


@handler(MERGE)
def estimate_merge(context: Context) -> None:
    """Store the numbers of a large campaign, of which every part is done."""
    campaign = Campaign.objects.select_related("scale").get(pk=context.payload["campaign"])
    try:
        computation = parts.merge(campaign, context.payload["moment"], context.progress)
    except (parts.PartsRefused, FrameRefused) as refusal:
        raise JobRefused(str(refusal)) from refusal
    queue_screening(campaign=campaign)
    context.result = {"computation": computation.pk}


@handler("screening")
def screening(context: Context) -> None:
    """Test the log of the judgments for careless assessors."""
    campaign = Campaign.objects.select_related("scale").get(pk=context.payload["campaign"])
    try:
        made = screen_campaign(campaign=campaign, progress=context.progress)
    except FrameRefused as refusal:
        raise JobRefused(str(refusal)) from refusal
    if made is None:
        raise JobRefused("no numbers were computed yet: judgments come first")
    context.result = {"screening": made.pk, "computation": made.computation_id}


@handler("forecast")
def forecast(context: Context) -> None:
    campaign = Campaign.objects.get(pk=context.payload["campaign"])
    context.progress(0, 1, "looking at what every run returns")
    try:
        design = Design(**context.payload["design"])
        misses, false_alarms = context.payload.get("rates", USUAL_RATES)
        shown, pool = forecasts.compute(
            campaign=campaign, design=design, rates=(misses, false_alarms), progress=context.progress
        )
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
        question = ReuseQuestion(**context.payload["asked"])
        made = lacking(campaign=campaign, asked=question, half_width=context.payload["half_width"])
    except ReuseRefused as refusal:
        raise JobRefused(str(refusal)) from refusal
    context.progress(1, 1, f"{made.n_new:.0f} more items")
    context.result = made.as_json()


@handler("analysis")
def analysis(context: Context) -> None:
    """Run a requested analysis of a campaign's judgments."""
    campaign = Campaign.objects.select_related("collection", "scale").get(pk=context.payload["campaign"])
    try:
        made = analyse(
            campaign=campaign, wanted=AnalysisSubject(**context.payload["asked"]), progress=context.progress
        )
    except (AnalysisRefused, FrameRefused) as refusal:
        raise JobRefused(str(refusal)) from refusal
    context.progress(3, 3, f"as of judgment {made['as_of']}")
    context.result = made


@handler("rounds")
def rounds(context: Context) -> None:
    """Compare a run in one round with a run in another."""
    question = rounds_question(context.job)
    campaigns = Campaign.objects.select_related("collection", "scale")
    first, second = (campaigns.get(pk=choice.campaign) for choice in (question.first, question.second))
    try:
        made = compare_rounds(question=question, first=first, second=second, progress=context.progress)
    except (RoundsRefused, FrameRefused) as refusal:
        raise JobRefused(str(refusal)) from refusal
    context.progress(4, 4, "compared")
    context.result = made


@handler("simulation")
def simulation(context: Context) -> None:
    """Simulate what a campaign's own errors do."""
    campaign = Campaign.objects.select_related("collection", "scale").get(pk=context.payload["campaign"])
    try:
        context.result = simulate(campaign=campaign, what=context.payload["what"], progress=context.progress)
    except SimulationRefused as refusal:
        raise JobRefused(str(refusal)) from refusal


@handler("rejudging")
def rejudging(context: Context) -> None:
    """Work out which documents a policy would have judged once more, and what every policy would gain."""
    campaign = Campaign.objects.select_related("collection", "scale").get(pk=context.payload["campaign"])
    choice = RejudgingChoice(**context.payload["choice"])
    context.result = preview(campaign, choice, context.progress)


@handler("run-upload")
def run_upload(context: Context) -> None:
    """Import a run and estimate it. The upload goes when its fate is decided, and stays while it may be retried."""
    request = dict(context.payload)
    campaign = Campaign.objects.select_related("collection", "scale").get(pk=request.pop("campaign"))
    request.pop("collection")
    try:
        made = take(campaign=campaign, progress=context.progress, actor=context.job.requested_by, **request)
    except (ImportRefused, FrameRefused) as refusal:
        delete_upload(context.payload)
        raise JobRefused(str(refusal)) from refusal
    except JobCancelled:
        delete_upload(context.payload)
        raise
    transaction.on_commit(lambda: delete_upload(context.payload), robust=True)
    context.note = f"run {made['run']}: {made['n_lines']:,} lines imported and estimated"[:200]
    context.result = made


@handler("release")
def release(context: Context) -> None:
    """Build the file of a release that was asked for."""
    row = Release.objects.select_related("campaign", "previous", "computation", "made_by").get(
        pk=context.payload["release"]
    )
    try:
        made = build(release=row, progress=context.progress)
    except (FrameRefused, GradesRefused) as refusal:
        raise JobRefused(str(refusal)) from refusal
    context.result = {"release": str(made.pk), "sha256": made.sha256, "bytes": made.n_bytes}
