"""Forms of the manager's pages."""

from typing import Any

from django import forms

from judging.models import Assessor, Campaign, Collection
from judging.services.campaigns import DEFAULT_GRADES


class CollectionForm(forms.ModelForm):
    class Meta:
        model = Collection
        fields = ["name", "description"]
        widgets = {"description": forms.Textarea(attrs={"rows": 3})}


class SeveralFiles(forms.ClearableFileInput):
    allow_multiple_selected = True


class FilesField(forms.FileField):
    widget = SeveralFiles

    def clean(self, data: Any, initial: Any = None) -> list[Any]:
        files = data if isinstance(data, list | tuple) and data else [data or None]
        return [super(FilesField, self).clean(file, initial) for file in files]


class UploadForm(forms.Form):
    kind = forms.ChoiceField(
        label="What is it?",
        choices=[
            ("topics", "Topics (TREC SGML or XML, TSV, JSONL)"),
            ("documents", "Documents (JSONL, CSV, TSV, BEIR, TREC <DOC>)"),
            ("runs", "Runs (TREC, several files at once)"),
            ("judgments", "Gold answers (qrels)"),
        ],
    )
    files = FilesField(label="Files (.gz is fine)")
    html = forms.BooleanField(label="Documents are HTML", required=False)
    source_name = forms.CharField(label="Who gave the gold answers?", required=False, max_length=100)

    def import_options(self) -> dict[str, Any]:
        """Return what the import of this kind of file is told besides the file."""
        if self.cleaned_data["kind"] == "documents":
            return {"is_html": self.cleaned_data["html"]}
        if self.cleaned_data["kind"] == "judgments":
            return {"as_gold": True, "source_name": self.cleaned_data["source_name"]}
        return {}


class CampaignForm(forms.ModelForm):
    """A campaign with its scale: one line a grade, `value | label | gain`."""

    grades = forms.CharField(
        label="Grades (one a line: value | label | gain)",
        widget=forms.Textarea(attrs={"rows": 4}),
        initial="\n".join(f"{value} | {label} | {gain:g}" for value, label, gain in DEFAULT_GRADES),
    )
    relevant_grade = forms.IntegerField(label="Relevant from grade", min_value=1, max_value=9, initial=1)

    class Meta:
        model = Campaign
        fields = [
            "collection",
            "name",
            "guidelines",
            "judgments_per_item",
            "lease_seconds",
            "gold_check_rate",
            "gold_check_exposures",
        ]
        labels = {
            "guidelines": "Guidelines (Markdown)",
            "judgments_per_item": "Judgments per item",
            "lease_seconds": "Seconds an item is kept for its assessor",
            "gold_check_rate": "Share of unannounced gold checks (0 to 0.5)",
            "gold_check_exposures": "Times one gold check may be shown in all",
        }

    def clean_grades(self) -> list[tuple[int, str, float]]:
        grades = []
        for number, line in enumerate(filter(str.strip, self.cleaned_data["grades"].splitlines()), start=1):
            try:
                value, label, gain = (part.strip() for part in line.split("|"))
                grades.append((int(value), label, float(gain)))
            except ValueError as error:
                raise forms.ValidationError(
                    f"line {number}: expected 'value | label | gain', got {line!r}"
                ) from error
        values = [value for value, _, _ in grades]
        if values != list(range(len(values))) or not 2 <= len(values) <= 10:
            raise forms.ValidationError(
                f"grades must be 0, 1, 2, ... in order, two to ten of them; got {values}"
            )
        if any(not label or len(label) > 60 for _, label, _ in grades):
            raise forms.ValidationError("every grade needs a label of at most 60 characters")
        if any(not 0 <= gain < 1e9 for _, _, gain in grades):
            raise forms.ValidationError("gains must be 0 or more, and finite")
        return grades

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if cleaned.get("grades") and cleaned.get("relevant_grade", 1) >= len(cleaned["grades"]):
            self.add_error("relevant_grade", "is above the highest grade")
        return cleaned


class AssessorForm(forms.Form):
    username = forms.RegexField(r"^[\w.@+-]{1,150}$", label="User name")
    tier = forms.ChoiceField(choices=Assessor.Tier.choices, initial=Assessor.Tier.BRONZE)
