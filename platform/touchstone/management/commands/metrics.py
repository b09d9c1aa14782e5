"""`manage.py metrics`: serve what Prometheus reads, one process a host, on an address of its own."""

import errno
import logging
import time
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from prometheus_client import CollectorRegistry, start_http_server

from touchstone.metrics import Product

logger = logging.getLogger(__name__)
NEXT_TRY = 10.0  # seconds


class Command(BaseCommand):
    help = (
        "Serve metrics for Prometheus on METRICS_BIND (127.0.0.1:9464) until SIGINT or SIGTERM; one a host."
    )
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        host, port = _address(settings.METRICS_BIND)
        registry = CollectorRegistry(auto_describe=False)
        registry.register(Product())
        while True:
            try:
                _, thread = start_http_server(port, host, registry)
                break
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise CommandError(f"METRICS_BIND {settings.METRICS_BIND}: {error}") from error
                logger.warning("%s is taken; the next try is in %d s", settings.METRICS_BIND, NEXT_TRY)
                time.sleep(NEXT_TRY)
        self.stdout.write(f"Metrics at http://{settings.METRICS_BIND}/metrics")
        self.stdout.flush()
        thread.join()


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit():
        raise CommandError(f"METRICS_BIND is an address and a port, such as 127.0.0.1:9464; not {text!r}")
    return host.strip("[]"), int(port)
