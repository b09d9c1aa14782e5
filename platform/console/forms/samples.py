"""The form of a sample that was judged elsewhere."""

from typing import Any

from django import forms

from judging.samples import METHOD_CODES
from judging.services.errors import ImportRefused
from judging.services.judgment_formats import judgment_format, parse_grade_map, sample_format_choices

CODES = {
    "recorded": "Take the probabilities as recorded",
    "track": "As the Million Query track's program: methods 0 and 2 are certain",
}


class SampleForm(forms.Form):
    """A file of prels or of a pool in strata, and how it is read."""

    file_format = forms.ChoiceField(label="Format", choices=sample_format_choices)
    file = forms.FileField(label="File (also .gz)", allow_empty_file=True)
    source_name = forms.CharField(label="Source of the judgments", required=False, max_length=100)
    grade_map = forms.CharField(label="Grade map", required=False, max_length=500)
    method_codes = forms.ChoiceField(
        label="Method codes of prels", required=False, choices=[(key, CODES[key]) for key in METHOD_CODES]
    )

    def clean_grade_map(self) -> str:
        text: str = self.cleaned_data["grade_map"]
        try:
            if text:
                parse_grade_map(text)
        except ImportRefused as refusal:
            raise forms.ValidationError(str(refusal)) from refusal
        return text

    def import_options(self) -> dict[str, Any]:
        """Return what the import is told besides the file."""
        sent = self.cleaned_data
        options = {"file_format": sent["file_format"], "source_name": sent["source_name"]}
        if sent["grade_map"]:
            options["grade_map"] = sent["grade_map"]
        sample = judgment_format(sent["file_format"]).sample
        if sample is not None and sample.has_method_codes and sent["method_codes"]:
            options["method_codes"] = sent["method_codes"]
        return options
