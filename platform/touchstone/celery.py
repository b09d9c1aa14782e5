"""Celery: the wake-up call of jobs, never their memory (that is PostgreSQL's `touchstone_job`)."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "touchstone.settings")

app = Celery("touchstone")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
