"""Background work of sampling: draws, their layout topic by topic, and scheduled audits."""

from judging.models import Campaign
from sampling.frames import FrameRefused
from sampling.models import Draw
from sampling.questions import Design, QuestionRefused
from sampling.services.auditable import AuditRefused
from sampling.services.auditing import run_audit
from sampling.services.drawing import record_draw
from sampling.services.layout import lay_out, missing_topics, parts, queue_parts
from sampling.services.ordering import order_judging
from touchstone.jobs import Context, JobRefused, handler


@handler("draw")
def draw_items(context: Context) -> None:
    """Draw and record; a small draw is laid out at once, a large one by jobs of some topics each."""
    campaign = Campaign.objects.get(pk=context.payload["campaign"])
    context.progress(0, 2, "drawing")
    try:
        design = Design(**context.payload["design"])
        made = record_draw(
            campaign=campaign, design=design, seed=context.payload.get("seed"), user=context.job.requested_by
        )
    except (FrameRefused, QuestionRefused) as refusal:
        raise JobRefused(str(refusal)) from refusal
    context.progress(1, 2, f"{made.n_drawn} of {made.n_frame} pooled documents drawn")
    if len(parts(made)) == 1:
        lay_out(draw=made, topic_ids=missing_topics(made))
        note = f"{made.n_drawn} of {made.n_frame} pooled documents drawn"
    else:
        queued = queue_parts(draw=made, user=context.job.requested_by)
        note = f"{made.n_drawn} of {made.n_frame} pooled documents drawn; {len(queued)} jobs lay them out"
    context.progress(2, 2, note)
    context.result = {"n_drawn": made.n_drawn, "n_frame": made.n_frame, "batch": made.batch}


@handler("layout")
def lay_out_topics(context: Context) -> None:
    draw = Draw.objects.select_related("campaign__collection").get(pk=context.payload["draw"])
    n_items = lay_out(draw=draw, topic_ids=context.payload["topics"], progress=context.progress)
    context.result = {"n_items": n_items}


@handler("order", needs_room=False)  # judging goes on by it
def order_slots(context: Context) -> None:
    """Write what is judged next where judging goes by what it tells, and what the model says now."""
    campaign = Campaign.objects.select_related("collection", "scale").get(pk=context.payload["campaign"])
    try:
        made = order_judging(campaign=campaign, progress=context.progress)
    except FrameRefused as refusal:
        raise JobRefused(str(refusal)) from refusal
    context.result = {"look": made.pk, "n_judged": made.n_judged, "n_moved": made.n_moved}


@handler("audit")
def audit_items(context: Context) -> None:
    context.progress(0, 1, "selecting")
    options = context.payload.get("audit", {})
    try:
        made = run_audit(campaign_id=context.payload["campaign"], user=context.job.requested_by, **options)
    except (FrameRefused, AuditRefused) as refusal:
        raise JobRefused(str(refusal)) from refusal
    if made is None:
        note = "nothing to audit: no item is completely judged yet, or the total is reached"
    else:
        note = f"{made.n_selected} items are with the {made.tier} tier, without their earlier grades"
    context.progress(1, 1, note)
    context.result = {
        "n_selected": made.n_selected if made else 0,
        "sequence": made.sequence if made else None,
    }
