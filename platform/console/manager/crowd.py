"""The manager's page of how people come in: invitations, the crowd market, consent, training."""

import secrets
import uuid
from typing import Any
from urllib.parse import urlsplit

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.core.validators import URLValidator
from django.db.models import Count, Exists, OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.forms.models import model_to_dict
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_POST

from judging.guidelines import guidelines_html
from judging.models import Assessor, Campaign, Invitation, Item, Participant
from judging.services import crowd, entry, training
from judging.services.access import managers_only
from judging.services.errors import Refused
from judging.services.item_frame import whole_texts
from touchstone.models import user_of

MOST_CODES = 1000
SHOWN_PEOPLE = 50  # those who wait for the manager first; *Assessors* lists everybody
MARKET_PLACEHOLDERS = "PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"


# -- forms ----------------------------------------------------------------------------------------------------


class InvitationForm(forms.Form):
    prefix = "invitation"
    note = forms.CharField(label="Note", max_length=100, required=False)
    tier = forms.ChoiceField(choices=Assessor.Tier.choices, initial=Assessor.Tier.BRONZE)
    team = forms.CharField(label="Team", max_length=60, required=False)
    quota = forms.IntegerField(
        label="Judgments per person, at most", min_value=1, max_value=1_000_000, required=False
    )
    max_uses = forms.IntegerField(label="Number of people", min_value=1, max_value=entry.MOST_USES, initial=1)
    days = forms.IntegerField(
        label="Days until it expires", min_value=1, max_value=entry.MOST_DAYS, initial=14
    )


class MarketForm(forms.Form):
    """How crowd workers take part. A HIT needs the market's sites, a study the code that the market expects."""

    prefix = "market"
    entry = forms.ChoiceField(
        label="Entry of crowd workers", choices=Campaign.Entry.choices, widget=forms.RadioSelect
    )
    judgments_per_participant = forms.IntegerField(
        label="Judgments per participant", min_value=1, max_value=100_000
    )
    market_origin = forms.CharField(label="Sites of the market", max_length=200, required=False)
    completion_code = forms.CharField(label="Completion code", max_length=60, required=False)
    completion_url = forms.CharField(label="Completion link", max_length=200, required=False)

    def clean_market_origin(self) -> str:
        return " ".join(_origin(word) for word in self.cleaned_data["market_origin"].split())

    def clean_completion_url(self) -> str:
        address: str = self.cleaned_data["completion_url"].strip()
        if address:
            URLValidator(schemes=["https"], message="a completion link begins with https://")(address)
        return address

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        way = cleaned.get("entry")
        if way == Campaign.Entry.HIT and "market_origin" in cleaned and not cleaned["market_origin"]:
            self.add_error(
                "market_origin",
                "Enter the market's sites: without them, no market can show the HIT or receive its result",
            )
        if way == Campaign.Entry.STUDY and "completion_code" in cleaned and not cleaned["completion_code"]:
            self.add_error(
                "completion_code", "Enter the code that the market gave you when you created the study"
            )
        return cleaned


def _origin(word: str) -> str:
    """Return the site of an address as browsers write it: scheme, host, port; plain HTTP on this machine only."""
    try:
        parts = urlsplit(word)
        host, port = parts.hostname or "", parts.port
    except ValueError as error:
        raise ValidationError(f"{word!r} is not an address") from error
    is_here = host in ("localhost", "127.0.0.1")
    bare = f"{parts.scheme}://{host}" + (f":{port}" if port else "")
    is_wrong = word.rstrip("/").lower() != bare or not (is_here or "." in host)
    if is_wrong or (parts.scheme != "https" and not (is_here and parts.scheme == "http")):
        raise ValidationError(f"write each site as https://www.example.com, without a path; got {word!r}")
    if not all(letter.isascii() and (letter.isalnum() or letter in "-.") for letter in host):
        raise ValidationError(f"{host!r} is not a host name")
    return bare


class ConsentForm(forms.Form):
    prefix = "consent"
    text = forms.CharField(
        label="Consent text (Markdown)",
        required=False,
        max_length=20_000,
        widget=forms.Textarea(attrs={"rows": 8}),
    )


class TrainingItemsForm(forms.Form):
    prefix = "items"
    n = forms.IntegerField(label="Training items", min_value=0, max_value=training.MOST_TRAINING_ITEMS)


class TrainingRulesForm(forms.Form):
    prefix = "rules"
    attempts = forms.IntegerField(label="Attempts", min_value=1, max_value=10)
    percent = forms.IntegerField(label="Right answers needed to pass, %", min_value=0, max_value=100)


