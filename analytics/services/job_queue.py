"""Numbers that take longer than a page may wait: made by a job when somebody asks, found again by what was asked."""

import hashlib
import json
from typing import Any

from touchstone import jobs
from touchstone.models import Job, User


def newest_job(kind: str, **conditions: Any) -> Job | None:
    """Return the newest job of the kind in any state, for example of one `payload`."""
    return Job.objects.filter(kind=kind, **conditions).order_by("-created_at").first()


def queue_work(
    kind: str, payload: dict[str, Any], user: User | None, same: dict[str, Any] | None = None
) -> Job:
    """Queue the job, or return the one that is at it: one at a time for what is asked (`same`, else the payload)."""
    key = hashlib.sha256(json.dumps(payload if same is None else same, sort_keys=True).encode()).hexdigest()
    queued = jobs.enqueue(kind=kind, payload=payload, active_key=key, user=user)
    job = queued or newest_job(kind, active_key=key)
    if job is None:
        raise RuntimeError(f"a {kind} job was neither queued nor found")
    return job
