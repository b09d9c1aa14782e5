"""The manager's form for one judgment more: by which policy, of how many documents."""

from typing import Any

from django import forms
from django.utils.html import format_html

from analytics.services.recomputation import measures_of
from analytics.services.rejudging import RejudgingChoice
from judging.models import Campaign
from sampling.frames import FrameRefused
from sampling.measures.registry import parse_measure
from sampling.rejudging_policies import PAPERS_LIMIT, REJUDGING_POLICIES

MOST = 2_000
AVERAGE_PRECISION = "AP"


def _policies() -> list[tuple[str, str]]:
    return [
        (one.key, format_html('{} <span class="help">{}</span>', one.label, one.help))
        for one in REJUDGING_POLICIES
    ]


class RejudgingForm(forms.Form):
    """What `RejudgingChoice` holds, in the words of the screen."""

    policy = forms.ChoiceField(
        choices=_policies,
        widget=forms.RadioSelect,
        label="Which documents",
        initial=REJUDGING_POLICIES[0].key,
    )
    most = forms.IntegerField(min_value=1, max_value=MOST, label="Judgments, at most", initial=20)
    measure = forms.ChoiceField(label="Measure", required=False)
    limit = forms.FloatField(
        min_value=1e-9,
        max_value=1.0,
        label="Inclusion probability below",
        initial=PAPERS_LIMIT,
        required=False,
    )

    def __init__(self, *arguments: Any, campaign: Campaign, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.fields["measure"].choices = [(name, name) for name in _measures(campaign)]  # type: ignore[attr-defined]
        self.fields["limit"].widget.attrs["step"] = "any"

    def choice(self) -> RejudgingChoice:
        """Return what was asked for; the form must be valid."""
        sent = self.cleaned_data
        limit = PAPERS_LIMIT if sent["limit"] is None else sent["limit"]
        return RejudgingChoice(sent["policy"], sent["most"], sent["measure"], limit)


def _measures(campaign: Campaign) -> list[str]:
    """Return the measure that was drawn for, then AP where the campaign has numbers in it."""
    try:
        drawn_for, *others = measures_of(campaign)
    except FrameRefused:
        return []
    return [drawn_for, *(one for one in others if parse_measure(one).family.key == AVERAGE_PRECISION)]
