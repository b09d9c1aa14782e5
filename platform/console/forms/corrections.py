"""Forms that correct what was imported: the words of a topic or a document, the grade of a gold answer."""

from typing import Any

from django import forms
from django.utils.html import escape

from judging.models import Document, GoldAnswer, Topic
from judging.services.corrections import LONGEST_WHY
from judging.services.judgment_formats import DIGITS
from judging.services.old_words import CampaignUse

LONGEST_TITLE = 1_000  # characters
LONGEST_TEXT = 200_000  # what is longer is corrected over the API
WITHDRAWN = "none"


class CorrectionForm(forms.Form):
    """What every correction has: the version that was looked at, and the reason."""

    version = forms.IntegerField(widget=forms.HiddenInput)
    why = forms.CharField(label="Reason", max_length=LONGEST_WHY, widget=forms.TextInput)


class OldWordsForm(forms.Form):
    """In which campaigns judgments on old words are asked for again."""

    again = forms.TypedMultipleChoiceField(
        label="Request judgments again", required=False, widget=forms.CheckboxSelectMultiple
    )

    def __init__(self, *arguments: Any, uses: list[CampaignUse], is_corrected: bool, **named: Any) -> None:
        """`is_corrected`: those on words that were corrected already; else all, by the correction to come."""
        super().__init__(*arguments, **named)
        choices = []
        for use in uses:
            n_items, n = (
                (use.n_old_items, use.n_old) if is_corrected else (use.n_judged_items, use.n_judgments)
            )
            if n and not use.is_closed:
                choices.append((str(use.campaign.pk), use_words(use, n_items, n)))
        field: Any = self.fields["again"]
        field.choices = choices
        if is_corrected:
            field.initial = [key for key, _ in choices]


def use_words(use: CampaignUse, n_items: int, n: int) -> str:
    """Return the choice in words."""
    more = " or more" if use.is_cut else ""
    judgments = "judgment" if n == 1 else "judgments"
    return (
        f"{use.campaign.name}: {n:,}{more} {judgments} of {n_items:,}{more} item{'s' if n_items != 1 else ''}"
    )


class TopicWordsForm(CorrectionForm):
    title = forms.CharField(label="Title", max_length=LONGEST_TEXT, widget=forms.TextInput)
    description = forms.CharField(
        label="Description", max_length=LONGEST_TEXT, required=False, widget=forms.Textarea(attrs={"rows": 4})
    )
    narrative = forms.CharField(
        label="Narrative", max_length=LONGEST_TEXT, required=False, widget=forms.Textarea(attrs={"rows": 6})
    )
    field_order = ("title", "description", "narrative", "why", "version")

    def __init__(self, *arguments: Any, row: Topic, **named: Any) -> None:
        initial = {name: getattr(row, name) for name in ("title", "description", "narrative", "version")}
        super().__init__(*arguments, **{**named, "initial": initial})

    def words(self) -> dict[str, Any]:
        """Return what is corrected, as the service takes it."""
        sent = self.cleaned_data
        return {
            name: sent[name] for name in ("title", "description", "narrative") if name in self.changed_data
        }


class DocumentWordsForm(CorrectionForm):
    title = forms.CharField(
        label="Title", max_length=LONGEST_TITLE, required=False, widget=forms.TextInput, strip=False
    )
    text = forms.CharField(
        label="Text",
        max_length=LONGEST_TEXT,
        required=False,
        widget=forms.Textarea(attrs={"rows": 16}),
        strip=False,
    )
    is_html = forms.BooleanField(label="The text is HTML", required=False)
    field_order = ("title", "text", "is_html", "why", "version")

    def __init__(self, *arguments: Any, row: Document, **named: Any) -> None:
        """Without its text if that is too long for a page."""
        self.source = row.html or row.text
        initial = {"title": row.title, "text": self.source, "is_html": bool(row.html), "version": row.version}
        super().__init__(*arguments, **{**named, "initial": initial})
        self.is_too_long = len(self.source) > LONGEST_TEXT
        if self.is_too_long:
            del self.fields["text"], self.fields["is_html"]

    def clean_text(self) -> str:
        """Browsers send other ends of lines than texts have."""
        return str(self.cleaned_data["text"]).replace("\r\n", "\n")

    def words(self) -> dict[str, Any]:
        """Return what is corrected, as the service takes it: the title is no HTML, whatever the text is."""
        sent = self.cleaned_data
        is_html = sent.get("is_html", False)
        found: dict[str, Any] = {"is_html": is_html}
        if sent["title"] != self.initial["title"]:
            found["title"] = escape(sent["title"]) if is_html else sent["title"]
        if "text" in sent and (sent["text"] != self.source or is_html != self.initial["is_html"]):
            found["text"] = sent["text"]
        return found


class GoldForm(CorrectionForm):
    grade = forms.TypedChoiceField(
        label="Grade",
        coerce=lambda value: None if value == WITHDRAWN else int(value),
        empty_value=None,
        choices=[*((str(grade), str(grade)) for grade in DIGITS), (WITHDRAWN, "none: withdraw the answer")],
    )
    field_order = ("grade", "why", "version")

    def __init__(self, *arguments: Any, row: GoldAnswer, **named: Any) -> None:
        grade = WITHDRAWN if row.grade is None else row.grade
        super().__init__(*arguments, **{**named, "initial": {"grade": grade, "version": row.version}})
