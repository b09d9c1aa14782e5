"""The roof's pages: home, login, jobs, errors; and the one place where refusals become HTTP."""

import json
import logging
import math
import sys
import uuid
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.db import InterfaceError, OperationalError, connection
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.template.loader import get_template
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django.utils.log import log_response
from django.utils.translation import get_language, gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST
from rest_framework import exceptions
from rest_framework.response import Response

from analytics.services.analyses import job_title
from analytics.services.rounds import rounds_title
from judging.models import Assessor
from judging.services.access import stoppable_jobs, visible_jobs
from judging.services.errors import Refused
from judging.services.refusal_texts import texts_of
from touchstone import jobs, logs, replica, signs
from touchstone.files import FilesUnavailable
from touchstone.health import watch
from touchstone.languages import is_for_assessors
from touchstone.models import Job, User, user_of
from touchstone.uploads import UploadRefused, UploadsBusy

logger = logging.getLogger(__name__)
DEMO_LOGINS = "demo.json"
# What to do about an error whose page says nothing more, by its status.
NEXT = {
    400: _("Go back, correct what you entered, and try again."),
    404: _(
        "Is the address right? The page may have been deleted, or you may not have access to it: then ask a manager."
    ),
    409: _("Load the page again: it may have changed."),
    413: _("Send a smaller file, or split it into several."),
    429: _("Wait a moment, then try again."),
}
DATABASE_IS_AWAY = (OperationalError, InterfaceError)
REFUSALS = (Refused, jobs.TooManyJobs, FilesUnavailable)


@login_not_required
def home(request: HttpRequest) -> HttpResponse:
    """The signed-out landing page; everybody else goes where the day's work is."""
    user = request.user
    if not isinstance(user, User):
        return render(request, "home.html")
    if user.may_manage:
        return redirect("console:manage")
    if user.may_research:
        return redirect("console:results")
    only = list(Assessor.objects.open_to(user).values_list("campaign_id", flat=True)[:2])
    # With one campaign there is nothing to choose: the first judgment is one key away.
    return redirect("judging:judge", campaign_id=only[0]) if len(only) == 1 else redirect("judging:home")


def demo_logins() -> list[dict[str, str]]:
    """Return the demo's logins, in the demo alone: its folder may serve without it later."""
    if not settings.DEMO:
        return []
    try:
        logins: list[dict[str, str]] = json.loads((settings.VAR / DEMO_LOGINS).read_text())
    except FileNotFoundError:
        return []
    return logins


def worker_state(request: HttpRequest) -> dict[str, Any]:
    """Context of every page: managers and researchers learn when nobody is there to do background work."""
    user = getattr(request, "user", None)
    if not isinstance(user, User) or not user.may_research:
        return {}
    with replica.primary():
        return {"no_worker": not signs.worker_is_running()}


def job_page(request: HttpRequest, job_id: uuid.UUID) -> HttpResponse:
    """Progress of a background job, its result or its reason; `?part=1` gives the part that changes."""
    job = get_object_or_404(_visible_jobs(request), pk=job_id)
    template = "job_part.html" if "part" in request.GET else "job.html"
    title, back = job_title(job) or rounds_title(job), _local_path(request.GET.get("back", ""))
    is_own = job.state == job.State.QUEUED and job.requested_by_id == user_of(request).pk
    context = {"job": job, "analysis": title, "back": back, "n_ahead": jobs.n_own_ahead(job) if is_own else 0}
    answer = render(request, template, context)
    if job.state not in Job.ACTIVE:
        replica.remember(answer)  # what it leads to may not have arrived there yet
    return answer


@require_POST
def cancel_job(request: HttpRequest, job_id: uuid.UUID) -> HttpResponse:
    user = request.user
    if not isinstance(user, User) or not user.may_research:
        raise Http404
    job = get_object_or_404(stoppable_jobs(user), pk=job_id)
    jobs.cancel(job)
    messages.info(request, "The job is being cancelled.")
    back = urlencode({"back": _local_path(request.POST.get("back", ""))})
    return redirect(f"{reverse('job', args=[job.pk])}?{back}")


def _visible_jobs(request: HttpRequest) -> Any:
    """The jobs about what one may see, for managers and researchers; to everybody else there are none."""
    user = request.user
    if not isinstance(user, User) or not user.may_research:
        raise Http404
    return visible_jobs(user)


def _local_path(path: str) -> str:
    safe = path.startswith("/") and url_has_allowed_host_and_scheme(path, allowed_hosts=None)
    return path if safe else "/"


# -- errors -------------------------------------------------------------------------------------------------


def problem(error: Exception, context: dict[str, Any]) -> Response | None:
    """Return the error as problem+json (RFC 9457), or None for faults of ours, which stay 500."""
    if isinstance(error, REFUSALS):
        name, status, title, detail = type(error).__name__, error.status, error.title, str(error)
    elif isinstance(error, exceptions.ValidationError):
        name, status, title = "Invalid", 400, "The request is not valid"
        detail = json.dumps(error.detail)
    elif isinstance(error, exceptions.APIException):
        name, status, title, detail = type(error).__name__, error.status_code, str(error.detail), ""
    elif isinstance(error, Http404):
        name, status, title, detail = "NotFound", 404, "There is no such thing", ""
    elif isinstance(error, PermissionDenied):
        name, status, title, detail = "Forbidden", 403, "You may not do this", str(error)
    elif isinstance(error, DATABASE_IS_AWAY):
        # It restarts or is overloaded: nothing was acknowledged, and the same request may come again.
        connection.close()
        name, status, title, detail = "Unavailable", 503, "The database cannot answer now; try again", ""
    else:
        return None
    body: dict[str, Any] = {"type": f"/problems/{name}", "title": title, "status": status, "detail": detail}
    if isinstance(error, exceptions.ValidationError):
        body["errors"] = error.detail
    response = Response(body, status=status, content_type="application/problem+json")
    if status == 503:
        # Here, where the cause is known; Django writes no second line of it.
        request = context["request"]
        log_response(
            "Service Unavailable: %s", request.path, response=response, request=request, exception=error
        )
    wait = 1 if status == 503 else getattr(error, "wait", None)
    if wait is not None:
        response["Retry-After"] = str(math.ceil(wait))
    return response


