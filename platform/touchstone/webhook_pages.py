"""The page of a person's webhooks: make one, switch it off, have it tested, see what it was told."""

import uuid
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from judging.services.access import researchers_only
from judging.services.errors import Refused
from touchstone.api.webhooks import MOST_VERBS, allowed_hosts, change_webhook, make_webhook, test_webhook
from touchstone.models import Webhook, user_of

SHOWN, DELIVERIES_SHOWN = 20, 10


class WebhookForm(forms.Form):
    url = forms.CharField(
        label="Address", max_length=500, widget=forms.URLInput(attrs={"autocomplete": "off"})
    )
    verbs = forms.CharField(label="Events", max_length=2000, required=False)

    def clean_verbs(self) -> list[str]:
        verbs = [verb.strip() for verb in self.cleaned_data["verbs"].split(",") if verb.strip()]
        if len(verbs) > MOST_VERBS or any(len(verb) > 50 for verb in verbs):
            raise ValidationError(f"Up to {MOST_VERBS} events, each of up to 50 characters.")
        return verbs


@never_cache
@researchers_only
def webhooks(request: HttpRequest) -> HttpResponse:
    """My webhooks. The secret of a new one is shown in the answer to the request that made it, and not again."""
    form = WebhookForm(request.POST or None)
    context: dict[str, Any] = {"form": form, "hosts": allowed_hosts()}
    status = 200
    if request.method == "POST":
        status = 400
        if form.is_valid():
            try:
                context["made"] = make_webhook(user=user_of(request), **form.cleaned_data)
            except Refused as refusal:
                detail = f": {refusal}" if str(refusal) else ""
                form.add_error("url", f"{refusal.title}{detail}.")
            else:
                context["form"], status = WebhookForm(), 201
    webhooks = Webhook.objects.filter(user=user_of(request)).order_by("-is_active", "-created_at")[:SHOWN]
    context["webhooks"] = [
        (webhook, webhook.deliveries.select_related("event").order_by("-id")[:DELIVERIES_SHOWN])
        for webhook in webhooks
    ]
    return render(request, "account_webhooks.html", context, status=status)


@require_POST
@researchers_only
def switch(request: HttpRequest, webhook_id: uuid.UUID) -> HttpResponse:
    on = request.POST.get("is_active")
    if on not in ("yes", "no"):
        raise Http404
    _report(request, lambda webhook: change_webhook(webhook=webhook, actor=user_of(request), is_active=on == "yes"),
          webhook_id, "The webhook is on." if on == "yes" else "The webhook is off.")  # fmt: skip
    return redirect("account-webhooks")


@require_POST
@researchers_only
def test(request: HttpRequest, webhook_id: uuid.UUID) -> HttpResponse:
    _report(request, lambda webhook: test_webhook(webhook=webhook, actor=user_of(request)), webhook_id,
          "A test event is on its way; load this page again in a few seconds.")  # fmt: skip
    return redirect("account-webhooks")


def _report(request: HttpRequest, act: Any, webhook_id: uuid.UUID, words: Any) -> None:
    webhook = get_object_or_404(Webhook, pk=webhook_id, user=request.user)
    try:
        act(webhook)
    except Refused as refusal:
        messages.error(request, f"{refusal.title}.")
    else:
        messages.success(request, words)
