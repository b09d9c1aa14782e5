"""The forms of what was judged elsewhere: a sample, a file that is all there is, and gold."""

from typing import Any

from django import forms

from judging.gold_choices import GOLD_CHOICES, UNIFORM, UNKNOWN
from judging.samples import METHOD_CODES
from judging.services.errors import ImportRefused
from judging.services.judgment_formats import (
    REJECT,
    REPEATS,
    audit_format_choices,
    judgment_format,
    labels_format_choices,
    parse_grade_map,
    sample_format_choices,
)

CODES = {
    "recorded": "Take the probabilities as recorded",
    "track": "As the Million Query track's program: methods 0 and 2 are certain",
}


def imported_format_choices() -> list[tuple[str, str]]:
    """Return the formats of samples, and those of files that are all there is."""
    return [*sample_format_choices(), *labels_format_choices()]


class GradeMapForm(forms.Form):
    """A form with a map of grades."""

    grade_map = forms.CharField(label="Grade map", required=False, max_length=500)

    def clean_grade_map(self) -> str:
        text: str = self.cleaned_data["grade_map"]
        try:
            if text:
                parse_grade_map(text)
        except ImportRefused as refusal:
            raise forms.ValidationError(str(refusal)) from refusal
        return text


class SampleForm(GradeMapForm):
    """A file of prels, of a pool in strata, or of labels that are all there is; and how it is read."""

    file_format = forms.ChoiceField(label="Format", choices=imported_format_choices)
    file = forms.FileField(label="File (also .gz)", allow_empty_file=True)
    source_name = forms.CharField(label="Source of the judgments", required=False, max_length=100)
    repeats = forms.ChoiceField(
        label="If an assessor labelled a document twice", required=False, choices=list(REPEATS.items())
    )
    method_codes = forms.ChoiceField(
        label="Method codes of prels", required=False, choices=[(key, CODES[key]) for key in METHOD_CODES]
    )

    def import_options(self) -> dict[str, Any]:
        """Return what the import is told besides the file."""
        sent = self.cleaned_data
        options = {"file_format": sent["file_format"], "source_name": sent["source_name"]}
        if sent["grade_map"]:
            options["grade_map"] = sent["grade_map"]
        sample = judgment_format(sent["file_format"]).sample
        if sample is None:
            options |= {"complete": True, "repeats": sent["repeats"] or REJECT}
        if sample is not None and sample.has_method_codes and sent["method_codes"]:
            options["method_codes"] = sent["method_codes"]
        return options


class GoldForm(GradeMapForm):
    """A file of gold grades, and how their documents were chosen."""

    file_format = forms.ChoiceField(label="Format", choices=audit_format_choices, initial="gold")
    file = forms.FileField(label="File (also .gz)", allow_empty_file=True)
    source_name = forms.CharField(label="Source of the gold grades", required=False, max_length=100)
    gold_chosen = forms.ChoiceField(
        label="How the documents were chosen",
        choices=[(one.key, one.label) for one in GOLD_CHOICES],
        initial=UNKNOWN.key,
    )
    by_topic = forms.BooleanField(label="With the same chance within every topic", required=False)

    def clean(self) -> dict[str, Any]:
        sent = super().clean() or {}
        if sent.get("by_topic") and sent.get("gold_chosen") != UNIFORM.key:
            self.add_error("gold_chosen", f"“within every topic” belongs to “{UNIFORM.label}”")
        return sent

    def import_options(self) -> dict[str, Any]:
        """Return what the import is told besides the file."""
        sent = self.cleaned_data
        names = ("file_format", "source_name", "gold_chosen", "by_topic")
        given = {name: sent[name] for name in names}
        return given | {"as_gold": True} | ({"grade_map": sent["grade_map"]} if sent["grade_map"] else {})
