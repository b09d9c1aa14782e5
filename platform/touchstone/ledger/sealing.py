"""The job `seal`: every minute the rows that are new are chained and a seal of each table is stored.

Only rows up to the watermark are sealed (touchstone/watermark.py): a seal up to the highest id in sight would miss rows
of transactions that end later. Seals are sealed in turn, so that the newest head of the table of seals stands for
all heads before it: the head of the ledger.
"""

import logging
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from itertools import islice

from django.db import connection, transaction
from django.db.models.functions import Now

from touchstone import jobs, signs
from touchstone.chain import BEGINNING, extend
from touchstone.ledger.rows import TABLES, columns_of, lines
from touchstone.models import Job, Seal, ledger_head
from touchstone.watermark import Mark, Watermark, settle

logger = logging.getLogger(__name__)
KIND = "seal"
EVERY = timedelta(minutes=1)
SEALING_LOCK = 7_002  # of PostgreSQL's advisory locks: one at a time extends the chains
PATIENCE_SECONDS = 2.0  # of waiting for those who write at that moment; a longer transaction is sealed later
MOST_ROWS = 20_000  # of one seal: what differs is named by its seal
Progress = Callable[[int, int, str], None]


def start_due_seals() -> None:
    """Queue a sealing a minute, as long as there is something new; one that waits or runs is enough."""
    recent = Job.objects.filter(kind=KIND, created_at__gt=Now() - EVERY)
    if recent.exists():
        return
    if _is_anything_new():
        jobs.enqueue(kind=KIND, payload={}, active_key=KIND)
    else:
        signs.sign(KIND)  # all is sealed


def _is_anything_new() -> bool:
    """Compare the ends of two indexes a table: the seals of years are never counted through."""
    is_newer = " OR ".join(
        f'(SELECT coalesce(max(id), 0) FROM "{table}")'  # noqa: S608
        f' > (SELECT coalesce(max(up_to_id), 0) FROM {Seal._meta.db_table} WHERE "table" = %s)'
        for table in TABLES
    )
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {is_newer}", list(TABLES))
        return bool(cursor.fetchone()[0])


def seal_by_job(context: jobs.Context) -> None:
    """Seal what is certain; what a longer transaction still writes is remembered for the next job."""
    last = Job.objects.filter(kind=KIND, state=Job.State.DONE).order_by("-created_at").first()
    known = {
        table: Watermark(until, tuple(Mark(key, frozenset(who)) for key, who in marks))
        for table, (until, marks) in (last.result.get("watermarks", {}) if last else {}).items()
    }
    made, watermarks = seal_new_rows(known, context.progress)
    signs.sign(KIND)
    context.result = {
        "n_rows": sum(one.n_rows for one in made if one.table != Seal.OF_SEALS),
        "head": ledger_head(),
        "watermarks": {
            table: [one.last_id, [[mark.last_id, sorted(mark.writers)] for mark in one.marks]]
            for table, one in watermarks.items()
        },
    }
    logger.info("sealed %s rows; the ledger's head is %s", context.result["n_rows"], context.result["head"])


@transaction.atomic
def seal_new_rows(
    known: dict[str, Watermark] | None = None, progress: Progress = lambda *_: None
) -> tuple[list[Seal], dict[str, Watermark]]:
    """Seal every row up to the watermark of its table; return the new seals and the watermarks.

    Nobody is kept waiting. Where somebody else is sealing at this moment, nothing is done.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [SEALING_LOCK])
        if not cursor.fetchone()[0]:
            return [], known or {}
    until = time.monotonic() + PATIENCE_SECONDS
    watermarks = {
        table: settle(table, (known or {}).get(table, Watermark()), until - time.monotonic())
        for table in TABLES
    }
    made: list[Seal] = []
    for place, table in enumerate(TABLES):
        made += _seal_table(table, watermarks[table].last_id, partial(progress, place, len(TABLES)))
    if made:  # a seal of these seals; it is sealed itself with the next ones
        made += _seal_table(Seal.OF_SEALS, made[-1].pk, partial(progress, len(TABLES), len(TABLES)))
    return made, watermarks


def _seal_table(table: str, until: int, say: Callable[[str], None]) -> list[Seal]:
    """Seal the table's rows from its last seal to an id that is certain, so many a seal."""
    last = Seal.objects.filter(table=table).order_by("-up_to_id").first()
    head, after = (bytes.fromhex(last.head), last.up_to_id) if last else (BEGINNING, 0)
    columns = list(columns_of(table))
    found = lines(table, columns, after, until)
    made = []
    while part := list(islice(found, MOST_ROWS)):
        head = extend(head, (line for _, line in part))
        is_last = len(part) < MOST_ROWS
        made.append(
            Seal.objects.create(
                table=table,
                columns=columns,
                up_to_id=until if is_last else part[-1][0],
                n_rows=len(part),
                head=head.hex(),
                at=Now(),
            )
        )
        say(f"sealed {table} up to {part[-1][0]:,}")
    return made
