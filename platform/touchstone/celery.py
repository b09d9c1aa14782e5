"""Celery: the wake-up call of jobs, never their memory (that is PostgreSQL's `touchstone_job`)."""

import logging.config
import os

from celery import Celery
from celery.signals import setup_logging

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "touchstone.settings")

app = Celery("touchstone")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@setup_logging.connect
def log_as_the_web_process_does(**_: object) -> None:
    """Celery sets up no log of its own where somebody listens to this signal."""
    from django.conf import settings

    logging.config.dictConfig(settings.LOGGING)
    logging.captureWarnings(True)
