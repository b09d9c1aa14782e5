"""My account: name, address, password, time zone; each a form of its own, for everybody who is logged in."""

from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.password_validation import validate_password
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache

from judging.forms import password_field
from touchstone.api.rate_limits import Limit, count, give_back, longest_wait
from touchstone.links import make_address_link
from touchstone.logins import WINDOW, too_many_words
from touchstone.models import User, record, user_of
from touchstone.readers import zone_names
from touchstone.sign_on import identity_of


class AccountForm(forms.Form):
    """A part of the account; `part` names it in the page, `save` stores what was sent and returns what to say."""

    part = ""

    def __init__(self, data: Any = None, *, user: User, **named: Any) -> None:
        super().__init__(data, prefix=self.part, **named)
        self.user = user


class NameForm(AccountForm):
    part = "name"
    name = forms.CharField(
        label=_("Name"),
        max_length=150,
        required=False,
        widget=forms.TextInput(attrs={"autocomplete": "name"}),
    )

    def save(self) -> str:
        User.objects.filter(pk=self.user.pk).update(first_name=self.cleaned_data["name"])
        return gettext("Your name is stored.")


class ZoneForm(AccountForm):
    part = "zone"
    zone = forms.ChoiceField(label=_("Time zone"), required=False)

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        field: Any = self.fields["zone"]
        field.choices = [("", "UTC"), *((name, name.replace("_", " ")) for name in zone_names())]

    def save(self) -> str:
        User.objects.filter(pk=self.user.pk).update(time_zone=self.cleaned_data["zone"])
        return gettext("Your time zone is stored.")


class AddressForm(AccountForm):
    part = "address"
    email = forms.EmailField(
        label=_("E-mail"), max_length=254, widget=forms.EmailInput(attrs={"autocomplete": "email"})
    )

    def save(self) -> str:
        """Write to the address; it is the account's once the link in the letter is opened."""
        link = make_address_link(user=self.user, email=self.cleaned_data["email"])
        words = gettext("A letter with a link is on its way to %(email)s. Open it to use the address.")
        return words % {"email": link.email}


class OwnPassword(AccountForm):
    """Whatever lets somebody in asks for the present password; wrong ones are counted like those at the log-in."""

    def check_own(self, field: str) -> bool:
        """Return whether the password in this field is the user's; else say so beside it."""
        tried = count([Limit(f"own password {self.user.pk}", settings.LOGIN_TRIES, WINDOW)])
        wait = longest_wait(tried)
        if wait is not None:
            self.add_error(field, too_many_words(wait))
        elif not self.user.check_password(self.cleaned_data[field]):
            self.add_error(field, gettext("This is not your present password."))
        else:
            give_back(tried)
        return not self.errors


class PasswordForm(OwnPassword):
    part = "password"
    old = forms.CharField(
        label=_("Present password"),
        max_length=200,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )
    new = password_field(_("New password"))

    def clean_new(self) -> str:
        new: str = self.cleaned_data["new"]
        validate_password(new, self.user)
        return new

    def save(self) -> str:
        self.user.set_password(self.cleaned_data["new"])
        self.user.save(
            update_fields=["password"]
        )  # sessions, keys and leases end with it: touchstone/access.py
        record("changed the password", self.user, actor=self.user)
        return gettext("Your new password is stored. You were logged out everywhere else.")


FORMS: dict[str, type[NameForm | ZoneForm | AddressForm | PasswordForm]] = {
    form.part: form for form in (NameForm, ZoneForm, AddressForm, PasswordForm)
}


@never_cache
def account(request: HttpRequest) -> HttpResponse:
    """One's own account; a POST names the part that it changes."""
    user = user_of(request)
    known = {
        "name": {"name": user.first_name},
        "zone": {"zone": user.time_zone},
        "address": {"email": user.email},
    }
    made = {part: form(user=user, initial=known.get(part)) for part, form in FORMS.items()}
    status = 200
    if request.method == "POST":
        part = request.POST.get("part", "")
        if part not in FORMS or (part == "password" and not settings.PASSWORD_LOGIN):
            raise Http404
        form = made[part] = FORMS[part](request.POST, user=user)
        if form.is_valid() and (not isinstance(form, OwnPassword) or form.check_own("old")):
            messages.success(request, form.save())
            if part == "password":
                update_session_auth_hash(request, user)
            return redirect("account")
        status = 400
    return render(
        request,
        "account.html",
        {"forms": made, "has_password": user.has_usable_password(), "identity": identity_of(user)},
        status=status,
    )