class CodesForm(forms.Form):
    prefix = "codes"
    codes = forms.CharField(
        label="Codes, one per line", max_length=50 * MOST_CODES, widget=forms.Textarea(attrs={"rows": 4})
    )

    def clean_codes(self) -> list[str]:
        codes: list[str] = self.cleaned_data["codes"].split()
        if len(codes) > MOST_CODES:
            raise ValidationError(f"at most {MOST_CODES} codes at a time")
        return codes


# -- the manager's page ---------------------------------------------------------------------------------------


@managers_only
def manage(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """Who comes in how: invitations, the crowd market, consent, training."""
    return _page(request, _campaign(campaign_id))


def _campaign(campaign_id: uuid.UUID) -> Any:
    """Return the campaign with who came in, in one statement."""
    came = Participant.objects.filter(campaign=OuterRef("pk")).order_by().values("campaign")
    agreed = Assessor.objects.filter(campaign=OuterRef("pk"), consented_at__isnull=False)
    rows = Campaign.objects.select_related("collection", "scale").annotate(
        has_items=Exists(Item.objects.filter(campaign=OuterRef("pk"))),
        n_participants=Coalesce(Subquery(came.annotate(n=Count("pk")).values("n")), 0),
        n_named=Coalesce(Subquery(came.exclude(participant="").annotate(n=Count("pk")).values("n")), 0),
        n_consented=Coalesce(
            Subquery(agreed.order_by().values("campaign").annotate(n=Count("pk")).values("n")), 0
        ),
    )
    return get_object_or_404(rows, pk=campaign_id)


def _page(request: HttpRequest, campaign: Any, *, status: int = 200, **shown: Any) -> HttpResponse:
    """Render the page; `shown` takes the place of what it shows by default: a form with errors, checked codes."""
    there = {kind: reverse(f"judging:{kind}", args=[campaign.entry_key]) for kind in ("hit", "study")}
    items = list(campaign.training_items.select_related("topic", "document"))
    trainees = training.trainees(campaign=campaign) if items else []
    context = {
        "campaign": campaign,
        "invitations": [_invitation_row(request, row) for row in campaign.invitations.all()],
        "invitation_form": InvitationForm(),
        "market_form": MarketForm(initial=model_to_dict(campaign, fields=MarketForm.base_fields)),
        "hit_url": request.build_absolute_uri(there["hit"]),
        "study_url": f"{request.build_absolute_uri(there['study'])}?{MARKET_PLACEHOLDERS}",
        "n_participants": campaign.n_participants,
        "participants": campaign.participants.select_related("assessor__user").order_by("-id")[:SHOWN_PEOPLE],
        "n_named": campaign.n_named,
        "codes_form": CodesForm(),
        "consent_form": ConsentForm(initial={"text": campaign.consent}),
        "consent_html": mark_safe(guidelines_html(campaign.consent)),
        "n_consented": campaign.n_consented,
        "training_items": [(item, whole_texts(item, campaign)) for item in items],
        "training_is_fixed": bool(items) and training.is_fixed(campaign),
        "items_form": TrainingItemsForm(initial={"n": len(items)}),
        "rules_form": TrainingRulesForm(
            initial={
                "attempts": campaign.training_attempts,
                "percent": round(100 * campaign.training_pass_share),
            }
        ),
        "trainees": trainees[:SHOWN_PEOPLE],
        "n_trainees": len(trainees),
        **shown,
    }
    return render(request, "console/manager/crowd.html", context, status=status)


def _invitation_row(request: HttpRequest, row: Invitation) -> dict[str, Any]:
    link = request.build_absolute_uri(reverse("judging:join", args=[row.token]))
    if row.revoked_at is not None:
        state = "revoked"
    elif row.n_used >= row.max_uses:
        state = "used up"
    elif row.expires_at <= timezone.now():
        state = "expired"
    else:
        state = "open"
    return {"row": row, "link": link, "state": state}


def _redirect(campaign_id: uuid.UUID, part: str) -> HttpResponse:
    return redirect(f"{reverse('console:manage-entry', args=[campaign_id])}#{part}")


@require_POST
@managers_only
def invite(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    campaign, form = _campaign(campaign_id), InvitationForm(request.POST)
    if not form.is_valid():
        return _page(request, campaign, status=400, invitation_form=form)
    entry.create_invitation(campaign=campaign, user=user_of(request), **form.cleaned_data)
    messages.success(request, "The link is ready: copy it from the list and pass it on.")
    return _redirect(campaign_id, "invitations")


@require_POST
@managers_only
def revoke(request: HttpRequest, campaign_id: uuid.UUID, invitation_id: int) -> HttpResponse:
    invitation = get_object_or_404(Invitation, pk=invitation_id, campaign_id=campaign_id)
    entry.revoke_invitation(invitation=invitation, user=user_of(request))
    messages.success(request, "The link no longer works. Assessors who joined through it stay.")
    return _redirect(campaign_id, "invitations")


@require_POST
@managers_only
def set_market(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    campaign, form = _campaign(campaign_id), MarketForm(request.POST)
    if not form.is_valid():
        return _page(request, campaign, status=400, market_form=form)
    crowd.set_market(campaign=campaign, user=user_of(request), **form.cleaned_data)
    messages.success(request, "Saved the entry of crowd workers.")
    return _redirect(campaign_id, "market")


@require_POST
@managers_only
def check_codes(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """Say whose the pasted completion codes are, and how much each has judged."""
    campaign, form = _campaign(campaign_id), CodesForm(request.POST)
    if not form.is_valid():
        return _page(request, campaign, status=400, codes_form=form)
    checked = crowd.whose_codes(campaign=campaign, codes=form.cleaned_data["codes"])
    return _page(request, campaign, codes_form=form, checked_codes=checked)


@require_POST
@managers_only
def erase(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    campaign = _campaign(campaign_id)
    if request.POST.get("sure") != "yes":
        messages.error(request, "Nothing was erased: tick the box first.")
        return _redirect(campaign_id, "market")
    erased = crowd.erase_market_names(campaign=campaign, user=user_of(request))
    messages.success(
        request, f"Erased the market's names of {erased} participant{'' if erased == 1 else 's'}."
    )
    return _redirect(campaign_id, "market")


@require_POST
@managers_only
def set_consent(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    campaign, form = _campaign(campaign_id), ConsentForm(request.POST)
    if not form.is_valid():
        return _page(request, campaign, status=400, consent_form=form)
    entry.set_consent_text(campaign=campaign, text=form.cleaned_data["text"], user=user_of(request))
    messages.success(request, "Saved the consent text.")
    return _redirect(campaign_id, "consent")


@require_POST
@managers_only
def choose_training(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    campaign, form = _campaign(campaign_id), TrainingItemsForm(request.POST)
    if not form.is_valid():
        return _page(request, campaign, status=400, items_form=form)
    n = form.cleaned_data["n"]
    try:
        training.choose_training_items(
            campaign=campaign, n=n, seed=secrets.randbelow(2**31), user=user_of(request)
        )
    except Refused as refusal:
        form.add_error("n", f"{refusal.title}: {refusal}.")
        return _page(request, campaign, status=refusal.status, items_form=form)
    messages.success(request, f"{n} training items were chosen." if n else "Training was switched off.")
    return _redirect(campaign_id, "training")


@require_POST
@managers_only
def set_training_rules(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    campaign, form = _campaign(campaign_id), TrainingRulesForm(request.POST)
    if not form.is_valid():
        return _page(request, campaign, status=400, rules_form=form)
    training.set_training_rules(
        campaign=campaign,
        attempts=form.cleaned_data["attempts"],
        pass_share=form.cleaned_data["percent"] / 100,
        user=user_of(request),
    )
    messages.success(request, "Saved the rules of the training.")
    return _redirect(campaign_id, "training")


@require_POST
@managers_only
def set_explanations(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    campaign = _campaign(campaign_id)
    sent = {
        item.position: request.POST[f"explanation-{item.position}"].replace("\r\n", "\n")[:5000]
        for item in campaign.training_items.all()
        if f"explanation-{item.position}" in request.POST
    }
    training.set_explanations(campaign=campaign, texts=sent, user=user_of(request))
    messages.success(request, "Saved the explanations.")
    return _redirect(campaign_id, "training")


@require_POST
@managers_only
def grant_attempt(request: HttpRequest, campaign_id: uuid.UUID, assessor_id: int) -> HttpResponse:
    assessor = get_object_or_404(
        Assessor.objects.select_related("campaign", "user"), pk=assessor_id, campaign_id=campaign_id
    )
    training.grant_attempt(assessor=assessor, user=user_of(request))
    messages.success(request, f"{assessor.user.get_username()} may repeat the training once.")
    return _redirect(campaign_id, "training")
