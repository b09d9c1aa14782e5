"""Look at the static files once a process: WhiteNoise does it anew for every client of a test, 0.03 s each time."""

from typing import Any

from django.conf import settings
from whitenoise.base import WhiteNoise
from whitenoise.middleware import WhiteNoiseMiddleware

_KEPT: dict[Any, dict[str, Any]] = {}


def _key(server: WhiteNoiseMiddleware, root: Any, prefix: str | None) -> Any:
    """Return everything that the table of files depends on."""
    names = ("max_age", "allow_all_origins", "charset", "index_file", "add_headers_function", "static_prefix")
    own = tuple(str(getattr(server, name)) for name in names)
    return str(root), prefix, settings.STATIC_URL, repr(settings.STORAGES["staticfiles"]), *own


def add_files(server: WhiteNoiseMiddleware, root: Any, prefix: str | None = None) -> None:
    """Take the table of a folder that was looked at before; look at it where there is none."""
    if server.autorefresh or server.files:
        WhiteNoise.add_files(server, root, prefix)
        return
    key = _key(server, root, prefix)
    if key not in _KEPT:
        WhiteNoise.add_files(server, root, prefix)
        _KEPT[key] = dict(server.files)
    server.files = dict(_KEPT[key])


def install() -> None:
    """Let every client of a test do so; servers that tests start are processes of their own, as always."""
    WhiteNoiseMiddleware.add_files = add_files
