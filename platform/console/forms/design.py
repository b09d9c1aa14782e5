"""Forms of the design and audit pages."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.html import format_html

from judging.models import Campaign
from sampling.design_fields import DESIGN_FIELDS, DesignField, FieldKind
from sampling.design_options import WHOLE_TOPICS
from sampling.measures.families import grade_gains
from sampling.measures.registry import WrongKind, parse_measure
from sampling.models import Draw
from sampling.questions import Design, QuestionRefused, parse_designed
from sampling.selections import selection_of
from sampling.services.calibrating import CalibrationRefused, gold_sources, with_source
from sampling.services.drawing import FEWEST_TO_LEARN_FROM, n_waiting
from touchstone.models import User


class Radios(forms.RadioSelect):
    """Radio buttons of which some may be out of reach: `closed` names these."""

    closed: frozenset[str] = frozenset()

    def create_option(self, name: str, value: Any, *arguments: Any, **named: Any) -> dict[str, Any]:
        option: dict[str, Any] = super().create_option(name, value, *arguments, **named)
        if str(value) in self.closed:
            option["attrs"]["disabled"] = True
        return option


class RadioField(forms.ChoiceField):
    """One of several, each with a sentence what it is for; what is not sent is the first."""

    widget = Radios

    def __init__(self, field: DesignField) -> None:
        self.rows = field.options()
        super().__init__(label=field.label, initial=self.rows[0].key, required=False)
        self.close({})

    def close(self, reasons: Mapping[str, str]) -> None:
        """Put these values out of reach, each with the reason in place of its sentence."""
        self.widget.closed = frozenset(reasons)
        self.choices = [
            (
                row.key,
                format_html('{} <span class="help">{}</span>', row.label, reasons.get(row.key, row.help)),
            )
            for row in self.rows
        ]

    def clean(self, value: Any) -> str:
        return super().clean(value) or str(self.initial)


class PercentField(forms.FloatField):
    """A share, shown and typed in percent; what is not sent is the usual one."""

    def __init__(self, field: DesignField) -> None:
        low, high = (round(100 * bound) for bound in field.bounds_on_screen)
        super().__init__(
            label=f"{field.label}, %",
            initial=_percent(field.default),
            min_value=low,
            max_value=high,
            required=False,
        )
        self.usual: float = field.default

    def clean(self, value: Any) -> float:
        percent = super().clean(value)
        return self.usual if percent is None else round(percent / 100, 9)


def _measure(field: DesignField) -> forms.CharField:
    attributes = {"list": "measures", "autocomplete": "off", "spellcheck": "false"}
    return forms.CharField(
        label=field.label,
        initial=field.initial,
        max_length=int(field.most),
        widget=forms.TextInput(attrs=attributes),
    )


def _count(field: DesignField) -> forms.IntegerField:
    low, high = (int(bound) for bound in field.bounds_on_screen)
    return forms.IntegerField(label=field.label, min_value=low, max_value=high, initial=field.initial)


def _scores(field: DesignField) -> forms.ChoiceField:
    return forms.ChoiceField(label=field.label, required=False)


def _source(field: DesignField) -> forms.ChoiceField:
    return forms.ChoiceField(
        label=field.label,
        required=False,
        error_messages={
            "invalid_choice": "there is no such campaign or collection with gold and these scores"
        },
    )


def _percent(share: float) -> str:
    return f"{100 * share:.9g}"


FORM_FIELDS: dict[FieldKind, Callable[[DesignField], forms.Field]] = {
    FieldKind.CHOICE: RadioField,
    FieldKind.MEASURE: _measure,
    FieldKind.COUNT: _count,
    FieldKind.SCORES: _scores,
    FieldKind.SOURCE: _source,
    FieldKind.SHARE: PercentField,
}
NOT_CALIBRATED = [("", "nothing: the rates below are assumed")]
# The runs are asked for by question: see `DesignForm.runs_of_question`.
ON_SCREEN = tuple(field for field in DESIGN_FIELDS if field.kind in FORM_FIELDS)
SHARES = frozenset(field.name for field in ON_SCREEN if field.kind is FieldKind.SHARE)


class DesignForm(forms.Form):
    """A design in plain words; with `earlier`, a top-up that keeps what the campaign's draws fix."""

    use_required_attribute = False  # a field out of sight must not stop the browser: the server checks
    run_a = forms.ChoiceField(label="Run A", required=False)
    run_b = forms.ChoiceField(label="Run B", required=False)
    run = forms.ChoiceField(label="Run", required=False)
    baseline = forms.ChoiceField(label="Baseline", required=False)
    candidates = forms.MultipleChoiceField(
        label="Candidates", required=False, widget=forms.CheckboxSelectMultiple
    )
    ranked = forms.MultipleChoiceField(
        label="Runs to rank", required=False, widget=forms.CheckboxSelectMultiple
    )

    def __init__(
        self,
        data: QueryDict | None = None,
        *,
        campaign: Campaign,
        user: User,
        earlier: Draw | None = None,
        **named: Any,
    ) -> None:
        own = {field.name: FORM_FIELDS[field.kind](field) for field in ON_SCREEN}
        if data is not None:  # what is not sent is as usual, and shown so
            data = data.copy()
            for name, field in own.items():
                if isinstance(field, RadioField | PercentField):
                    data.setdefault(name, field.initial)
        if earlier is not None:
            more = {"budget": math.ceil(1.5 * earlier.parameters["budget"])}
            named["initial"] = initial_of(earlier.parameters) | more | named.get("initial", {})
        super().__init__(data, **named)
        self.fields |= own
        self.campaign, self.user, self.earlier = campaign, user, earlier
        self._offer_runs()
        self._offer_priors()
        if earlier is not None:
            self.fields["selection"].disabled = True
            self.fields["selection"].initial = earlier.selection
            self.fields["topic_selection"].disabled = True
            self.fields["budget"].label = "Items in all"

    def _offer_runs(self) -> None:
        self.run_ids = list(self.campaign.collection.runs.values_list("run_id", flat=True))
        fields: dict[str, Any] = self.fields
        for name in DesignForm.base_fields:
            fields[name].choices = [(run_id, run_id) for run_id in self.run_ids]
        if len(self.run_ids) > 1:
            self.fields["run_b"].initial = self.run_ids[1]

    def _offer_priors(self) -> None:
        names = list(self.campaign.collection.score_lists.values_list("name", flat=True))
        fields: dict[str, Any] = self.fields
        fields["scores"].choices = [(name, name) for name in names] or [("", "none imported")]
        closed = {} if names else {"scores": "No scores are imported: upload them on the collection's page."}
        fields["calibrated_on"].choices = self._sources() if names else NOT_CALIBRATED
        self.too_early = why_not_learn(self.campaign, self.earlier)
        if self.too_early:
            closed["judgments"] = self.too_early
        prior = fields["prior"]
        if self.initial.get("prior") in closed:
            self.initial["prior"] = prior.initial
        prior.close(closed)

    def _sources(self) -> list[tuple[str, str]]:
        """Return what the scores may be calibrated on, that of an earlier batch even where the user may not see it."""
        found = {source.id: source.words for source in gold_sources(self.campaign, self.user)}
        before = self.earlier.parameters.get("calibrated_on", "") if self.earlier else ""
        if before:
            found.setdefault(before, "as the batch before")
        return [*NOT_CALIBRATED, *found.items()]

    # -- checks ---------------------------------------------------------------------------------------------

    def clean_measure(self) -> str:
        try:
            parsed = parse_designed(self.cleaned_data["measure"], str(self["topic_selection"].value()))
            relevant = parsed.relevant_grade or self.campaign.scale.relevant_grade
            grade_gains(parsed, self.campaign.scale.gains(), relevant)  # refuses a grade off the scale
            return parsed.name
        except WrongKind as error:
            if self["topic_selection"].value() == WHOLE_TOPICS:
                raise forms.ValidationError(str(error)) from error
            noun = parse_measure(self.cleaned_data["measure"]).kind.noun
            raise forms.ValidationError(
                f"is {noun}: a design is made for a mean over topics of a sum over documents or of a ratio. Draw for "
                "DCG@10 or nDCG@10, for example; other measures are estimated from the same judgments. Or draw a "
                "sample of whole topics (under Advanced)"
            ) from error
        except ValueError as error:
            raise forms.ValidationError(str(error)) from error

    def clean_depth(self) -> int:
        depth: int = self.cleaned_data["depth"]
        if self.earlier is not None and depth < self.earlier.parameters["depth"]:
            raise forms.ValidationError(
                f"must not be smaller than before: the earlier batch pooled {self.earlier.parameters['depth']} ranks"
            )
        return depth

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        self._check_runs(cleaned)
        self._check_expert_choices(cleaned)
        if "measure" in cleaned and "depth" in cleaned:
            cutoff = parse_measure(cleaned["measure"]).last_rank
            if cutoff > cleaned["depth"]:
                self.add_error(
                    "depth",
                    f"must be at least {cutoff}, the measure's cutoff: deeper ranks would never be judged",
                )
        if not self.errors:
            try:
                with_source(self.campaign, self.design(), self.user)
            except QuestionRefused as refusal:
                raise forms.ValidationError(str(refusal)) from refusal
            except CalibrationRefused as refusal:
                self.add_error("calibrated_on", str(refusal))
        return cleaned

    def _check_runs(self, cleaned: dict[str, Any]) -> None:
        question = cleaned.get("question")
        needed = {"pair": ["run_a", "run_b"], "system": ["run"], "baseline": ["baseline"]}.get(
            question or "", []
        )
        for name in needed:
            if not cleaned.get(name) and name not in self.errors:
                self.add_error(name, "choose a run")
        if question == "pair" and cleaned.get("run_a") and cleaned.get("run_a") == cleaned.get("run_b"):
            self.add_error("run_b", "choose two different runs")
        if question == "ranking" and len(cleaned.get("ranked", [])) == 1:
            self.add_error("ranked", "choose two or more, or none for all")

    def _check_expert_choices(self, cleaned: dict[str, Any]) -> None:
        selection = selection_of(cleaned["selection"]) if "selection" in cleaned else None
        if cleaned.get("method") == "default" and selection and selection.with_replacement:
            if self.earlier is not None:
                self.add_error(
                    "method", "this campaign is drawn with replacement: choose the paper's Q* or naive"
                )
            else:
                self.add_error(
                    "selection",
                    "the default method draws each document at most once: choose another method or another selection",
                )
        is_sum = "measure" not in cleaned or parse_measure(cleaned["measure"]).kind.is_sum
        has_whole_topics = cleaned.get("topic_selection") == WHOLE_TOPICS
        if not is_sum and not has_whole_topics and cleaned.get("method", "default") != "default":
            self.add_error(
                "method",
                f"is for sums over documents, as DCG@10: for {cleaned['measure']} choose the default",
            )
        if cleaned.get("prior") == "scores":
            if not cleaned.get("scores"):
                self.add_error("prior", "no scores are imported: upload them on the collection's page")
            if cleaned.get("sensitivity", 1.0) + cleaned.get("specificity", 1.0) <= 1:
                self.add_error(
                    "specificity",
                    "the two together must be above 100 %: otherwise the scores mean the opposite",
                )
        if cleaned.get("prior") == "judgments":
            if self.too_early:
                self.add_error("prior", f"{self.too_early} Choose the prior from the ranks of all runs")
            elif not (selection and selection.may_learn):
                self.add_error(
                    "prior",
                    "learning from judgments needs a selection that draws each document independently",
                )
            elif cleaned.get("method") != "default":
                self.add_error(
                    "prior", "only the default method learns from judgments: choose one or the other"
                )
        if cleaned.get("other_runs_share", 0.0) + cleaned.get("uniform_share", 0.0) >= 1:
            self.add_error("uniform_share", "both shares together must stay below 100 %")

    # -- the design -----------------------------------------------------------------------------------------

    def runs_of_question(self) -> tuple[str, ...]:
        asked = self.cleaned_data
        if asked["question"] == "pair":
            return asked["run_a"], asked["run_b"]
        if asked["question"] == "system":
            return (asked["run"],)
        if asked["question"] == "baseline":
            others = asked["candidates"] or self.run_ids
            return (asked["baseline"], *(run_id for run_id in others if run_id != asked["baseline"]))
        return tuple(asked["ranked"]) if asked["question"] == "ranking" else ()

    def design(self) -> Design:
        asked = self.cleaned_data
        given = {field.name: asked[field.name] for field in ON_SCREEN}
        for name in ("scores", "calibrated_on"):
            given[name] = asked[name] if asked["prior"] == "scores" else ""
        return Design(runs=self.runs_of_question(), **given)

    def opens_advanced(self) -> bool:
        """Return whether something under "Advanced" is wrong or not as usual, so that it should be seen."""
        optional = [field for field in ON_SCREEN if not field.is_required]
        if any(field.name in self.errors for field in optional):
            return True
        usual = {
            field.name: _percent(field.default) if field.name in SHARES else field.default
            for field in optional
        }
        del usual["scores"]  # one of those imported is always chosen
        return any(str(self[name].value() or "") not in ("", value) for name, value in usual.items())


