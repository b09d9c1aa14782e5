"""Background work of sampling: draws and scheduled audits."""

from judging.models import Campaign
from sampling.frames import FrameRefused
from sampling.services.auditing import run_scheduled_audit
from sampling.services.drawing import Design, draw
from touchstone.jobs import Context, JobRefused, handler


@handler("draw")
def draw_items(context: Context) -> None:
    campaign = Campaign.objects.get(pk=context.payload["campaign"])
    design = Design(**context.payload["design"])
    context.progress(0, 1, "drawing")
    try:
        made = draw(
            campaign=campaign, design=design, seed=context.payload.get("seed"), user=context.job.requested_by
        )
    except FrameRefused as refusal:
        raise JobRefused(str(refusal)) from refusal
    context.progress(1, 1, f"{made.n_drawn} of {made.n_frame} pooled documents drawn")
    context.result = {"n_drawn": made.n_drawn, "n_frame": made.n_frame}


@handler("audit")
def audit_items(context: Context) -> None:
    context.progress(0, 1, "selecting")
    try:
        made = run_scheduled_audit(campaign_id=context.payload["campaign"])
    except FrameRefused as refusal:
        raise JobRefused(str(refusal)) from refusal
    if made is None:
        note = "nothing to audit: no item is completely judged yet, or the total is reached"
    else:
        note = f"{made.n_selected} items are with the gold tier, without their earlier grades"
    context.progress(1, 1, note)
    context.result = {"n_selected": made.n_selected if made else 0}
