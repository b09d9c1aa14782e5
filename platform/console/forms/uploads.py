"""Forms of files that a manager brings: uploads of a collection, and what is known of a run."""

from typing import Any

from django import forms

from judging.models import Run
from judging.services.judgment_formats import DEFAULT_FORMAT, gold_format_choices


class SeveralFiles(forms.ClearableFileInput):
    allow_multiple_selected = True


class FilesField(forms.FileField):
    widget = SeveralFiles

    def clean(self, data: Any, initial: Any = None) -> list[Any]:
        files = data if isinstance(data, list | tuple) and data else [data or None]
        return [super(FilesField, self).clean(file, initial) for file in files]


MANUAL_LABEL = "Manual run: a person took part in making it"
MANUAL_HELP = (
    "Someone wrote the queries, or read results and changed the ranking. Ranked without judgments, such runs look "
    "worse than they are, so they can weigh more there."
)


class UploadForm(forms.Form):
    kind = forms.ChoiceField(
        label="Kind of file",
        choices=[
            ("topics", "Topics (TREC SGML or XML, TSV, JSONL)"),
            ("documents", "Documents (JSONL, CSV, TSV, BEIR, TREC <DOC>)"),
            ("runs", "Runs (TREC, several files at once)"),
            ("judgments", "Gold answers"),
            ("scores", "Scores of a model, 0 to 1 (TSV or TREC run)"),
        ],
    )  # what the collection lacks most is preselected: see missing_kind
    files = FilesField(label="Files (also .gz)")  # type: ignore[assignment]  # a field is no attribute of what declares it
    html = forms.BooleanField(label="Documents are HTML", required=False)
    gold_format = forms.ChoiceField(
        label="Format of the gold answers", required=False, choices=gold_format_choices
    )
    source_name = forms.CharField(label="Source of the gold answers", required=False, max_length=100)
    list_name = forms.CharField(label="Name of the scores", required=False, max_length=200)
    is_manual = forms.BooleanField(label="Manual runs: a person took part in making them", required=False)
    group = forms.CharField(label="Group of the runs", required=False, max_length=200)

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if cleaned.get("kind") == "scores" and cleaned.get("list_name") and len(cleaned.get("files", ())) > 1:
            self.add_error(
                "list_name",
                "one name cannot serve several files; leave it empty to name the scores after their files",
            )
        return cleaned

    def import_options(self) -> dict[str, Any]:
        """Return what the import of this kind of file is told besides the file."""
        if self.cleaned_data["kind"] == "documents":
            return {"is_html": self.cleaned_data["html"]}
        if self.cleaned_data["kind"] == "judgments":
            file_format = self.cleaned_data["gold_format"] or DEFAULT_FORMAT
            source_name = self.cleaned_data["source_name"]
            return {"as_gold": True, "source_name": source_name, "file_format": file_format}
        if self.cleaned_data["kind"] == "scores":
            return {"list_name": self.cleaned_data["list_name"]}
        if self.cleaned_data["kind"] == "runs":
            return {name: self.cleaned_data[name] for name in ("is_manual", "group")}
        return {}


def missing_kind(*, n_topics: int, n_documents: int, n_runs: int, n_gold: int) -> str:
    """Return which kind of file a collection needs next; one that has everything mostly gets another run."""
    if not n_topics:
        return "topics"
    if not n_documents:
        return "documents"
    return "judgments" if n_runs >= 2 and not n_gold else "runs"


class RunForm(forms.ModelForm):  # type: ignore[type-arg]  # Django takes none when it runs
    """What may be changed of a run: its words, and whether releases may carry it."""

    class Meta:
        model = Run
        fields = ["description", "group", "may_publish", "is_manual"]
        labels = {
            "may_publish": "Releases may contain this run",
            "is_manual": MANUAL_LABEL,
        }
        widgets = {"description": forms.Textarea(attrs={"rows": 3})}
