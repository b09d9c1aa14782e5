"""Files over HTTP, streamed: a campaign's judgments, and a release's file.

A release has its SHA-256 as ETag, and is sent from any byte on for who was interrupted.
"""

import re
from collections.abc import Iterator
from itertools import islice

from django.http import (
    FileResponse,
    HttpRequest,
    HttpResponse,
    HttpResponseNotModified,
    StreamingHttpResponse,
)
from django.http.response import HttpResponseBase
from django.utils.http import parse_etags

from analytics.models import Release
from analytics.releases.services.releasing import download_name
from analytics.services.exports import ExportFormat
from judging.models import Campaign
from judging.services.errors import Refused
from touchstone.files import Stream, stream

BLOCK = 2**18
LINES_AT_ONCE = 2_000
RANGE = re.compile(r"bytes=(?P<first>[0-9]{0,18})-(?P<last>[0-9]{0,18})")


class ReleaseNotReady(Refused):
    status = 409
    title = "This release has no file yet"


class ReleaseDamaged(Refused):
    status = 409
    title = "The release file is missing or has been altered"


class _Part:
    """Some bytes of a file, as FileResponse reads a file: it is closed with the answer."""

    def __init__(self, stream: Stream, length: int) -> None:
        self._stream, self._left = stream, length

    def read(self, size: int = -1) -> bytes:
        wanted = self._left if size < 0 else min(size, self._left)
        got = self._stream.read(wanted)
        self._left -= len(got)
        return got

    def __iter__(self) -> Iterator[bytes]:
        while block := self.read(BLOCK):
            yield block

    def close(self) -> None:
        self._stream.close()


def release_file(request: HttpRequest, release: Release) -> HttpResponseBase:
    """Return the file, or the one range of it that was asked for, or 304 for who has it already.

    The file never changes, so that its SHA-256 is a strong ETag; `If-Range` with another one gets all of it. That of a
    withdrawn release is still handed out: whoever cites it must be able to read what was cited.
    """
    if release.state != Release.State.READY:
        raise ReleaseNotReady(f"it is {release.state}")
    etag = f'"{release.sha256}"'
    if etag in parse_etags(request.headers.get("If-None-Match", "")):
        return _with_etag(HttpResponseNotModified(), etag)
    try:
        size = release.file.size
    except FileNotFoundError as fault:
        raise ReleaseDamaged("the file is gone: restore it from a backup") from fault
    if size != release.n_bytes:
        raise ReleaseDamaged("its length differs")
    first, last = _range(request, etag, size)
    if first > last:
        refused = HttpResponse(status=416, headers={"Content-Range": f"bytes */{size}"})
        return _with_etag(refused, etag)
    is_part = last - first + 1 < size
    answer = FileResponse(
        _Part(stream(release.file, first), last - first + 1),
        as_attachment=True,
        filename=download_name(release),
        content_type="application/zip",
        status=206 if is_part else 200,
    )
    answer["Content-Length"] = str(last - first + 1)
    if is_part:
        answer["Content-Range"] = f"bytes {first}-{last}/{size}"
    return _with_etag(answer, etag)


def _with_etag(answer: HttpResponseBase, etag: str) -> HttpResponseBase:
    answer["ETag"] = etag
    answer["Accept-Ranges"] = "bytes"
    # Whoever may read it may change; what was read stays what it is.
    answer["Cache-Control"] = "private, no-cache"
    return answer


def _range(request: HttpRequest, etag: str, size: int) -> tuple[int, int]:
    """Return the first and the last byte to send: all of them for several ranges, or what is no range.

    A range that begins behind the end gives a first byte after the last.
    """
    everything = 0, size - 1
    found = RANGE.fullmatch(request.headers.get("Range", "").strip())
    if (
        found is None
        or request.headers.get("If-Range", etag) != etag
        or request.method not in ("GET", "HEAD")
    ):
        return everything
    first, last = found["first"], found["last"]
    if not first:
        return (
            (max(0, size - int(last)), size - 1)
            if last and int(last)
            else ((size, 0) if last else everything)
        )
    if last and int(last) < int(first):
        return everything
    if int(first) >= size:
        return size, 0
    return int(first), min(int(last), size - 1) if last else size - 1


def export_file(one: ExportFormat, campaign: Campaign, *, prefers_gold: bool = True) -> StreamingHttpResponse:
    """Return a campaign's judgments in one of the formats of EXPORTS, streamed."""
    lines = one.lines(campaign, prefers_gold)  # here, not with the first block: it may refuse
    answer = StreamingHttpResponse(_blocks(lines), content_type=one.content_type)
    name = one.file_name.format(campaign=campaign.pk)
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


def _blocks(lines: Iterator[str]) -> Iterator[bytes]:
    """Yield the lines, many at once: each block is a write to the connection."""
    while block := "".join(islice(lines, LINES_AT_ONCE)):
        yield block.encode()
