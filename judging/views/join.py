"""The two pages people meet on their way in: the invitation, and what they agree to."""

import uuid
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.safestring import mark_safe
from django.utils.translation import gettext

from judging.forms import NewAccountForm
from judging.guidelines import guidelines_html
from judging.models import Assessor, Campaign
from judging.services import assign, entry
from judging.services.errors import InvitationUnusable, UserNameTaken
from judging.services.refusal_texts import texts_of
from touchstone.models import User


@login_not_required
def join(request: HttpRequest, token: uuid.UUID) -> HttpResponse:
    """Open an invitation: join as who one is, or with a new account. The only place where accounts make themselves."""
    try:
        return _join(request, token)
    except InvitationUnusable as refusal:
        return render(
            request, "judging/entry_gone.html", {"title": texts_of(refusal)[0]}, status=refusal.status
        )


def _join(request: HttpRequest, token: uuid.UUID) -> HttpResponse:
    user = request.user
    if isinstance(user, User):
        known = entry.assessor_by_invitation(token=token, user=user)
        if known is not None:
            return redirect("judging:judge", campaign_id=known.campaign_id)
    invitation = entry.usable_invitation(token=token)
    context: dict[str, Any] = {"invitation": invitation, "campaign": invitation.campaign}
    if isinstance(user, User):
        if request.method == "POST":
            return _admit(request, entry.join(token=token, user=user))
        return render(request, "judging/join.html", context)
    if not settings.PASSWORD_LOGIN:  # the page offers the company's account alone
        return render(request, "judging/join.html", context, status=403 if request.method == "POST" else 200)
    if request.method != "POST":
        context["form"] = NewAccountForm(initial={"username": entry.propose_username()})
        return render(request, "judging/join.html", context)
    form = NewAccountForm(request.POST)
    if form.is_valid():
        try:
            assessor = entry.join_as_new_user(
                token=token, username=form.cleaned_data["username"], password=form.cleaned_data["password"]
            )
        except UserNameTaken:
            taken = gettext("Somebody already has this user name. You could use %(name)s.")
            form.add_error("username", taken % {"name": entry.propose_username()})
        else:
            login(request, assessor.user)
            return _admit(request, assessor)
    return render(request, "judging/join.html", {**context, "form": form}, status=400)


def _admit(request: HttpRequest, assessor: Assessor) -> HttpResponse:
    name = assessor.campaign.name
    if assessor.campaign.state != Campaign.State.OPEN:
        joined = gettext("You have joined %(name)s. It is not open yet; it appears here when it is.")
        messages.success(request, joined % {"name": name})
        return redirect("judging:home")
    return redirect(entry.next_gate(assessor) or "judging:judge", campaign_id=assessor.campaign_id)


def consent(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """What one agrees to before judging, and the button that does."""
    assessor = assign.assessor_of(user=request.user, campaign_id=campaign_id)
    if request.method == "POST":
        entry.agree(assessor=assessor)
    if entry.next_gate(assessor) != "judging:consent" and (
        request.method == "POST" or not assessor.campaign.consent
    ):
        return redirect(entry.next_gate(assessor) or "judging:judge", campaign_id=campaign_id)
    text = mark_safe(guidelines_html(assessor.campaign.consent))  # noqa: S308 (sanitised)
    context = {"campaign": assessor.campaign, "assessor": assessor, "text": text}
    return render(request, "judging/consent.html", context)
