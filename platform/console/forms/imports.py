"""The form of a file that was looked at: what it is, and how it is read."""

from collections.abc import Mapping, Sequence
from typing import Any

from django import forms

from judging.encodings import ENCODINGS
from judging.formats.table import RUN_FORMATS
from judging.import_choices import KINDS, LABELS, LEFT_OUT, options_for
from judging.services.judgment_formats import DIGITS, gold_format_choices

FIELD_LABELS = {
    "id": "Id",
    "title": "Title",
    "text": "Text",
    "description": "Description",
    "narrative": "Narrative",
    "weight": "Weight",
    "topic": "Topic",
    "document": "Document",
    "assessor": "Assessor",
    "grade": "Grade",
    "probability": "Probability",
}
SEVERAL = ("text",)  # fields into which several columns may be joined
NUMBERED = "#"  # in the place of a column of ids


class CardForm(forms.Form):
    """What one file of an upload is, and how it is read. The fields follow from what the look found in it."""

    def __init__(
        self, *arguments: Any, card: Mapping[str, Any], campaigns: Sequence[Any], **named: Any
    ) -> None:
        self.card, self.chosen = card, card["choices"]
        super().__init__(*arguments, **named)
        self._add("kind", self._kind())
        if card.get("encodings"):
            self._add("encoding", _select("Encoding", _encodings(card), initial=self._initial("encoding")))
        if card.get("columns") and card.get("fields"):
            self._add_columns()
        kind = card["kind"]
        if kind == "documents" and card["name"].endswith(": pages"):
            self._add_joins_ids()
        elif kind == "documents":
            label = "The texts are HTML"
            self._add("is_html", forms.BooleanField(label=label, required=False, initial=card.get("is_html")))
        if kind == "judgments":
            self._add_grades(campaigns)
        if kind == "scores":
            self._add("list_name", _word("Name of the scores", self._initial("list_name")))
        if kind == "runs":
            formats = [(one.key, one.label) for one in RUN_FORMATS]
            self._add("file_format", _select("Format", formats, initial=card.get("file_format") or "run"))
            self._add("run_name", _word("Name of the run, if not the file's own", self._initial("run_name")))
            self._add("group", _word("Group of the run", self._initial("group")))
            label, initial = "Manual run: a person took part in making it", self._initial("is_manual")
            self._add("is_manual", forms.BooleanField(label=label, required=False, initial=initial))

    def _add(self, name: str, field: forms.Field) -> None:
        self.fields[name] = field

    def _initial(self, name: str) -> Any:
        return self.chosen.get(name)

    def _kind(self) -> forms.ChoiceField:
        card = self.card
        choices = [
            (kind, LABELS[kind]) for kind in KINDS if kind != "images" or card["taken_for"] == "images"
        ]
        if card["is_refused"]:
            choices = [(LEFT_OUT, "Leave this file out")]
        else:
            choices[-1] = LEFT_OUT, "Leave this file out"
        if not card["kind"]:
            choices.insert(0, ("", "Choose …"))
        return _select("This file is", choices, initial=card["kind"])

    # -- columns ----------------------------------------------------------------------------------------------

    def _add_columns(self) -> None:
        columns = [(column, column) for column in self.card["columns"]]
        mapping = self.card.get("mapping", {})
        for name in self.card["fields"]:
            chosen = list(mapping.get(name, ()))
            if name in SEVERAL:
                field: forms.Field = forms.MultipleChoiceField(
                    label=f"{FIELD_LABELS[name]}: one column or several",
                    choices=columns,
                    initial=chosen,
                    required=False,
                    widget=forms.CheckboxSelectMultiple,
                )
            else:
                first = ("", "none")
                choices = [first, *columns]
                if name == "id":
                    choices = [*columns, (NUMBERED, "no column: number the rows")]
                initial = (
                    NUMBERED if name == "id" and self.chosen.get("numbers_rows") else "".join(chosen[:1])
                )
                field = _select(FIELD_LABELS[name], choices, initial=initial)
            self._add(f"column_{name}", field)
        if "id" in self.card["fields"]:
            self._add_joins_ids()

    def _add_joins_ids(self) -> None:
        label, initial = "Replace white space in ids by _", self._initial("joins_ids")
        self._add("joins_ids", forms.BooleanField(label=label, required=False, initial=initial))

    def _add_grades(self, campaigns: Sequence[Any]) -> None:
        formats = gold_format_choices()
        read_as = self.card.get("file_format", "")
        if read_as not in dict(formats):
            formats.insert(0, ("", "Choose …"))
        self._add("file_format", _select("Format", formats, initial=read_as))
        given = _grade_map(self.chosen.get("grade_map", ""))
        for row in self.card.get("grades", ()):
            grade = row["grade"]
            label = f"{grade} ({row['n']:,} rows) becomes"
            choices = [*((str(digit), str(digit)) for digit in DIGITS), ("out", "left out")]
            if grade not in DIGITS:
                choices.insert(0, (str(grade), "Choose …"))
            initial = given.get(grade, str(grade))
            self._add(f"grade_{grade}", _select(label, choices, initial=initial or "out"))
        self._add("source_name", _word("Source of the grades", self._initial("source_name")))
        if campaigns:
            choices = [
                ("", "Gold answers"),
                *((str(one.pk), f"Judgments of {one.name}") for one in campaigns),
            ]
            self._add("campaign", _select("They become", choices, initial=self._initial("campaign")))
        lacks = self.card.get("lacks", {})
        if any(found["n"] for found in lacks.values()) or self.chosen.get("skips_unknown"):
            label = "Leave out rows of topics and documents that the collection lacks"
            initial = self._initial("skips_unknown")
            self._add("skips_unknown", forms.BooleanField(label=label, required=False, initial=initial))

    # -- what was chosen --------------------------------------------------------------------------------------

    def choices(self) -> dict[str, Any]:
        """Return what the look is told of this file: what differs from what it saw by itself."""
        sent, card = self.cleaned_data, self.card
        kind = sent["kind"]
        chosen: dict[str, Any] = {name: value for name, value in self.chosen.items() if name not in sent}
        chosen |= {
            name: sent[name]
            for name in ("encoding", "is_html", "list_name", "group", "is_manual", "run_name", "source_name",
                         "campaign", "skips_unknown", "joins_ids")
            if sent.get(name) not in (None, "", False) or (name == "is_html" in sent and card.get("is_html"))
        }  # fmt: skip
        if sent.get("file_format") and (
            sent["file_format"] != card["file_format"] or "file_format" in self.chosen
        ):
            chosen["file_format"] = sent["file_format"]
        chosen |= self._chosen_columns()
        chosen["grade_map"] = self._chosen_grades()
        if not chosen["grade_map"]:
            del chosen["grade_map"]
        chosen.pop("kind", None)
        if kind != card["kind"]:  # columns and grades were asked about another kind
            for name in ("mapping", "numbers_rows", "file_format", "grade_map"):
                chosen.pop(name, None)
        is_said = kind and (kind != card["taken_for"] or card["question"] or "kind" in self.chosen)
        return {**options_for(kind, chosen), **({"kind": kind} if is_said else {})}

    def _chosen_columns(self) -> dict[str, Any]:
        prefix = "column_"
        named = {name: value for name, value in self.cleaned_data.items() if name.startswith(prefix)}
        sent = {name.removeprefix(prefix): value for name, value in named.items()}
        if not sent:
            return {}
        mapping = {
            name: list(value) if isinstance(value, list) else [value]
            for name, value in sent.items()
            if value and value != NUMBERED
        }
        if sent.get("id") == NUMBERED:
            return {"mapping": mapping, "numbers_rows": True}
        before = {name: list(value) for name, value in self.card.get("mapping", {}).items()}
        return {} if mapping == before and "mapping" not in self.chosen else {"mapping": mapping}

    def _chosen_grades(self) -> str:
        pairs = []
        for name, value in self.cleaned_data.items():
            grade = name.removeprefix("grade_")
            if name.startswith("grade_") and value != grade:
                pairs.append(f"{grade}={'' if value == 'out' else value}")
        return ",".join(pairs)


def _select(label: str, choices: Sequence[tuple[str, str]], initial: Any) -> forms.ChoiceField:
    return forms.ChoiceField(label=label, choices=list(choices), initial=initial, required=False)


def _word(label: str, initial: Any) -> forms.CharField:
    return forms.CharField(
        label=label, max_length=200 if "grades" not in label else 100, required=False, initial=initial
    )


def _encodings(card: Mapping[str, Any]) -> list[tuple[str, str]]:
    named = [(one["encoding"], ENCODINGS.get(one["encoding"], one["encoding"])) for one in card["encodings"]]
    return named if card["choices"].get("encoding") else [("", "Choose …"), *named]


def _grade_map(text: str) -> dict[int, str]:
    """Return what the stored map makes of each grade, "" where it is left out."""
    pairs = [part.partition("=") for part in text.split(",") if part]
    return {int(grade): wanted for grade, _, wanted in pairs}
