"""What a request may bring: refused here before a byte is read, stored, or shown to the database."""

import re
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.core.files.uploadhandler import FileUploadHandler
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.translation import gettext
from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

from touchstone.bodies import BUFFERED, Body, passage

# The longest JSON body of somebody who judges has about 200 bytes, and a form of somebody who uploads no files hardly
# more. The others send guidelines, prompts, lists of topics; views read a body after they have asked who sends it.
SMALL = 10_000
LONG = 700_000
JUDGING = re.compile(r"/api/v1/campaigns/[^/]+/(claim|judgments|revisions|heartbeat|batch)")
LARGEST = 8 * 2**30
# A researcher uploads runs: this many bytes are a run of some million lines, compressed.
LARGEST_OF_RESEARCHER = 64 * 2**20
FREE_AFTERWARDS = 10**9
# An upload is there up to three times: as Django's temporary file, as the file that waits, and in the database.
COPIES = 3
PLACE = "touchstone.place"  # of a long upload, in its request's META


class UploadRefused(RequestDataTooBig):
    """The message is for the person who uploads."""


class UploadsBusy(UploadRefused):
    """As many long uploads as a web process takes at a time are under way: 503, and the same may be sent again."""


class Gate(FileUploadHandler):
    """The first upload handler: who judges uploads nothing, a researcher a run, and no manager fills the disk.

    Half of the threads of a web process at most read long uploads, however slowly they come.

    Whichever middleware asks first for `request.POST` has the files written: authentication must stand before it.
    """

    def handle_raw_input(
        self,
        input_data: Any,
        META: dict[str, Any],
        content_length: int,
        boundary: Any,
        encoding: Any = None,
    ) -> None:
        if content_length <= SMALL:
            return
        user = getattr(self.request, "user", None)
        if not getattr(user, "may_research", False):
            raise UploadRefused(gettext("Only managers and researchers upload files."))
        largest = LARGEST if getattr(user, "may_manage", False) else LARGEST_OF_RESEARCHER
        if content_length > largest:
            raise UploadRefused(
                f"One upload may have {largest // 2**20:,} MiB; send the files one by one, or compress them with gzip."
            )
        # Below the floor its own import would wait, and the file that waits would hold the space.
        if free_space() - COPIES * content_length < max(FREE_AFTERWARDS, settings.DISK_FLOOR):
            raise UploadRefused("There is not enough space left on the server's disk for these files.")
        if content_length > BUFFERED:
            body = META.get("wsgi.input")
            place = passage(body if isinstance(body, Body) else None, META.get("gunicorn.socket"))
            if place is None:
                raise UploadsBusy("Other uploads are under way. Try again in a minute.")
            META[PLACE] = place

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        return raw_data  # for the handlers that follow

    def file_complete(self, file_size: int) -> None:
        return None


def free_space() -> int:
    """Return the free bytes of the fuller of the disks that an upload is written to."""
    temporary = Path(settings.FILE_UPLOAD_TEMP_DIR or tempfile.gettempdir())
    kept = next(folder for folder in (settings.MEDIA_ROOT, *settings.MEDIA_ROOT.parents) if folder.exists())
    return min(shutil.disk_usage(folder).free for folder in (temporary, kept))


class LimitedJSONParser(JSONParser):
    """JSON nested deeper than Python can follow is the sender's fault, not ours."""

    def parse(self, *arguments: Any, **named: Any) -> Any:
        try:
            return super().parse(*arguments, **named)
        except RecursionError:
            raise ParseError("The JSON is nested too deeply") from None


def early_refusals(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware: no NUL, which PostgreSQL cannot store nor compare; no long body for the API.

    It is also where the place of a long upload is free again.
    """

    def middleware(request: HttpRequest) -> HttpResponse:
        if _has_nul(request):
            return _refusal(request, 400, "Invalid", "The address contains a character that is not allowed")
        most = SMALL if JUDGING.fullmatch(request.path) else LONG
        if request.path.startswith("/api/") and not _brings_files(request) and _length(request) > most:
            return _refusal(request, 413, "TooLarge", f"The request is longer than {most} bytes")
        try:
            return get_response(request)
        finally:
            place = request.META.get(PLACE)
            if place is not None:
                place.end()

    return middleware


def _brings_files(request: HttpRequest) -> bool:
    """Files pass the gate above, which knows by then who sends them: a view reads no body before it asked that."""
    return request.content_type == "multipart/form-data"


def _has_nul(request: HttpRequest) -> bool:
    query = unquote_to_bytes(request.META.get("QUERY_STRING", ""))
    return "\0" in request.path or b"\0" in query or any("\0" in value for value in request.COOKIES.values())


def _length(request: HttpRequest) -> int:
    try:
        return int(request.META.get("CONTENT_LENGTH") or 0)
    except ValueError:
        return 0  # Django reads no body then


def _refusal(request: HttpRequest, status: int, name: str, title: str) -> HttpResponse:
    """Return the answer, without a template: neither the user nor the page's policy is known yet."""
    if request.path.startswith("/api/"):
        body = {"type": f"/problems/{name}", "title": title, "status": status, "detail": ""}
        return JsonResponse(body, status=status, content_type="application/problem+json")
    return HttpResponse(f"{title}.\n", status=status, content_type="text/plain; charset=utf-8")