def why_not_learn(campaign: Campaign, earlier: Draw | None) -> str:
    """Return why sizes cannot be learned from this campaign's judgments now; empty where they can."""
    if earlier is None:
        return "Only for a top-up: nothing is judged yet."
    first = campaign.draws.exclude(learned_from=None).order_by("batch").first()
    learned_from = (first and first.learned_from) or earlier.batch
    drawn = campaign.items.filter(draw_entries__draw__batch__lte=learned_from, draw_entries__times__gte=1)
    judged = drawn.filter(judgments__grade__isnull=False).values("pk").distinct()
    n_judged = judged[:FEWEST_TO_LEARN_FROM].count()  # more need not be counted
    if n_judged == 0:
        return "Nobody has judged yet."
    waiting = n_waiting(campaign, learned_from)
    if waiting:
        items = "1 item waits" if waiting == 1 else f"{waiting} items wait"
        return f"{items} for judgments: the order of judging must not influence the next draw."
    if n_judged < FEWEST_TO_LEARN_FROM:
        return f"{n_judged} judged so far: learning needs {FEWEST_TO_LEARN_FROM} judged items."
    return ""


def pairs(design: Design) -> list[tuple[str, str]]:
    """Return the design as names and values that the form reads: a query, or what a page carries on.

    >>> pairs(Design("ranking", ("b", "a"), "P@1", 1, 10))[-2:]
    [('ranked', 'b'), ('ranked', 'a')]
    """
    fields = []
    for name, value in initial_of(design.parameters()).items():
        values = value if isinstance(value, list) else [value]
        fields += [(name, str(each)) for each in values if each != ""]
    return fields


def initial_of(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the form's values that mean the design with these parameters (`Design.parameters`).

    >>> initial_of({"question": "pair", "runs": ["a", "b"], "depth": 20, "uniform_share": 0.05})
    {'question': 'pair', 'depth': 20, 'uniform_share': '5', 'run_a': 'a', 'run_b': 'b'}
    """
    names = {field.name for field in ON_SCREEN}
    kept = {name: value for name, value in parameters.items() if name in names}
    fields = {name: _percent(value) if name in SHARES else value for name, value in kept.items()}
    runs = list(parameters["runs"])
    if parameters["question"] == "pair":
        return fields | {"run_a": runs[0], "run_b": runs[1]}
    if parameters["question"] == "system":
        return fields | {"run": runs[0]}
    if parameters["question"] == "baseline":
        return fields | {"baseline": runs[0], "candidates": runs[1:]}
    return fields | ({"ranked": runs} if parameters["question"] == "ranking" and runs else {})
