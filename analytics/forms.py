"""Forms of the design and audit pages."""

from typing import Any

from django import forms

from judging.models import Campaign
from sampling.measures import grade_gains, parse_measure
from sampling.models import AuditSchedule
from sampling.questions import Design


class DesignForm(forms.Form):
    kind = forms.ChoiceField(
        label="Question",
        choices=[("pair", "Is run A better than run B?"), ("pool", "How good is every run? (pool, evenly)")],
    )
    run_a = forms.ChoiceField(label="Run A")
    run_b = forms.ChoiceField(label="Run B")
    measure = forms.CharField(label="Measure", initial="DCG@10", max_length=40)
    depth = forms.IntegerField(label="Pool depth", min_value=1, max_value=1000, initial=20)
    budget = forms.IntegerField(label="Items to judge", min_value=10, max_value=10_000_000, initial=400)

    def __init__(self, *arguments: Any, campaign: Campaign, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.campaign = campaign
        run_ids = list(campaign.collection.runs.values_list("run_id", flat=True))
        for name in ("run_a", "run_b"):
            self.fields[name].choices = [(run_id, run_id) for run_id in run_ids]
        if len(run_ids) > 1:
            self.fields["run_b"].initial = run_ids[1]

    def clean_measure(self) -> str:
        try:
            parsed = parse_measure(self.cleaned_data["measure"])
            relevant = parsed.relevant_grade or self.campaign.scale.relevant_grade
            grade_gains(parsed, self.campaign.scale.gains(), relevant)  # refuses a grade off the scale
            return parsed.name
        except ValueError as error:
            raise forms.ValidationError(str(error)) from error

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if (
            "measure" in cleaned
            and "depth" in cleaned
            and parse_measure(cleaned["measure"]).cutoff > cleaned["depth"]
        ):
            self.add_error(
                "depth", "must be at least the measure's cutoff: deeper ranks would never be judged"
            )
        if cleaned.get("run_a") and cleaned.get("run_a") == cleaned.get("run_b"):
            self.add_error("run_b", "choose two different runs")
        return cleaned

    def design(self) -> Design:
        asked = self.cleaned_data
        runs = (asked["run_a"], asked["run_b"]) if asked["kind"] == "pair" else ()
        return Design(asked["kind"], runs, asked["measure"], asked["depth"], asked["budget"])


class AuditForm(forms.ModelForm):
    class Meta:
        model = AuditSchedule
        fields = ["items_each_time", "items_in_total", "every_seconds", "is_active"]
        labels = {
            "items_each_time": "Items each time",
            "items_in_total": "Items in total, at most",
            "every_seconds": "Seconds between audits",
            "is_active": "Scheduled",
        }
