"""What Celery may call: run one job, and the tick that sweeps and starts periodic work."""

import logging
import threading
import time

from celery import shared_task
from celery.signals import worker_ready
from django.db import close_old_connections, connection

from analytics.releases.services.releasing import settle_ended
from analytics.services.recomputation import start_due_recomputations
from analytics.services.screening import start_due_screenings
from sampling.services.auditing import start_due_audits
from sampling.services.ordering import start_due_orders
from touchstone import jobs
from touchstone.api.delivery import prune_deliveries, tell_webhooks
from touchstone.api.idempotency import prune_requests
from touchstone.api.rate_limits import prune_counters

logger = logging.getLogger(__name__)
SWEEP_SECONDS = 5.0
PRUNING = (prune_counters, prune_requests, prune_deliveries)


@shared_task(name="touchstone.tasks.run")
def run(job_id: str) -> None:
    jobs.run(job_id)


@shared_task(name="touchstone.tasks.tick")
def tick() -> None:
    """Beat calls this; two beats at once do no harm, because periodic jobs are unique by (name, period)."""
    due = (start_due_audits, start_due_orders, start_due_recomputations, start_due_screenings)
    for step in (jobs.sweep, *due, settle_ended, *PRUNING):
        try:
            step()
        except Exception:  # what stops one step must not stop the others
            logger.exception("the tick's %s failed", step.__name__)
            close_old_connections()


@worker_ready.connect
def watch_over_jobs(**_: object) -> None:
    """Each worker says that it lives and sweeps by itself: a dead beat or a flushed Redis stops nothing."""

    def watch() -> None:
        name = jobs.worker_name()
        while True:
            try:
                jobs.worker_lives(name)
                jobs.sweep()
            except Exception:  # the database restarts: say so and go on
                logger.warning("the worker's watch failed", exc_info=True)
                connection.close()
            time.sleep(SWEEP_SECONDS)

    threading.Thread(target=watch, daemon=True, name="watch").start()


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
