"""Who may see what. What one may not see looks like what does not exist.

The role decides what somebody may do, the collection's members what it may be done with. Both are asked here, for every
address that names a campaign or a collection, so that no page can forget it; lists ask `visible_to` of the models.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any

from django.db.models import Q, QuerySet, TextField
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast
from django.http import Http404, HttpRequest, HttpResponseBase
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from judging.models import Campaign, Collection, Import
from touchstone.models import Job, User, user_of

View = Callable[..., HttpResponseBase]


def managers_only(view: View) -> View:
    return _guard(view, lambda user: user.may_manage)


def researchers_only(view: View) -> View:
    """Managers are researchers too."""
    return _guard(view, lambda user: user.may_research)


def _guard(view: View, may: Callable[[User], bool]) -> View:
    @functools.wraps(view)
    def wrapper(request: HttpRequest, *arguments: Any, **named: Any) -> HttpResponseBase:
        user = request.user
        if not isinstance(user, User) or not may(user) or not sees(user, named):
            raise Http404
        return view(request, *arguments, **named)

    return wrapper


def sees(user: User, named: Mapping[str, Any]) -> bool:
    """Whether the user may see the campaign, the collection, or the import alone, that an address names."""
    if "import_id" in named and "collection_id" not in named:
        visible = Import.objects.filter(collection__in=Collection.objects.visible_to(user))
        return visible.filter(pk=named["import_id"]).exists()
    return all(
        rows.visible_to(user).filter(pk=named[name]).exists()
        for name, rows in (("campaign_id", Campaign.objects), ("collection_id", Collection.objects))
        if name in named
    )


def sees_with_deleted(user: User, named: Mapping[str, Any]) -> bool:
    """The same with what was deleted."""
    collections = Collection.objects.open_to(user)
    return all(
        rows.filter(pk=named[name]).exists()
        for name, rows in (
            ("campaign_id", Campaign.objects.filter(collection__in=collections)),
            ("collection_id", collections),
        )
        if name in named
    )


# What researchers may ask for; of other kinds they see what they queued themselves.
RESEARCH_JOBS = ("analysis", "reuse", "release", "rounds", "run-upload")
OF_ONE_PERSON = ("release", "run-upload")


def visible_jobs(user: User) -> QuerySet[Job]:
    """Return the jobs whose payload names what the user may see; if it names nothing, those they queued themselves."""
    if not user.may_research:
        return Job.objects.none()
    named = {
        name: rows.visible_to(user).annotate(text=Cast("pk", TextField())).values("text")
        for name, rows in (("campaign", Campaign.objects), ("collection", Collection.objects))
    }
    found = Job.objects.annotate(
        # Cast, else "is null" would ask whether the key is there: a null is there, too.
        named_campaign=Cast(KeyTextTransform("campaign", "payload"), TextField()),
        named_collection=Cast(KeyTextTransform("collection", "payload"), TextField()),
        named_second=Cast(KeyTextTransform("second_campaign", "payload"), TextField()),
    ).filter(
        Q(named_second=None) | Q(named_second__in=named["campaign"]),
        Q(named_campaign__in=named["campaign"])
        | Q(named_campaign=None, named_collection__in=named["collection"])
        | Q(named_campaign=None, named_collection=None, requested_by=user),
    )
    return found if user.may_manage else found.filter(Q(kind__in=RESEARCH_JOBS) | Q(requested_by=user))


def stoppable_jobs(user: User) -> QuerySet[Job]:
    """Return the jobs that the user may stop. No researcher stops another's release or upload of a run."""
    found = visible_jobs(user)
    return found if user.may_manage else found.exclude(~Q(requested_by=user), kind__in=OF_ONE_PERSON)


# -- the same for requests of programs ------------------------------------------------------------------------


class ManagersOnly(BasePermission):
    """A request without a valid session or key is told so (401 or 403); to everybody else there is nothing here."""

    def has_permission(self, request: Request, view: Any) -> bool:
        return _is_logged_in(request) and _exists_for(
            user_of(request).may_manage and sees(user_of(request), view.kwargs)
        )


class ResearchersOnly(BasePermission):
    def has_permission(self, request: Request, view: Any) -> bool:
        return _is_logged_in(request) and _exists_for(
            user_of(request).may_research and sees(user_of(request), view.kwargs)
        )


class ManagersChange(BasePermission):
    """Researchers read, managers change."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if not _is_logged_in(request):
            return False
        user = user_of(request)
        may = user.may_research if request.method in SAFE_METHODS else user.may_manage
        return _exists_for(may and sees(user, view.kwargs))


class RestorersOnly(BasePermission):
    """Managers, also where the campaign or collection of the address is deleted."""

    def has_permission(self, request: Request, view: Any) -> bool:
        return _is_logged_in(request) and _exists_for(
            user_of(request).may_manage and sees_with_deleted(user_of(request), view.kwargs)
        )


def _is_logged_in(request: Request) -> bool:
    return isinstance(request.user, User)


def _exists_for(may: bool) -> bool:
    if not may:
        raise Http404
    return True
