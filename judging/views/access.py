"""Who may see what. What one may not see looks like what does not exist.

The role decides what somebody may do, the collection's members what it may be done with. Both are asked here, for every
address that names a campaign or a collection, so that no page can forget it; lists ask `visible_to` of the models.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from judging.models import Campaign, Collection
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
        if not isinstance(request.user, User) or not may(request.user) or not sees(request.user, named):
            raise Http404
        return view(request, *arguments, **named)

    return guarded


def user_of(request: HttpRequest) -> User:
    """Return who asks, on pages that let only people in."""
    assert isinstance(request.user, User)  # noqa: S101 (the guard of the page let nobody else in)
    return request.user


def sees(user: User, named: Mapping[str, Any]) -> bool:
    """Whether the user may see the campaign and the collection that an address names."""
    return all(
        rows.visible_to(user).filter(pk=named[name]).exists()
        for name, rows in (("campaign_id", Campaign.objects), ("collection_id", Collection.objects))
        if name in named
    )


# -- the same for requests of programs ------------------------------------------------------------------------


class ManagersOnly(BasePermission):
    """A request without a valid session or key is told so (401 or 403); to everybody else there is nothing here."""

    def has_permission(self, request: Request, view: Any) -> bool:
        return _known(request) and _exists_for(request.user.may_manage and sees(request.user, view.kwargs))


class ResearchersOnly(BasePermission):
    def has_permission(self, request: Request, view: Any) -> bool:
        return _known(request) and _exists_for(request.user.may_research and sees(request.user, view.kwargs))


def _known(request: Request) -> bool:
    return isinstance(request.user, User)


def _exists_for(may: bool) -> bool:
    if not may:
        raise Http404
    return True
