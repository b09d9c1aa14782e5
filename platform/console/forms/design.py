"""Forms of the design and audit pages."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django import forms
from django.http import QueryDict
from django.utils.html import format_html

from judging.models import Campaign
from sampling import selections
from sampling.measures.families import grade_gains
from sampling.measures.registry import WrongKind, parse_linear, parse_measure
from sampling.models import Draw
from sampling.questions import Design, QuestionRefused
from sampling.selections import selection_of
from sampling.services.drawing import FEWEST_TO_LEARN_FROM, n_waiting

LARGEST_BUDGET = 10_000_000
QUESTIONS = (
    ("pair", "Is run A better than run B?", "Documents that decide between the two are drawn most."),
    (
        "baseline",
        "Which candidates beat the baseline?",
        "Documents that tell each candidate from the baseline.",
    ),
    ("ranking", "How do several runs rank?", "Documents on which the runs disagree."),
    ("system", "How good is one run?", "Documents that the run ranks high."),
    ("pool", "How good is every run?", "Every pooled document with the same chance."),
)
METHODS = (
    (
        "default",
        "The default",
        "More chance for documents that say much about the question and are in doubt. Take it unless you need another.",
    ),
    (
        "paper",
        "The paper's Q*",
        "More chance for documents that say much and are probably relevant: to repeat Schnabel et al. (2016).",
    ),
    ("naive", "Naive", "More chance for high ranks, whatever the question: a yardstick for benchmarks."),
)
PRIORS = (
    ("runs", "The ranks of all runs", "What many runs rank high is probably relevant."),
    (
        "scores",
        "Imported scores as well",
        "A program's scores between 0 and 1, read with its error rates below.",
    ),
    ("judgments", "Earlier judgments as well", "For a top-up: what is judged so far predicts the rest."),
)
PERCENT = {"sensitivity", "specificity", "other_runs_share", "uniform_share"}
Choices = Iterable[tuple[str, str, str]]


def _selections() -> Choices:
    return [(one.key, one.label, one.help) for one in selections.SELECTIONS]


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

    def __init__(self, *, label: str, rows: Callable[[], Choices]) -> None:
        self.rows = rows  # a table may have grown since the form was declared
        super().__init__(label=label, initial=next(iter(rows()))[0], required=False)
        self.close({})

    def close(self, reasons: Mapping[str, str]) -> None:
        """Put these values out of reach, each with the reason in place of its sentence."""
        self.widget.closed = frozenset(reasons)
        self.choices = [
            (value, format_html('{} <span class="help">{}</span>', name, reasons.get(value, words)))
            for value, name, words in self.rows()
        ]

    def clean(self, value: Any) -> str:
        return super().clean(value) or str(self.initial)


class PercentField(forms.FloatField):
    """A share, shown and typed in percent; what is not sent is the usual one."""

    def __init__(self, *, label: str, usual: float, low: float, high: float) -> None:
        super().__init__(
            label=label, initial=f"{100 * usual:g}", min_value=low, max_value=high, required=False
        )
        self.usual = usual

    def clean(self, value: Any) -> float:
        percent = super().clean(value)
        return self.usual if percent is None else round(percent / 100, 9)


class DesignForm(forms.Form):
    """A design in plain words; with `earlier`, a top-up that keeps what the campaign's draws fix."""

    use_required_attribute = False  # a field out of sight must not stop the browser: the server checks
    question = RadioField(label="What do you want to know?", rows=lambda: QUESTIONS)
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
    measure = forms.CharField(
        label="Measure",
        initial="DCG@10",
        max_length=40,
        widget=forms.TextInput(attrs={"list": "measures", "autocomplete": "off", "spellcheck": "false"}),
    )
    depth = forms.IntegerField(label="Pool depth", min_value=1, max_value=1000, initial=20)
    budget = forms.IntegerField(label="Items to judge", min_value=10, max_value=LARGEST_BUDGET, initial=400)
    method = RadioField(label="Method", rows=lambda: METHODS)
    selection = RadioField(label="Selection", rows=_selections)
    prior = RadioField(label="What is guessed of relevance beforehand", rows=lambda: PRIORS)
    scores = forms.ChoiceField(label="Scores", required=False)
    sensitivity = PercentField(label="Relevant found, %", usual=Design.sensitivity, low=1, high=99)
    specificity = PercentField(label="Not relevant rejected, %", usual=Design.specificity, low=1, high=99)
    other_runs_share = PercentField(label="For other runs, %", usual=Design.other_runs_share, low=0, high=90)
    uniform_share = PercentField(label="For all alike, %", usual=Design.uniform_share, low=0, high=90)

    def __init__(
        self, data: QueryDict | None = None, *, campaign: Campaign, earlier: Draw | None = None, **named: Any
    ) -> None:
        if data is not None:  # what is not sent is as usual, and shown so
            data = data.copy()
            for name, field in self.base_fields.items():
                if isinstance(field, RadioField | PercentField):
                    data.setdefault(name, field.initial)
        if earlier is not None:
            more = {"budget": math.ceil(1.5 * earlier.parameters["budget"])}
            named["initial"] = initial_of(earlier.parameters) | more | named.get("initial", {})
        super().__init__(data, **named)
        self.campaign, self.earlier = campaign, earlier
        for name in ("question", "method", "selection"):
            self.fields[name].close({})
        self.run_ids = list(campaign.collection.runs.values_list("run_id", flat=True))
        for name in ("run_a", "run_b", "run", "baseline", "candidates", "ranked"):
            self.fields[name].choices = [(run_id, run_id) for run_id in self.run_ids]
        if len(self.run_ids) > 1:
            self.fields["run_b"].initial = self.run_ids[1]
        names = list(campaign.collection.score_lists.values_list("name", flat=True))
        self.fields["scores"].choices = [(name, name) for name in names] or [("", "none imported")]
        closed = {} if names else {"scores": "None are imported: upload them on the collection's page."}
        self.too_early = why_not_learn(campaign, earlier)
        if self.too_early:
            closed["judgments"] = self.too_early
        if self.initial.get("prior") in closed:
            self.initial["prior"] = PRIORS[0][0]
        if earlier is not None:
            self.fields["selection"].disabled = True
            self.fields["selection"].initial = earlier.selection
            self.fields["budget"].label = "Items in all"
        self.fields["prior"].close(closed)

    # -- checks ---------------------------------------------------------------------------------------------

    def clean_measure(self) -> str:
        try:
            parsed = parse_linear(self.cleaned_data["measure"])
            relevant = parsed.relevant_grade or self.campaign.scale.relevant_grade
            grade_gains(parsed, self.campaign.scale.gains(), relevant)  # refuses a grade off the scale
            return parsed.name
        except WrongKind as error:
            noun = parse_measure(self.cleaned_data["measure"]).kind.noun
            raise forms.ValidationError(
                f"is {noun}: a design is made for a sum over documents. Draw for DCG@10, for example; the other "
                "measures are estimated from the same judgments"
            ) from error
        except ValueError as error:
            raise forms.ValidationError(str(error)) from error

    def clean_depth(self) -> int:
        depth: int = self.cleaned_data["depth"]
        if self.earlier is not None and depth < self.earlier.parameters["depth"]:
            raise forms.ValidationError(
                f"may grow, not shrink: the earlier batch pooled {self.earlier.parameters['depth']} ranks"
            )
        return depth

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        self._check_runs(cleaned)
        self._check_expert_choices(cleaned)
        if "measure" in cleaned and "depth" in cleaned:
            cutoff = parse_linear(cleaned["measure"]).last_rank
            if cutoff > cleaned["depth"]:
                self.add_error(
                    "depth",
                    f"must be at least {cutoff}, the measure's cutoff: deeper ranks would never be judged",
                )
        if not self.errors:
            try:
                self.design()
            except QuestionRefused as refusal:
                raise forms.ValidationError(str(refusal)) from refusal
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
                    "selection", "the default draws each document at most once: choose another of the two"
                )
        if cleaned.get("prior") == "scores":
            if not cleaned.get("scores"):
                self.add_error("prior", "no scores are imported: upload them on the collection's page")
            if cleaned.get("sensitivity", 1.0) + cleaned.get("specificity", 1.0) <= 1:
                self.add_error(
                    "specificity", "both together must be above 100 %: else the scores say the opposite"
                )
        if cleaned.get("prior") == "judgments":
            if self.too_early:
                self.add_error("prior", f"{self.too_early} Choose the ranks of all runs")
            elif not (selection and selection.may_learn):
                self.add_error("prior", "learning from judgments needs each document drawn by its own chance")
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
        names = ("question", "measure", "depth", "budget", "method", "selection", "prior", *sorted(PERCENT))
        scores = asked["scores"] if asked["prior"] == "scores" else ""
        return Design(runs=self.runs_of_question(), scores=scores, **{name: asked[name] for name in names})

    def opens_advanced(self) -> bool:
        """Return whether something under "Advanced" is wrong or not as usual, so that it should be seen."""
        names = ("method", "selection", "prior", "scores", *sorted(PERCENT))
        if any(name in self.errors for name in names):
            return True
        shown = {name: str(self[name].value() or "") for name in names if name != "scores"}
        usual = {name: str(field.initial) for name, field in DesignForm.base_fields.items() if name in shown}
        return any(shown[name] not in ("", usual[name]) for name in shown)


