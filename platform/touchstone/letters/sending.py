"""The job that sends letters: each once, whenever its worker dies, but for one gap that is said.

A letter is taken (`claim`, with a time by which others may take it), all of it but its last line is sent, then
"handed over" is committed, then the last line is sent, and the answer noted. Who dies before "handed over" is followed
by another try: the server has no whole letter. Who dies after it is followed by nobody: the letter is *unclear*, and
people decide. So no letter comes twice by itself. One is lost only if the worker dies, or the connection ends, in the
moment between that commit and the server's having read the last line; it is unclear then, too, and never silently so.

All of it is committed step by step, on a connection of its own: the job's transaction knows nothing of it.
"""

import logging
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from functools import partial
from typing import Any

from django.db import connection
from django.db.models import QuerySet
from django.db.models.functions import Now

from touchstone import jobs
from touchstone.letters.queueing import KIND, letters_are_sent
from touchstone.letters.smtp import WHOLE_SECONDS, Folder, NoAnswer, NotTaken, Server, letter_file
from touchstone.models import Letter

logger = logging.getLogger(__name__)
State = Letter.State
# How long until the next try, after each that failed; then it is given up. Servers that do not know us want a second.
WAITS = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 60, 180, 360, 720))
TAKEN = timedelta(seconds=2 * WHOLE_SECONDS)  # longer than one try can last
MOST_AT_ONCE = 100
DAYS_KEPT = 90
TAKE = """
UPDATE touchstone_letter SET attempts = attempts + 1, next_attempt_at = clock_timestamp() + %s, claim = %s
 WHERE id = (SELECT id FROM touchstone_letter WHERE state = 'waiting' AND next_attempt_at <= clock_timestamp()
              ORDER BY next_attempt_at, id LIMIT 1 FOR UPDATE SKIP LOCKED)
RETURNING id
"""
EMPTY: dict[str, Any] = {"text": "", "link": "", "seed": ""}


class ClaimLost(Exception):
    """Another worker has taken the letter, because this one was silent for long."""


class ServerAway(Exception):
    """The mail server takes no letter now, whichever it is."""


def start_due_letters() -> None:
    """Queue the job if letters are due: a wake-up was lost, or their next try has come."""
    if Letter.objects.filter(
        state__in=[State.WAITING, State.HANDED_OVER], next_attempt_at__lte=Now()
    ).exists():
        jobs.enqueue(kind=KIND, payload={}, active_key=KIND)


def send_by_job(context: jobs.Context) -> None:
    """Send what is due, in a thread that commits; the job's own transaction waits, and changes nothing."""
    with ThreadPoolExecutor(max_workers=1) as pool:
        context.result["n_sent"] = pool.submit(_send_apart, context).result()


def _send_apart(context: jobs.Context) -> int:
    try:
        return send_due(context)
    finally:
        connection.close()


def send_due(context: jobs.Context) -> int:
    """Send one letter after another; return how many were. A server that takes none now ends the round."""
    settle_unclear()
    server: Server | Folder = Server() if letters_are_sent() else Folder()
    n_sent = 0
    try:
        for n in range(MOST_AT_ONCE):
            context.progress(n, MOST_AT_ONCE, f"sent {n_sent} letters")
            letter = _take()
            if letter is None:
                break
            _try(letter, server)
            n_sent += letter.state == State.SENT
    except ServerAway as away:
        context.note = f"sent {n_sent} letters; the mail server takes none now: {away}"[:200]
        logger.warning("the mail server takes no letters now: %s", away)
    finally:
        server.close()
    return n_sent


def settle_unclear() -> int:
    """Mark what was being handed over when its worker ended; return how many that were."""
    late = Letter.objects.filter(state=State.HANDED_OVER, next_attempt_at__lt=Now())
    n = late.update(state=State.UNCLEAR, ended_at=Now(), claim=None, answer="its worker ended in between")
    if n:
        logger.warning("%s letters may have been sent, or not", n)
    return n


def send_again(letter: Letter) -> bool:
    """Have a letter sent again that is unclear or was given up, because a person says so; return whether it was."""
    ended = Letter.objects.filter(pk=letter.pk, state__in=[State.UNCLEAR, State.GIVEN_UP])
    is_again = ended.update(state=State.WAITING, attempts=0, ended_at=None, next_attempt_at=Now(), answer="")
    if is_again:
        jobs.enqueue(kind=KIND, payload={}, active_key=KIND)
    return bool(is_again)


def prune_letters() -> int:
    """Remove letters of long ago, whatever became of them; return how many."""
    old = Letter.objects.filter(created_at__lt=Now() - timedelta(days=DAYS_KEPT), ended_at__isnull=False)
    return remove_letters(old)


def remove_letters(letters: QuerySet[Letter]) -> int:
    """Remove the rows, and the files of those that no mail server took; return how many rows."""
    for key in letters.values_list("pk", flat=True):
        letter_file(key).unlink(missing_ok=True)
    return letters.delete()[0]


def _take() -> Letter | None:
    with connection.cursor() as cursor:
        cursor.execute(TAKE, list[Any]([TAKEN, uuid.uuid4()]))
        row = cursor.fetchone()
    return Letter.objects.select_related("user").get(pk=row[0]) if row else None


def _try(letter: Letter, server: Server | Folder) -> None:
    if letter.user is not None and not letter.user.is_active:
        _end(letter, State.GIVEN_UP, "the account is closed")
        return
    try:
        answer = server.send(letter, partial(_hand_over, letter))
    except ClaimLost:
        logger.warning("letter %s: another worker has taken it", letter.pk)
    except NoAnswer as fault:
        _end(letter, State.UNCLEAR, f"no answer to its end: {fault}")
    except NotTaken as fault:
        _postpone(letter, fault)
        if fault.is_of_server:
            raise ServerAway(str(fault)) from fault
    else:
        _end(letter, State.SENT, answer)


def _own(letter: Letter) -> QuerySet[Letter]:
    """Return the row as long as it is this worker's."""
    return Letter.objects.filter(pk=letter.pk, claim=letter.claim, ended_at=None)


def _hand_over(letter: Letter) -> None:
    """Commit that the letter may be with the server from here on."""
    if not _own(letter).update(state=State.HANDED_OVER, next_attempt_at=Now() + TAKEN):
        raise ClaimLost


def _postpone(letter: Letter, fault: NotTaken) -> None:
    """Let it wait for its next try; what is refused for ever, or too often, is given up."""
    if fault.is_final or letter.attempts > len(WAITS):
        _end(letter, State.GIVEN_UP, str(fault))
        return
    wait = WAITS[letter.attempts - 1]
    _own(letter).update(
        state=State.WAITING, claim=None, next_attempt_at=Now() + wait, answer=str(fault)[:200]
    )


def _end(letter: Letter, state: str, answer: str) -> None:
    said = EMPTY if state == State.SENT else {}
    _own(letter).update(state=state, ended_at=Now(), claim=None, answer=answer[:200], **said)
    letter.state = state
