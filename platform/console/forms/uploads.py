"""Forms of files that a manager brings: uploads of a collection, and what is known of a run."""

from typing import Any

from django import forms

from judging.models import Run


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


class FilesForm(forms.Form):
    """An upload: files of any kind, several at once, or a zip of them. What each is, the look says."""

    files = FilesField(label="Files")  # type: ignore[assignment]  # a field is no attribute of what declares it


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
