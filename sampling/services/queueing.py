"""Draws as jobs: a repeated request draws nothing twice."""

from typing import Any

from judging.models import Campaign
from judging.services.errors import Refused
from sampling.questions import Design
from touchstone import jobs
from touchstone.models import Job, User

TRIES = 3  # a job may end between being in the way and being looked for


class DrawRunning(Refused):
    status = 409
    title = "Another draw of this campaign is running"


def queue_draw(*, campaign: Campaign, design: Design, seed: int | None, user: User | None) -> Job:
    """Queue a draw, or return the job that already does just this: the running one, or the one that made the newest
    batch. So a request may be repeated without a thing being drawn twice.
    """
    payload: dict[str, Any] = {"campaign": str(campaign.pk), "design": design.parameters()}
    if seed is not None:
        payload["seed"] = seed
    for _ in range(TRIES):
        last = (
            Job.objects.filter(kind="draw", payload__campaign=str(campaign.pk))
            .order_by("-created_at")
            .first()
        )
        if (
            last is not None
            and last.payload == payload
            and (last.is_active or _made_the_newest_batch(last, campaign))
        ):
            return last
        queued = jobs.enqueue(kind="draw", payload=payload, active_key=str(campaign.pk), user=user)
        if queued is not None:
            return queued
        if last is not None and last.is_active:
            raise DrawRunning(f"job {last.pk} draws another design")
    raise DrawRunning("try again")


def _made_the_newest_batch(job: Job, campaign: Campaign) -> bool:
    newest = campaign.draws.order_by("-batch").values_list("batch", flat=True).first()
    return job.state == Job.State.DONE and job.result.get("batch") == newest
