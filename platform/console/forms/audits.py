"""The manager's forms about audits: when, how many, by which strategy, who judges; what judgments cost."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.utils.html import format_html

from judging import label_aggregation
from judging.models import Campaign
from sampling import strategies
from sampling.design_fields import LONGEST_MEASURE
from sampling.design_options import TOPIC_SELECTIONS, WHOLE_TOPICS
from sampling.frames import newest_draw
from sampling.models import AuditSchedule, AuditTier, GoldFit
from sampling.questions import parse_designed
from sampling.schedules import LONGEST_LINE, parse_crontab
from sampling.serializers.audits import FEWEST_LOOKS, MOST_LOOKS
from sampling.services.audit_schedules import NO_LOOKS_OF_TOPICS, has_fixed_looks
from sampling.services.auditable import AuditRefused, audit_measure
from sampling.services.learned_audits import fixed_gold_fit

MOST = 2_000_000_000
UNITS = [(1, "seconds"), (60, "minutes"), (3600, "hours"), (86400, "days")]
INTERVAL, CRONTAB = "interval", "crontab"
ITEMS, MONEY = "items", "money"
TIERS = {
    AuditTier.GOLD: ("Gold tier", "The standard. Only these audits correct the numbers."),
    AuditTier.SILVER: (
        "Silver tier",
        "A second opinion that measures the agreement between tiers. Silver assessors judge these audits first.",
    ),
}
FITS = {
    GoldFit.REFIT: (
        "Refit",
        "Predictions learn from all complete audits. The narrower interval, with a bias far below its width.",
    ),
    GoldFit.EXACT: (
        "Exact",
        "Predictions learn from the audits before the first that learned. Exactly unbiased.",
    ),
}
NO_COST = "A size in money needs the cost of a gold label. Enter it under “Costs”."
Choices = list[tuple[str, str]]


def _choices(rows: dict[Any, tuple[str, str]]) -> Choices:
    return [
        (str(value), format_html('{} <span class="help">{}</span>', name, words))
        for value, (name, words) in rows.items()
    ]


def _scores() -> Choices:
    return _choices({one.key: (one.label, one.help) for one in label_aggregation.LABEL_SCORES})


def _strategies() -> Choices:
    return _choices({one.key: (one.label, one.help) for one in strategies.schedulable_strategies()})


def _of_draw(campaign: Campaign) -> tuple[strategies.Strategy, ...]:
    """Return the strategies that fit the campaign's draw; all before it."""
    chosen = set(campaign.draws.values_list("parameters__topic_selection", flat=True))
    if not chosen:
        return strategies.schedulable_strategies()
    return strategies.strategies_for(has_whole_topics=WHOLE_TOPICS in chosen)


class Radios(forms.ChoiceField):
    """One of several; what was not sent stays as it is."""

    widget = forms.RadioSelect

    def __init__(self, choices: Choices | Callable[[], Choices], label: str) -> None:
        super().__init__(choices=choices, label=label, required=False)


