"""The page of one's API keys."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from touchstone.authentication import (
    MOST_TOKENS,
    TokenNameTaken,
    TooManyTokens,
    make_token,
    revoke_token,
    tokens_of,
)
from touchstone.models import ApiToken, User, all_scopes

LONGEST_LIFE = 366
SHOWN = 50


class TokenForm(forms.Form):
    name = forms.CharField(
        label="Name", max_length=100, widget=forms.TextInput(attrs={"autocomplete": "off"})
    )
    days = forms.IntegerField(label="Valid for (days)", min_value=1, max_value=LONGEST_LIFE, initial=90)
    scopes = forms.MultipleChoiceField(
        label="Scopes",
        choices=ApiToken.Scope.choices,
        initial=all_scopes,
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": "Choose at least one scope."},
    )


@never_cache
def tokens(request: HttpRequest) -> HttpResponse:
    """My keys. A new one is shown in the answer to the request that made it, and nowhere kept."""
    user = request.user
    assert isinstance(user, User)  # noqa: S101 (LoginRequiredMiddleware let nobody else in)
    form = TokenForm(request.POST or None)
    context: dict[str, Any] = {"form": form, "most": MOST_TOKENS}
    status = 200
    if request.method == "POST":
        status = 400
        if form.is_valid():
            try:
                context["made"], context["key"] = make_token(user=user, **form.cleaned_data)
            except (TooManyTokens, TokenNameTaken) as refusal:
                form.add_error("name", f"{refusal.title}.")
            else:
                context["form"], status = TokenForm(), 201
    context["tokens"] = tokens_of(user)[:SHOWN]
    return render(request, "account_tokens.html", context, status=status)


@require_POST
def revoke(request: HttpRequest, token_id: int) -> HttpResponse:
    token = get_object_or_404(ApiToken, pk=token_id, user=request.user)
    revoke_token(token=token, actor=token.user)
    messages.success(request, f"The key “{token.name}” was revoked.")
    return redirect("account-tokens")
