"""Which claim a page or a request makes, and in which family: `?claim=&family=&adjustment=`."""

from typing import Any

from django.http import HttpRequest
from rest_framework import serializers

from analytics.estimation.claims import CLAIMS, LIKE_THESE, claim_of
from analytics.estimation.wording import ADJUSTMENTS
from analytics.models import Computation
from analytics.services.comparisons import HOLM, MAX_T, Comparisons
from analytics.services.families import asked_family, default_claim
from judging.models import Campaign
from judging.serializers.strict import StrictQuery, Word

LONGEST_FAMILY = 20_000


def claim_fields() -> dict[str, serializers.Field[Any, Any, Any, Any]]:
    """Return the fields of a request, by name."""
    return {
        "claim": serializers.ChoiceField(
            [claim.key for claim in CLAIMS],
            required=False,
            help_text="By default topics-like-these; of a sample of whole topics these-topics",
        ),
        "family": Word(
            max_length=LONGEST_FAMILY,
            default="",
            allow_blank=True,
            help_text="question, all, baseline:<run> or runs:<run>,<run>; by default the declared family",
        ),
        "adjustment": serializers.ChoiceField(
            list(ADJUSTMENTS), default=HOLM, help_text="max-t: approximate, for topics like these alone"
        ),
    }


class ClaimRequest(StrictQuery):
    """Which claim, in which family of comparisons."""

    claim, family, adjustment = claim_fields().values()

    def validate(self, sent: dict[str, Any]) -> dict[str, Any]:
        checked: dict[str, Any] = super().validate(sent)
        checked.setdefault("claim", default_claim(self.context["campaign"]).key)
        fault = _fault(self.context["campaign"], checked)
        if fault:
            raise serializers.ValidationError(fault)
        return checked


def _fault(campaign: Campaign, sent: dict[str, Any]) -> dict[str, list[str]]:
    """Return what is wrong with a choice, by field."""
    if sent["adjustment"] == MAX_T and sent["claim"] != LIKE_THESE.key:
        return {"adjustment": ["max-t by random signs is for topics like these alone"]}
    try:
        if sent["family"]:
            asked_family(campaign, sent["family"])
    except ValueError as fault:
        return {"family": [str(fault)]}
    return {}


def comparisons_of(
    campaign: Campaign,
    computation: Computation | None,
    measure: str,
    *,
    claim: str = LIKE_THESE.key,
    family: str = "",
    adjustment: str = HOLM,
) -> Comparisons:
    """Return the comparisons of a choice that was checked."""
    return Comparisons(
        computation, measure, asked_family(campaign, family), claim_of(claim), adjustment=adjustment
    )


def choice_of(request: HttpRequest, campaign: Campaign) -> tuple[dict[str, str], str]:
    """Return a page's choice, and why what was asked is none of them; then the choice is the default."""
    sent = ClaimRequest(
        data={name: request.GET[name] for name in claim_fields() if name in request.GET},
        context={"campaign": campaign},
    )
    if sent.is_valid():
        return dict(sent.validated_data), ""
    faults = {name: " ".join(map(str, found)) for name, found in sent.errors.items()}
    words = "; ".join(one if one.startswith(name) else f"{name}: {one}" for name, one in faults.items())
    plain = ClaimRequest(data={}, context={"campaign": campaign})
    plain.is_valid(raise_exception=True)
    return dict(plain.validated_data), words
