"""The managers' pages of accounts: who there is, who is invited, and what may be done with one of them."""

from typing import Any

from django import forms
from django.contrib import messages
from django.core.paginator import Paginator
from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.db.models.functions import Now
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.http import urlencode
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from judging.models import Assessor, Campaign, ImportedName, Participant
from judging.services.access import managers_only
from judging.services.errors import Refused
from touchstone import links, users
from touchstone.letters.queueing import letters_are_sent
from touchstone.models import AccountLink, User, user_of
from touchstone.sign_on import identity_of

PAGE = 25
SHOWN_INVITATIONS = 50
SHOWN_CAMPAIGNS = 200
# Which accounts the list shows; the first is the usual.
ONLY = [("", "open accounts"), ("closed", "closed accounts"), ("crowd", "crowd and imported"), ("all", "all")]
TIERS = ["gold", "silver", "bronze"]


class UsersFilter(forms.Form):
    q = forms.CharField(label="Name or address contains", max_length=150, required=False)
    role = forms.ChoiceField(label="Role", choices=[("", "every role"), *User.Role.choices], required=False)
    only = forms.ChoiceField(label="Show", choices=ONLY, required=False)


class InviteForm(forms.Form):
    role = forms.ChoiceField(label="Role", choices=User.Role.choices, initial=User.Role.ASSESSOR)
    email = forms.EmailField(
        label="E-mail", max_length=254, required=False, widget=forms.EmailInput(attrs={"autocomplete": "off"})
    )


class RoleForm(forms.Form):
    role = forms.ChoiceField(label="Role", choices=User.Role.choices)


# -- everybody ------------------------------------------------------------------------------------------------


@never_cache
@managers_only
def all_users(request: HttpRequest) -> HttpResponse:
    """All accounts and open invitations. A new invitation's link is in the answer to the form, and nowhere kept."""
    form = InviteForm(request.POST or None)
    context: dict[str, Any] = {"invite_form": form}
    status = 200
    if request.method == "POST":
        status = _invite(request, form, context)
    asked = UsersFilter(request.GET)
    chosen = asked.cleaned_data if asked.is_valid() else {}
    page = Paginator(_accounts(chosen), PAGE).get_page(request.GET.get("page"))
    people = list(page)
    tiers = _tiers(people, user_of(request))
    open_invitations = AccountLink.objects.filter(
        kind=links.INVITATION, used_at=None, revoked_at=None, expires_at__gt=Now()
    )
    context |= {
        "letters_are_sent": letters_are_sent(),
        "filter": asked,
        "page": page,
        "people": [(person, tiers.get(person.pk, [])) for person in people],
        "kept": urlencode({name: value for name, value in chosen.items() if value}),
        "invitations": open_invitations.select_related("created_by").order_by("-pk")[:SHOWN_INVITATIONS],
    }
    return render(request, "console/manager/users.html", context, status=status)


def _invite(request: HttpRequest, form: InviteForm, context: dict[str, Any]) -> int:
    """Make the invitation that was asked for; return the status of the answer."""
    if not form.is_valid():
        return 400
    try:
        link, token = links.invite(actor=user_of(request), **form.cleaned_data)
    except Refused as refusal:
        form.add_error("email", f"{refusal.title}.")
        return refusal.status
    context["made"] = link
    context["link"] = request.build_absolute_uri(links.path_of(link.kind, token))
    context["invite_form"] = InviteForm()
    return 201


def _accounts(chosen: dict[str, Any]) -> QuerySet[User]:
    found = User.objects.order_by("username", "pk")
    if words := chosen.get("q"):
        found = found.filter(
            Q(username__icontains=words) | Q(first_name__icontains=words) | Q(email__icontains=words)
        )
    if chosen.get("role"):
        found = found.filter(role=chosen["role"])
    only = chosen.get("only", "")
    if only == "all":
        return found
    if only == "closed":
        return found.filter(is_active=False)
    theirs = Assessor.objects.filter(user=OuterRef("pk")).filter(
        Exists(Participant.objects.filter(assessor=OuterRef("pk")))
        | Exists(ImportedName.objects.filter(assessor=OuterRef("pk")))
    )
    return found.filter(Exists(theirs)) if only == "crowd" else found.filter(~Exists(theirs), is_active=True)


