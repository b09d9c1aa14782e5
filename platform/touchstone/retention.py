"""How long what is finished is kept, in one table, and the hourly job that removes what is older.

Rows go by `touchstone_prune` alone, a function of the tables' owner: it knows what must stay, refuses to take anything
younger than 90 days, thins out computations, and writes an event. What is sealed is never pruned. Letters are no facts
and go without it.
"""

import time
from dataclasses import dataclass
from datetime import timedelta

from django.db import connection
from django.utils import timezone

from judging.services.files import clear_uploads
from touchstone import jobs
from touchstone.letters.sending import prune_letters

KIND = "retention"


@dataclass(frozen=True)
class Period:
    """What is kept for so many days after its end, and how many rows one statement removes."""

    what: str
    days: int
    at_once: int = 10_000


PERIODS = (
    Period("jobs", 90),
    Period("sessions", 90),
    Period("deliveries", 90),
    # One a day and campaign for so long, then one a week; each has thousands of rows.
    Period("computations", 90, at_once=200),
)
UPLOADS = timedelta(days=30)  # of imports that were kept: so long they can be read again as something else
MOST_SECONDS = 300.0  # of a job, half of its lane's time: the next one goes on


def start_due_retention() -> None:
    """Queue the job of this hour, once."""
    hour = timezone.now().strftime("%Y-%m-%dT%H")
    jobs.enqueue(kind=KIND, payload={}, period_key=f"{KIND}:all:{hour}")


@jobs.handler(KIND, needs_room=False)
def prune_by_job(context: jobs.Context) -> None:
    """Remove what is due, some thousand rows at a time; when the time is up, the rest of each kind waits an hour."""
    end = time.monotonic() + MOST_SECONDS
    for place, period in enumerate(PERIODS):
        n = 0
        found = period.at_once
        while found == period.at_once and (n == 0 or time.monotonic() < end):
            context.progress(place, len(PERIODS), f"removed {n:,} {period.what}")
            found = prune(period)
            n += found
        context.result[period.what] = n
    context.result["uploads"] = clear_uploads(UPLOADS)
    context.result["letters"] = prune_letters()


def prune(period: Period) -> int:
    """Remove what is older than the period, at most so many at once; return how many."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT touchstone_prune(%s, %s, %s)", [period.what, period.days, period.at_once])
        return int(cursor.fetchone()[0])
