"""What somebody enters who gets an account, or a new password: on the pages of the front door."""

from typing import Any

from django import forms
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from touchstone.models import User


def password_field(label: Any, *, is_proposed: bool = False) -> forms.CharField:
    """Return a field for a password that is new, taken as it is typed; one that is proposed stands in it."""
    widget = forms.PasswordInput(attrs={"autocomplete": "new-password"}, render_value=is_proposed)
    return forms.CharField(label=label, max_length=200, strip=False, widget=widget)


class NewAccountForm(forms.Form):
    username = forms.RegexField(
        r"^[\w.@+-]{1,150}$",
        label=_("User name"),
        max_length=150,
        error_messages={"invalid": _("Use only letters, digits and . @ + - _")},
        widget=forms.TextInput(
            attrs={"autocomplete": "username", "autocapitalize": "none", "spellcheck": "false"}
        ),
    )
    password = password_field(_("Password"))
    repeated = password_field(_("Repeat the password"))

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        password, name = cleaned.get("password"), cleaned.get("username", "")
        if password:
            try:
                validate_password(password, User(username=name))
            except ValidationError as error:
                self.add_error("password", error)
            if "repeated" in cleaned and cleaned["repeated"] != password:
                self.add_error("repeated", gettext("This is not the same as the password above."))
        return cleaned


class NewPasswordForm(forms.Form):
    """A password that is proposed, or typed in its place; of an account that is there."""

    password = password_field(_("New password"), is_proposed=True)

    def __init__(self, *arguments: Any, user: User, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.user = user

    def clean_password(self) -> str:
        password: str = self.cleaned_data["password"]
        validate_password(password, self.user)
        return password