class AuditPlanForm(forms.Form):
    """The schedule of a campaign, in the words of the screen: `fields_of_schedule` gives the model's."""

    when = Radios([(INTERVAL, "At regular intervals"), (CRONTAB, "At fixed times")], "When")
    every_seconds = forms.IntegerField(min_value=1, max_value=MOST, label="Every", required=False)
    every_unit = forms.TypedChoiceField(
        coerce=int,
        choices=UNITS,
        label="Unit",
        required=False,
        empty_value=1,  # type: ignore[arg-type]  # any value will do
    )
    crontab = forms.CharField(
        max_length=LONGEST_LINE, label="Minute, hour, day, month, weekday (UTC)", required=False
    )
    strategy = Radios(_strategies, "Strategy")
    measure = forms.CharField(
        label="Measure",
        max_length=LONGEST_MEASURE,
        required=False,
        widget=forms.TextInput(attrs={"list": "measures", "autocomplete": "off", "spellcheck": "false"}),
    )
    gold_fit = Radios(_choices(FITS), "Predictions after an audit that learned")
    tier = Radios(_choices(TIERS), "Tier")
    size_in = Radios([(ITEMS, "Number of documents"), (MONEY, "Money")], "Unit of size")
    items_each_time = forms.FloatField(min_value=0, max_value=MOST, label="Size of each audit, about")
    items_in_total = forms.FloatField(min_value=0, max_value=MOST, label="Total size, at most")
    n_looks = forms.IntegerField(
        min_value=FEWEST_LOOKS, max_value=MOST_LOOKS, label="Declared looks", required=False
    )
    is_active = forms.BooleanField(required=False, label="Follow this schedule while the campaign is open")

    def __init__(
        self, data: Any = None, *, campaign: Campaign, schedule: AuditSchedule, best: str = ""
    ) -> None:
        """`best` is the strategy to begin with where there is no schedule yet."""
        self.campaign, self.schedule = campaign, schedule
        is_new, fitting = schedule.pk is None, {one.key: one for one in _of_draw(campaign)}
        strategy = best if is_new and best else schedule.strategy
        fixed = fixed_gold_fit(campaign)
        unit = next(size for size, _ in reversed(UNITS) if schedule.every_seconds % size == 0)
        super().__init__(
            data,
            initial={
                "when": CRONTAB if schedule.crontab else INTERVAL,
                "every_seconds": schedule.every_seconds // unit,
                "every_unit": unit,
                "crontab": schedule.crontab,
                "strategy": strategy if strategy in fitting else next(iter(fitting)),
                "gold_fit": fixed or schedule.gold_fit,
                "measure": schedule.measure,
                "tier": schedule.tier,
                "size_in": ITEMS,
                "items_each_time": schedule.items_each_time,
                "items_in_total": schedule.items_in_total,
                "n_looks": schedule.n_looks,
                "is_active": schedule.is_active,
            },
        )
        shown = {key: (one.label, one.help) for key, one in fitting.items()}
        self.fields["strategy"].choices = _choices(shown)  # type: ignore[attr-defined]  # it is Radios
        self.fields["n_looks"].disabled = has_fixed_looks(campaign)
        self.fields["gold_fit"].disabled = fixed is not None

    def clean_measure(self) -> str:
        name = str(self.cleaned_data["measure"])
        newest = newest_draw(self.campaign) if name else None
        try:
            if newest is not None:
                return audit_measure(self.campaign, newest, name).name
            return parse_designed(name, TOPIC_SELECTIONS[0].key).name if name else ""
        except (AuditRefused, ValueError) as error:
            raise forms.ValidationError(str(error)) from error

    def clean(self) -> dict[str, Any]:
        sent: dict[str, Any] = super().clean() or {}
        for name in ("when", "strategy", "gold_fit", "tier", "size_in"):
            sent[name] = sent.get(name) or self.initial[name]
        if sent["when"] == CRONTAB:
            self._check_crontab(sent)
        elif not sent.get("every_seconds") and "every_seconds" not in self.errors:
            self.add_error("every_seconds", "Enter a number.")
        elif (sent.get("every_seconds") or 0) * (sent.get("every_unit") or 1) > MOST:
            self.add_error("every_seconds", f"At most {MOST:,} seconds.")
        self._check_sizes(sent)
        if sent.get("n_looks") and sent["tier"] != AuditTier.GOLD:
            self.add_error("n_looks", "Only audits of the gold tier can be declared as looks.")
        if sent.get("n_looks") and strategies.strategy_of(sent["strategy"]).takes_topics:
            self.add_error("strategy", f"{NO_LOOKS_OF_TOPICS[:1].upper()}{NO_LOOKS_OF_TOPICS[1:]}.")
        return sent

    def _check_crontab(self, sent: dict[str, Any]) -> None:
        if "crontab" in self.errors:
            return
        try:
            parse_crontab(sent.get("crontab") or "")
        except ValueError as error:
            self.add_error("crontab", f"{str(error)[:1].upper()}{str(error)[1:]}.")

    def _check_sizes(self, sent: dict[str, Any]) -> None:
        cost = self.campaign.cost_per_gold
        if sent["size_in"] == MONEY and cost is None:
            self.add_error("size_in", NO_COST)
            return
        price = cost if sent["size_in"] == MONEY and cost else 1.0
        for name in ("items_each_time", "items_in_total"):
            if sent.get(name) is None:
                continue
            sent[name] = int(min(sent[name] / price, 2.0 * MOST))
            if sent[name] < 1:
                words = (
                    "must be at least 1" if price == 1.0 else f"does not pay for one gold label ({price:g})"
                )
                self.add_error(name, f"“{self.fields[name].label}” {words}.")
            elif sent[name] > MOST:
                self.add_error(name, f"At most {MOST:,} documents.")

    def fields_of_schedule(self) -> dict[str, Any]:
        sent = self.cleaned_data
        is_crontab = sent["when"] == CRONTAB
        names = ("strategy", "gold_fit", "tier", "items_each_time", "items_in_total", "is_active")
        more = ("n_looks", "measure")  # the step of the set-up does not ask for them: then they stay
        asked = {name: sent[name] for name in more if self.add_prefix(name) in self.data}
        if strategies.strategy_of(sent["strategy"]).takes_topics:
            asked |= {"n_looks": None, "measure": ""}  # those of a plan from before the draw
        return {
            **{name: sent[name] for name in names},
            **asked,
            "crontab": sent["crontab"] if is_crontab else "",
            "every_seconds": self.schedule.every_seconds
            if is_crontab
            else sent["every_seconds"] * (sent["every_unit"] or 1),
        }


class ScoreForm(forms.ModelForm):  # type: ignore[type-arg]  # Django takes none when it runs
    bronze_score = Radios(_scores, "Label aggregation")

    class Meta:
        model = Campaign
        fields = ["bronze_score", "cost_per_judgment", "cost_per_gold"]
        labels = {
            "cost_per_judgment": "Cost of an ordinary judgment",
            "cost_per_gold": "Cost of a gold label",
        }

    def clean_bronze_score(self) -> str:
        return str(self.cleaned_data["bronze_score"] or self.instance.bronze_score)
