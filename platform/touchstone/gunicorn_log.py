"""Gunicorn's own lines, written as all others are: `gunicorn --logger-class touchstone.gunicorn_log.Log`."""

import os
from typing import Any

from gunicorn.glogging import Logger

from touchstone import logs


class Log(Logger):  # type: ignore[misc]  # gunicorn has no types
    def setup(self, cfg: Any) -> None:
        super().setup(cfg)
        handler = logs.Lines()
        handler.setFormatter(logs.FORMATS[os.environ.get("LOG_FORMAT", "text")]())
        handler._gunicorn = True  # type: ignore[attr-defined]  # so gunicorn knows which to take away again
        self.error_log.handlers = [handler]
