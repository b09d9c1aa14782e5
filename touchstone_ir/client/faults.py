"""What may go wrong, as exceptions that say what to do about it."""

from typing import Any


class ApiError(Exception):
    """The server refused the request (RFC 9457). `type` tells programs which problem it is, `errors` which field."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        self.status = status
        self.type = str(body.get("type", "about:blank"))
        self.title = str(body.get("title", "The request was refused"))
        self.detail = str(body.get("detail", ""))
        self.errors: Any = body.get("errors")
        super().__init__(f"{status} {self.title}" + (f": {self.detail}" if self.detail else ""))


class JobFailed(Exception):
    """The background job ended without a result; the message says why."""


class JobTimeout(Exception):
    """The job is still at work; it goes on without us, and `Client.wait` can be called again."""


class DownloadDamaged(Exception):
    """The bytes that came are not those whose SHA-256 the server tells; the file was removed."""
