"""The manager's forms about topics checked: the plan's limits and risks, and what a check found."""

from typing import Any

from django import forms

from sampling.acceptance import AcceptancePlan
from sampling.services.topic_checks import TopicCheckRefused, limits, proposed_plan

GOOD, BAD = "good", "bad"
# 232 of 638 topics: Carterette and Soboroff (2010), section 4.2.
PAPER_LIMIT = 36.4


def _percent(label: str, initial: float, least: float = 0.0) -> forms.FloatField:
    return forms.FloatField(min_value=least, max_value=100, label=label, initial=initial)


class TopicPlanForm(forms.Form):
    """Limits and risks in percent; `plan` is what follows for the campaign's topics."""

    good = _percent("Good enough, %", 10)
    limit = _percent("Too many, %", PAPER_LIMIT)
    alpha = _percent("Risk of rejecting a good collection, %", 5, 0.1)
    beta = _percent("Risk of accepting a bad collection, %", 5, 0.1)
    plan: AcceptancePlan

    def __init__(self, data: Any = None, *, n_topics: int, limit_share: float | None = None) -> None:
        """`limit_share` is where the campaign's own errors put the limit, if that was simulated."""
        self.n_topics = n_topics
        super().__init__(data)
        if limit_share is not None:
            self.fields["limit"].initial = round(100 * limit_share, 1)

    def clean(self) -> dict[str, Any]:
        sent: dict[str, Any] = super().clean() or {}
        if self.errors:
            return sent
        n_good, n_limit = limits(self.n_topics, sent["good"] / 100, sent["limit"] / 100)
        if n_good >= n_limit:
            numbers = f"{sent['good']:g} % are {n_good} of {self.n_topics} topics, {sent['limit']:g} % are {n_limit}"
            self.add_error("limit", f"Must be above the other limit: {numbers}.")
            return sent
        sent |= {"n_bad_good": n_good, "n_bad_limit": n_limit}
        try:
            self.plan = proposed_plan(
                self.n_topics, n_good, n_limit, alpha=sent["alpha"] / 100, beta=sent["beta"] / 100
            )
        except TopicCheckRefused as refusal:
            raise forms.ValidationError(str(refusal)) from refusal
        return sent

    def arguments(self) -> dict[str, Any]:
        """Return what `plan_checks` takes."""
        sent = self.cleaned_data
        return {
            "n_bad_good": sent["n_bad_good"],
            "n_bad_limit": sent["n_bad_limit"],
            "alpha": sent["alpha"] / 100,
            "beta": sent["beta"] / 100,
        }


class FindingForm(forms.Form):
    finding = forms.ChoiceField(choices=[(GOOD, "Good"), (BAD, "Bad")])
    reason = forms.CharField(max_length=2000, required=False)
