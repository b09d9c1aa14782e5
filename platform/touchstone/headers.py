"""Headers that every answer has, whoever gave it: a page, a static file, a refusal, a fault of the session."""

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse

POLICY = "Content-Security-Policy"
# For what is no page of ours: nothing in it may load, run, or be framed.
CLOSED = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
# For pages of faults, which are made without the policy of a request: the product's style, and no script.
STYLE = "default-src 'none'; style-src 'self'; img-src 'self' data:; base-uri 'none'; frame-ancestors 'none'"
FEATURES = (
    "camera",
    "display-capture",
    "geolocation",
    "microphone",
    "payment",
    "publickey-credentials-get",
    "usb",
)
PERMISSIONS = ", ".join(f"{feature}=()" for feature in FEATURES)


def every_answer(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Middleware, the outermost: no use of devices; a policy; and nothing kept that was made for one person."""

    def middleware(request: HttpRequest) -> HttpResponse:
        answer = get_response(request)
        answer.headers.setdefault("Permissions-Policy", PERMISSIONS)
        if POLICY not in answer.headers:
            is_page = answer.headers.get("Content-Type", "").startswith("text/html")
            answer.headers[POLICY] = STYLE if is_page else CLOSED
        # A frame and a file of a release say for themselves how long they may be kept, and by whom.
        if "Cache-Control" not in answer.headers and _is_personal(request, answer):
            answer.headers["Cache-Control"] = "no-store"
        return answer

    return middleware


def _is_personal(request: HttpRequest, answer: HttpResponse) -> bool:
    """Return whether somebody may be logged in: without a statement, and also where nobody asked who it is."""
    name = settings.SESSION_COOKIE_NAME
    return name in request.COOKIES or name in answer.cookies or "Authorization" in request.headers