def refusals_become_pages(get_response: Any) -> Any:
    """Middleware: a `Refused` that reaches a page becomes the error page with the right status."""

    def middleware(request: HttpRequest) -> HttpResponse:
        answer: HttpResponse = get_response(request)
        if answer.status_code != 405 or answer.content or request.path.startswith("/api/"):
            return answer
        page = _error(
            request,
            405,
            gettext("This address is not a page"),
            gettext("A form sends to it: go to the page of that form."),
        )
        page["Allow"] = answer["Allow"]
        return page

    def process_exception(request: HttpRequest, error: Exception) -> HttpResponse | None:
        if not isinstance(error, REFUSALS):
            return None
        if isinstance(error, Refused) and is_for_assessors(request.path):
            title, detail = texts_of(error)
        else:
            title, detail = error.title, str(error)
        return _error(request, error.status, title, detail)

    middleware.process_exception = process_exception  # type: ignore[attr-defined]
    return middleware


def unavailable(request: HttpRequest) -> HttpResponse:
    title = gettext("The database cannot answer now")
    detail = gettext("Nothing was lost. Please try again in a few seconds.")
    if request.path.startswith("/api/"):
        body = {"type": "/problems/Unavailable", "title": title, "status": 503, "detail": detail}
        response: HttpResponse = JsonResponse(body, status=503, content_type="application/problem+json")
    else:
        # A page that was only read loads itself again; what was sent is for the person to send again.
        response = _error_without_database(503, title, detail, refresh=5 if request.method == "GET" else 0)
    response["Retry-After"] = "1"
    return response


def _error(request: HttpRequest, status: int, title: str, detail: str = "") -> HttpResponse:
    if request.path.startswith("/api/"):  # where no view of the API answers: an address that there is not
        names = {400: "Invalid", 403: "Forbidden", 404: "NotFound", 413: "TooLarge"}
        body = {
            "type": f"/problems/{names.get(status, 'Refused')}",
            "title": title,
            "status": status,
            "detail": detail,
        }
        return JsonResponse(body, status=status, content_type="application/problem+json")
    context = {
        "status": status,
        "title": title,
        "detail": detail,
        "next": NEXT.get(status, ""),
        "request_id": logs.request_id.get(),
    }
    return render(request, "error.html", context, status=status)


def _error_without_database(status: int, title: str, detail: str, refresh: int = 0) -> HttpResponse:
    """Return an error page that asks nobody: no session, no user, no context of a request."""
    context = {
        "status": status,
        "title": title,
        "detail": detail,
        "refresh": refresh,
        "request_id": logs.request_id.get(),
    }
    try:
        page = get_template("error.html").render(context)
    except Exception:  # the fault may be in the templates, or in the files they name
        logger.exception("the error page could not be made")
        language = get_language() or settings.LANGUAGE_CODE
        page = f"<!doctype html><html lang={language}><title>{title}</title><h1>{title}</h1><p>{detail}</p>"
    return HttpResponse(page, status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if isinstance(exception, UploadsBusy):
        page = _error(request, 503, "The server is busy", str(exception))
        page["Retry-After"] = "60"
        return page
    if isinstance(exception, RequestDataTooBig):
        detail = str(exception) if isinstance(exception, UploadRefused) else ""
        return _error(request, 413, gettext("The request is too large"), detail)
    return _error(request, 400, gettext("The request could not be understood"))


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _error(
        request, 403, gettext("You may not do this"), gettext("Ask a manager if you think you should.")
    )


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    if request.path.startswith("/api/"):
        body = {"type": "/problems/Forbidden", "title": "The page has expired; load it again", "status": 403}
        return JsonResponse(body, status=403, content_type="application/problem+json")
    return _error(
        request, 403, gettext("The page has expired"), gettext("Load it again, then repeat what you did.")
    )


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    is_api = request.path.startswith("/api/")
    return _error(request, 404, "There is no such thing" if is_api else gettext("There is no such page"))


def fault(request: HttpRequest) -> HttpResponse:
    """The last resort of every uncaught error, also of one raised by a middleware (the session's, for instance)."""
    error = sys.exc_info()[1]
    if isinstance(error, DATABASE_IS_AWAY):
        connection.close()
        return unavailable(request)
    title = gettext("Something went wrong on the server")
    if request.path.startswith("/api/"):
        body = {"type": "/problems/Fault", "title": title, "status": 500, "detail": "It was logged."}
        return JsonResponse(body, status=500, content_type="application/problem+json")
    now = timezone.now().strftime("%Y-%m-%d %H:%M:%S UTC")
    detail = gettext(
        "The error was logged. Try again; if it happens again, tell the operator of this server that it was at %(now)s."
    ) % {"now": now}
    return _error_without_database(500, title, detail)


@login_not_required
def alive(request: HttpRequest) -> HttpResponse:
    """Answer without touching anything: the web process lives, and says which stack's it is."""
    return HttpResponse(f"{settings.STACK}\n", content_type="text/plain; charset=utf-8")


@login_not_required
def ready(request: HttpRequest) -> HttpResponse:
    """Say whether a judgment can be stored, and what else is wrong: 503 where it cannot be."""
    found = watch.health()
    status = 503 if found.status == "unavailable" else 200
    return JsonResponse({"status": found.status, "checks": found.checks}, status=status)