def why_not_learn(campaign: Campaign, earlier: Draw | None) -> str:
    """Return why sizes cannot be learned from this campaign's judgments now; empty where they can."""
    if earlier is None:
        return "For a top-up: nothing is judged yet."
    first = campaign.draws.exclude(learned_from=None).order_by("batch").first()
    learned_from = first.learned_from if first else earlier.batch
    drawn = campaign.items.filter(draw_entries__draw__batch__lte=learned_from, draw_entries__times__gte=1)
    judged = drawn.filter(judgments__grade__isnull=False).values("pk").distinct()
    n_judged = judged[:FEWEST_TO_LEARN_FROM].count()  # more need not be counted
    if n_judged == 0:
        return "Nobody has judged yet."
    waiting = n_waiting(campaign, learned_from)
    if waiting:
        items = "1 item waits" if waiting == 1 else f"{waiting} items wait"
        return f"{items} for judgments: which come first must not decide what is drawn next."
    if n_judged < FEWEST_TO_LEARN_FROM:
        return f"{n_judged} judged so far: learning takes {FEWEST_TO_LEARN_FROM} judged items."
    return ""


def pairs(design: Design) -> list[tuple[str, str]]:
    """Return the design as names and values that the form reads: a query, or what a page carries on.

    >>> pairs(Design("ranking", ("b", "a"), "P@1", 1, 10))[-2:]
    [('ranked', 'b'), ('ranked', 'a')]
    """
    found = []
    for name, value in initial_of(design.parameters()).items():
        values = value if isinstance(value, list) else [value]
        found += [(name, str(each)) for each in values if each != ""]
    return found


def initial_of(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the form's values that mean the design with these parameters (`Design.parameters`).

    >>> initial_of({"question": "pair", "runs": ["a", "b"], "depth": 20, "uniform_share": 0.05})
    {'question': 'pair', 'depth': 20, 'uniform_share': '5', 'run_a': 'a', 'run_b': 'b'}
    """
    kept = {name: value for name, value in parameters.items() if name in DesignForm.base_fields}
    found = {name: f"{100 * value:.9g}" if name in PERCENT else value for name, value in kept.items()}
    runs = list(parameters["runs"])
    if parameters["question"] == "pair":
        return found | {"run_a": runs[0], "run_b": runs[1]}
    if parameters["question"] == "system":
        return found | {"run": runs[0]}
    if parameters["question"] == "baseline":
        return found | {"baseline": runs[0], "candidates": runs[1:]}
    return found | ({"ranked": runs} if parameters["question"] == "ranking" and runs else {})
