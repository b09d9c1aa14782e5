"""Who may see what. What one may not see looks like what does not exist."""

import functools
from collections.abc import Callable
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from touchstone.models import User

View = Callable[..., HttpResponse]


def managers_only(view: View) -> View:
    return _only(view, lambda user: user.may_manage)


def researchers_only(view: View) -> View:
    """Managers are researchers too."""
    return _only(view, lambda user: user.may_research)


def _only(view: View, may: Callable[[User], bool]) -> View:
    @functools.wraps(view)
    def guarded(request: HttpRequest, *arguments: Any, **named: Any) -> HttpResponse:
        if not isinstance(request.user, User) or not may(request.user):
            raise Http404
        return view(request, *arguments, **named)

    return guarded


# -- the same for requests of programs ------------------------------------------------------------------------


class ManagersOnly(BasePermission):
    """A request without a valid session or key is told so (401 or 403); to everybody else there is nothing here."""

    def has_permission(self, request: Request, view: Any) -> bool:
        return _known(request) and _exists_for(request.user.may_manage)


class ResearchersOnly(BasePermission):
    def has_permission(self, request: Request, view: Any) -> bool:
        return _known(request) and _exists_for(request.user.may_research)


def _known(request: Request) -> bool:
    return isinstance(request.user, User)


def _exists_for(may: bool) -> bool:
    if not may:
        raise Http404
    return True