def _tiers(people: list[User], viewer: User) -> dict[int, list[tuple[str, int]]]:
    """Return in how many campaigns that the viewer may see each of them judges, by tier."""
    seen = Assessor.objects.filter(user__in=people, campaign__in=Campaign.objects.visible_to(viewer))
    found: dict[int, list[tuple[str, int]]] = {}
    for person, tier, n in seen.values_list("user", "tier").annotate(n=Count("pk")).order_by("user"):
        found.setdefault(person, []).append((tier, n))
    for counts in found.values():
        counts.sort(key=lambda one: TIERS.index(one[0]))
    return found


@require_POST
@managers_only
def revoke(request: HttpRequest, link_id: int) -> HttpResponse:
    """End an invitation that nobody has used."""
    link = get_object_or_404(AccountLink, pk=link_id, kind=links.INVITATION)
    if links.revoke_link(link=link, actor=user_of(request)):
        messages.success(request, "The invitation was withdrawn: its link no longer works.")
    else:
        messages.info(request, "Nothing was changed: the invitation was already used or withdrawn.")
    return redirect("console:manage-users")


# -- one of them ----------------------------------------------------------------------------------------------


@never_cache
@managers_only
def one_user(request: HttpRequest, person_id: int) -> HttpResponse:
    """An account, where its person judges, and what may be done with it."""
    return _page(request, get_object_or_404(User, pk=person_id))


def _page(request: HttpRequest, person: User, status: int = 200, **more: Any) -> HttpResponse:
    seen = Campaign.objects.visible_to(user_of(request))
    judging = Assessor.objects.filter(user=person, campaign__in=seen).select_related("campaign")
    context = {
        "person": person,
        "role_form": RoleForm(initial={"role": person.role}),
        "identity": identity_of(person),
        "judging": judging.order_by("-campaign__created_at", "pk")[:SHOWN_CAMPAIGNS],
        **more,
    }
    return render(request, "console/manager/user.html", context, status=status)


@require_POST
@managers_only
def set_role(request: HttpRequest, person_id: int) -> HttpResponse:
    person = get_object_or_404(User, pk=person_id)
    form = RoleForm(request.POST)
    if not form.is_valid():
        raise Http404
    role = form.cleaned_data["role"]
    try:
        is_new = users.change_role(user=person, role=role, actor=user_of(request))
    except Refused as refusal:
        messages.error(request, f"{refusal.title}.")
    else:
        name = person.get_username()
        messages.success(request, f"{name} is {role} now." if is_new else f"{name} is {role} already.")
    if person == request.user:
        return redirect("home")  # this page may be theirs no more
    return redirect("console:manage-user", person_id=person_id)


@require_POST
@never_cache
@managers_only
def make_password_link(request: HttpRequest, person_id: int) -> HttpResponse:
    """A link for the person to set a password; it is in this answer, and nowhere kept."""
    person = get_object_or_404(User, pk=person_id, is_active=True)
    made, token = links.make_password_link(user=person, actor=user_of(request))
    link = request.build_absolute_uri(links.path_of(made.kind, token))
    return _page(request, person, 201, link=link, made=made)


@require_POST
@managers_only
def end_sessions(request: HttpRequest, person_id: int) -> HttpResponse:
    person = get_object_or_404(User, pk=person_id)
    ended = users.end_sessions(user=person, actor=user_of(request))
    name = person.get_username()
    words = f"{name} is logged out everywhere: sessions {ended.sessions}, API keys {ended.keys}, documents given back"
    messages.success(request, f"{words} {ended.leases}.")
    return redirect("console:manage-user", person_id=person_id)


@require_POST
@managers_only
def set_open(request: HttpRequest, person_id: int) -> HttpResponse:
    """Close the account, or open it again."""
    person = get_object_or_404(User, pk=person_id)
    is_open = request.POST.get("is_open")
    if is_open not in ("yes", "no"):
        raise Http404
    name = person.get_username()
    try:
        if is_open == "yes":
            users.open_account(user=person, actor=user_of(request))
            messages.success(request, f"The account of {name} is open again.")
        else:
            users.close_account(user=person, actor=user_of(request))
            messages.success(
                request, f"The account of {name} is closed: sessions and keys ended, no judgment was deleted."
            )
    except Refused as refusal:
        messages.error(request, f"{refusal.title}.")
    return redirect("console:manage-user", person_id=person_id)
