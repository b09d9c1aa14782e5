"""Files as plain bytes: `application/octet-stream` beside their own types, in the description and over the wire.

Generators of clients know few types of files. For a type that they do not know they leave the file out, and what is
text they decode, a picture too where one address answers with either. Bytes are what each of them takes as it is.
"""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.cache import patch_vary_headers

PLAIN_BYTES = "application/octet-stream"
BINARY = {"type": "string", "format": "binary"}
NO_FILES = ("application/json", "application/problem+json", "text/html")


def with_plain_bytes(content: dict[str, Any]) -> dict[str, Any]:
    """Return the types of an answer; those of a file come after plain bytes, which generators take first.

    >>> list(with_plain_bytes({"application/zip": {"schema": {"type": "string", "format": "binary"}}}))
    ['application/octet-stream', 'application/zip']
    >>> list(with_plain_bytes({"application/json": {"schema": {"type": "object"}}}))
    ['application/json']
    """
    is_file = any(part.get("schema") == BINARY for part in content.values())
    return {PLAIN_BYTES: {"schema": BINARY}, **content} if is_file else content


def plain_bytes_where_asked(
    get_response: Callable[[HttpRequest], HttpResponseBase],
) -> Callable[[HttpRequest], HttpResponseBase]:
    """Middleware: call a file of the API plain bytes for who asks for just that."""

    def middleware(request: HttpRequest) -> HttpResponseBase:
        answer = get_response(request)
        kind = answer.get("Content-Type", NO_FILES[0]).partition(";")[0]
        is_file = answer.status_code in (200, 206) and kind not in NO_FILES
        if is_file and request.path.startswith("/api/v1/"):
            patch_vary_headers(answer, ("Accept",))
            if request.headers.get("Accept") == PLAIN_BYTES:
                answer["Content-Type"] = PLAIN_BYTES
        return answer

    return middleware
