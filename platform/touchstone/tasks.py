"""What Celery may call: do the next job of a lane, and the tick that sweeps and starts periodic work."""

import logging
import threading
import time
from typing import Any

from celery import shared_task
from celery.signals import (
    after_task_publish,
    worker_init,
    worker_ready,
    worker_shutdown,
    worker_shutting_down,
)
from django.db import DatabaseError, InterfaceError, close_old_connections, connection

from analytics.releases.services.releasing import settle_ended
from analytics.services.recomputation import start_due_recomputations
from analytics.services.screening import start_due_screenings
from judging.models import Campaign
from judging.services.looking import REPLACE
from judging.services.places_left import start_due_feasibility
from sampling.services.auditing import start_due_audits
from sampling.services.ordering import start_due_orders
from touchstone import jobs, lanes, signs
from touchstone.api.delivery import tell_webhooks
from touchstone.api.idempotency import prune_requests
from touchstone.api.rate_limits import prune_counters
from touchstone.ledger.replacing import replace_by_job
from touchstone.ledger.sealing import KIND, seal_by_job, start_due_seals
from touchstone.letters.queueing import KIND as LETTERS
from touchstone.letters.sending import send_by_job, start_due_letters
from touchstone.links import FORGOTTEN, write_password_letters
from touchstone.notices import start_due_notices
from touchstone.people.erasing_judges import KIND as ERASING_JUDGES
from touchstone.people.erasing_judges import CannotEraseJudges, erase_judges
from touchstone.retention import start_due_retention

logger = logging.getLogger(__name__)
LIFE_SECONDS, SWEEP_SECONDS, DRAIN_SECONDS = 2.0, 5.0, 0.5
LAST_LETTER_SECONDS = 20.0
PRUNING = (prune_counters, prune_requests)


@shared_task(name="touchstone.tasks.work")
def work(lane: str) -> None:
    jobs.work(lane)


@jobs.handler(KIND, needs_room=False)
def seal(context: jobs.Context) -> None:
    seal_by_job(context)


@jobs.handler(REPLACE)
def replace_files(context: jobs.Context) -> None:
    replace_by_job(context)


@jobs.handler(ERASING_JUDGES)
def _erase_judges(context: jobs.Context) -> None:
    """Take out of a closed campaign who judged there."""
    campaign = Campaign.objects.get(pk=context.payload["campaign"])
    try:
        erased = erase_judges(campaign=campaign, actor=context.job.requested_by)
    except CannotEraseJudges as refusal:
        raise jobs.JobRefused(str(refusal)) from refusal
    context.result = {"people": erased.n_people, "judgments": erased.n_judgments}


@jobs.handler(FORGOTTEN, needs_room=False)
def _write_password_letters(context: jobs.Context) -> None:
    write_password_letters(context)


@jobs.handler(LETTERS, needs_room=False)
def send_letters(context: jobs.Context) -> None:
    send_by_job(context)


@shared_task(name="touchstone.tasks.tick")
def tick() -> None:
    """Beat calls this; two beats at once do no harm, because periodic jobs are unique by (name, period)."""
    due = (
        start_due_audits,
        start_due_orders,
        start_due_recomputations,
        start_due_screenings,
        start_due_feasibility,
        start_due_seals,
        start_due_retention,
        start_due_notices,
        start_due_letters,
    )
    for step in (jobs.sweep, *due, settle_ended, *PRUNING):
        try:
            step()
        except Exception:  # what stops one step must not stop the others
            logger.exception("the tick's %s failed", step.__name__)
            close_old_connections()


@worker_init.connect
def name_worker(**_: object) -> None:
    """Before it has children, which then bear the same name."""
    jobs.worker_name()


_is_stopping = threading.Event()


@worker_shutting_down.connect
def stop_working(**_: object) -> None:
    """Called by a signal: what is to be done is done by the thread that watches."""
    _is_stopping.set()


@worker_ready.connect
def watch_over_jobs(sender: Any, **_: object) -> None:
    """Each worker says that it lives and sweeps by itself: a dead beat or a flushed Redis stops nothing.

    Once it was told to stop it marks its job, again and again: one may have been begun in the same moment.
    """

    def watch() -> None:
        name, swept_at = jobs.worker_name(), -SWEEP_SECONDS
        served = {*sender.app.amqp.queues.consume_from, lanes.MAIL}  # --queues, or all of them
        while True:
            try:
                if _is_stopping.is_set():
                    jobs.drain(name)
                else:
                    signs.worker_lives(name, served)
                    if time.monotonic() - swept_at >= SWEEP_SECONDS:
                        jobs.sweep()
                        swept_at = time.monotonic()
            except Exception:  # the database restarts: say so and go on
                logger.warning("the worker's watch failed", exc_info=True)
                connection.close()
            if _is_stopping.is_set():
                time.sleep(DRAIN_SECONDS)
            else:
                _is_stopping.wait(LIFE_SECONDS)

    threading.Thread(target=watch, daemon=True, name="watch").start()


@after_task_publish.connect(sender="touchstone.tasks.tick")
def beat_lives(**_: object) -> None:
    """In beat's own process: the tick has reached Redis."""
    try:
        signs.sign(signs.BEAT)
    except (DatabaseError, InterfaceError):  # the database restarts: the next tick says it again
        logger.warning("beat could not say that it lives", exc_info=True)
        connection.close()


@worker_ready.connect
def tell_of_events(**_: object) -> None:
    """Each worker tells webhooks what happened, beside its jobs: a long job keeps nobody waiting for news."""

    def tell() -> None:
        while True:
            try:
                tell_webhooks()
            except Exception:  # the database restarts: say so and go on
                logger.warning("telling the webhooks failed", exc_info=True)
                connection.close()
            time.sleep(SWEEP_SECONDS)

    threading.Thread(target=tell, daemon=True, name="webhooks").start()


_is_sending = threading.Lock()


@worker_ready.connect
def serve_mail(**_: object) -> None:
    """Each worker sends letters beside its jobs: a mail server that hangs holds up no other lane."""

    def serve() -> None:
        while not _is_stopping.is_set():
            try:
                with _is_sending:
                    jobs.work(lanes.MAIL)
            except Exception:  # the database restarts: say so and go on
                logger.warning("the lane of letters failed", exc_info=True)
                connection.close()
            _is_stopping.wait(LIFE_SECONDS)

    threading.Thread(target=serve, daemon=True, name="mail").start()


@worker_shutdown.connect
def end_sending(**_: object) -> None:
    """Let the letter that is being handed over come to its end: else nobody would know whether it was sent."""
    _is_sending.acquire(timeout=LAST_LETTER_SECONDS)
