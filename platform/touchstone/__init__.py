"""How the product is put together and run."""

from touchstone.celery import app as celery_app

__all__ = ["celery_app"]
