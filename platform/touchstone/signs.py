"""Signs of life: when a worker, a lane, the clock or a backup was heard of last, as rows that everybody can read."""

from collections.abc import Iterable
from datetime import timedelta

from django.db.models import QuerySet
from django.db.models.functions import Now

from touchstone import lanes
from touchstone.models import WorkerHeartbeat

WORKER_SILENCE = timedelta(seconds=10)  # a worker says every two seconds that it lives
BEAT = "beat"
LANE_SIGNS = {f"lane {lane}": lane for lane in lanes.SECONDS}  # some worker that serves the lane
# Not when it was last, but when it was first known that backups are to be made.
BACKUPS_WANTED = "backups wanted"
# What is no worker. Metrics give the age of each that has said so once.
SIGNS = (BEAT, "backup", "verified backup", "archive", "seal", BACKUPS_WANTED, *LANE_SIGNS)


def sign(name: str) -> None:
    """Write down that now is the last time of it: of a worker, or of one of SIGNS."""
    WorkerHeartbeat.objects.update_or_create(name=name, defaults={"seen_at": Now()})


def sign_once(name: str) -> None:
    """Write down that now is the first time of it; of a later time nothing."""
    WorkerHeartbeat.objects.get_or_create(name=name, defaults={"seen_at": Now()})


def worker_lives(name: str, served: Iterable[str] = ()) -> None:
    """Write down that the worker lives, and so does each lane that it serves; forget workers of long ago."""
    for one in (name, *(key for key, lane in LANE_SIGNS.items() if lane in served)):
        sign(one)
    WorkerHeartbeat.objects.filter(seen_at__lt=Now() - timedelta(hours=1)).exclude(name__in=SIGNS).delete()


def _living() -> QuerySet[WorkerHeartbeat]:
    return WorkerHeartbeat.objects.filter(seen_at__gt=Now() - WORKER_SILENCE)


def worker_is_running() -> bool:
    """Return whether any worker has been heard of in the last seconds."""
    return _living().exclude(name__in=SIGNS).exists()


def unserved_lanes() -> list[str]:
    """Return the lanes of which no worker has been heard in the last seconds."""
    served = set(_living().filter(name__in=LANE_SIGNS).values_list("name", flat=True))
    return [lane for key, lane in LANE_SIGNS.items() if key not in served]
