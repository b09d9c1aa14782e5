"""The answers about pairs of runs: both claims of a difference, adjusted in a family of comparisons."""

from typing import Any

from drf_spectacular.utils import extend_schema_serializer
from rest_framework import serializers

from analytics.estimation.claims import CLAIMS
from analytics.estimation.wording import ADJUSTMENTS, sentence
from console.api.serializers.results import ComputationAnswer, EstimateAnswer, OneEstimateAnswer

CLAIM_KEYS = [claim.key for claim in CLAIMS]
OLD_FIELDS = ("p_holm", "better")


def _number(source: str, words: str = "") -> serializers.FloatField:
    return serializers.FloatField(source=source, default=None, allow_null=True, help_text=words or None)


class OtherClaimAnswer(serializers.Serializer[Any]):
    """What the other claim says of a difference."""

    claim = serializers.ChoiceField(CLAIM_KEYS, source="claim.key")
    interval_low = _number("low")
    interval_high = _number("high")
    t = serializers.FloatField(allow_null=True)
    degrees_of_freedom = serializers.FloatField(allow_null=True)
    p = serializers.FloatField(allow_null=True)
    p_adjusted = serializers.FloatField(allow_null=True)
    p_randomisation = serializers.FloatField(allow_null=True)
    between_topics = serializers.FloatField(allow_null=True)
    significant = serializers.BooleanField()
    effect_size = serializers.FloatField(allow_null=True)
    effect_size_refusal = serializers.CharField(allow_blank=True)
    claim_refusal = serializers.CharField(source="refusal", allow_blank=True)
    claim_warning = serializers.CharField(source="warning", allow_blank=True)


class EstimateOtherAnswer(serializers.Serializer[Any]):
    """What the other claim says of a number."""

    claim = serializers.ChoiceField(CLAIM_KEYS, source="claim.key")
    interval_low = _number("low")
    interval_high = _number("high")
    p = serializers.FloatField(allow_null=True)
    p_adjusted = serializers.FloatField(allow_null=True)
    significant = serializers.BooleanField()
    claim_refusal = serializers.CharField(source="refusal", allow_blank=True)


class EstimateClaimAnswer(EstimateAnswer):
    """An estimate with both claims; of `low` to `topics_high` the names say for which topics they are."""

    claim = serializers.ChoiceField(CLAIM_KEYS, source="claims.test.claim.key")
    family = serializers.CharField(source="claims.family")
    interval_low = _number("claims.test.low", "Of the claim's 95 % confidence interval")
    interval_high = _number("claims.test.high")
    p = _number("claims.test.p", "Of one comparison; of runs, and by methods that are not tested, null")
    p_adjusted = _number("claims.test.p_adjusted", "null outside the family")
    significant = serializers.BooleanField(source="claims.test.significant")
    claim_refusal = serializers.CharField(source="claims.test.refusal", allow_blank=True)
    other = EstimateOtherAnswer(source="claims.other", help_text="The other claim")

    class Meta(EstimateAnswer.Meta):
        fields = (
            *EstimateAnswer.Meta.fields, "claim", "family", "interval_low", "interval_high", "p", "p_adjusted",
            "significant", "claim_refusal", "other",
        )  # fmt: skip


@extend_schema_serializer(deprecate_fields=OLD_FIELDS)
class ComparedAnswer(serializers.Serializer[Any]):
    """The claim that is made, its family, and the other claim; of a pair without numbers, null."""

    claim = serializers.ChoiceField(
        CLAIM_KEYS, source="compared.test.claim.key", default=None, allow_null=True
    )
    family = serializers.CharField(source="compared.family", default=None, allow_null=True)
    n_family = serializers.IntegerField(
        source="compared.n_family",
        default=None,
        allow_null=True,
        help_text="Comparisons of the family that were tested",
    )
    interval_low = _number("compared.test.low", "Of the 95 % confidence interval")
    interval_high = _number("compared.test.high")
    t = _number("compared.test.t", "null where the judging limits what is known of topics")
    degrees_of_freedom = _number("compared.test.degrees_of_freedom", "null: the normal distribution")
    p = _number("compared.test.p", "Of one comparison")
    p_adjusted = _number("compared.test.p_adjusted", "null outside the family")
    p_randomisation = _number("compared.test.p_randomisation", "By random signs of topics")
    between_topics = _number("compared.test.between_topics", "The part of the variance that is of the topics")
    adjustment = serializers.ChoiceField(
        list(ADJUSTMENTS), source="compared.adjustment", default=None, allow_null=True
    )
    significant = serializers.BooleanField(source="compared.test.significant", default=False)
    effect_size = _number("compared.test.effect_size", "Standardised mean difference over topics")
    effect_size_refusal = serializers.CharField(
        source="compared.test.effect_size_refusal", default="", allow_blank=True
    )
    claim_refusal = serializers.CharField(source="compared.test.refusal", default="", allow_blank=True)
    claim_warning = serializers.CharField(source="compared.test.warning", default="", allow_blank=True)
    other = OtherClaimAnswer(
        source="compared.other", default=None, allow_null=True, help_text="The other claim"
    )
    p_holm = _number("compared.test.p_adjusted", "Deprecated: p_adjusted")
    better = serializers.CharField(
        source="compared.higher", default=None, allow_null=True, help_text="Deprecated: the higher run"
    )


@extend_schema_serializer(deprecate_fields=(*OLD_FIELDS, "run_b"))
class PairAnswer(ComparedAnswer):
    """The corrected difference of two runs with both claims, and a verdict."""

    run = serializers.CharField(source="estimate.run.run_id")
    against = serializers.CharField(source="estimate.run_b.run_id")
    run_b = serializers.CharField(source="estimate.run_b.run_id", help_text="Deprecated: against")
    measure = serializers.CharField(source="estimate.measure")
    value = _number("estimate.value")
    standard_error = _number("estimate.standard_error")
    low = _number("estimate.low", "For these topics, as high and p_value")
    high = _number("estimate.high")
    p_value = _number("estimate.p_value")
    unbounded_value = _number("estimate.unbounded_value")
    unbounded_low = _number("estimate.unbounded_low")
    unbounded_high = _number("estimate.unbounded_high")
    n = serializers.IntegerField(source="estimate.n")
    n_positive = serializers.IntegerField(source="estimate.n_positive", allow_null=True)
    verdict = serializers.SerializerMethodField(help_text="A sentence to quote")
    refusal = serializers.CharField(source="estimate.refusal")
    warning = serializers.CharField(source="estimate.warning")

    def get_verdict(self, pair: Any) -> str:
        return sentence(pair.compared)


class ComparisonAnswer(ComparedAnswer):
    """Two runs: their difference by every method, both claims of the corrected one, and a verdict."""

    campaign = serializers.UUIDField()
    computation = ComputationAnswer(allow_null=True)
    measure = serializers.CharField()
    run = serializers.CharField()
    against = serializers.CharField()
    verdict = serializers.CharField(allow_blank=True, help_text="Empty before the first computation")
    n_compared = serializers.IntegerField(help_text="Comparisons of the family that were tested")
    always = serializers.CharField(
        allow_blank=True,
        help_text="The interval for repeated looks: valid at the declared ones, or at every look while judging goes on",
    )
    variance = serializers.CharField(allow_blank=True, help_text="The sources of the variance")
    forbidden = serializers.CharField(
        allow_blank=True,
        help_text="Why the answers about how was judged forbid the comparison; empty if they do not",
    )
    estimates = OneEstimateAnswer(many=True)


class RunEstimateAnswer(ComparedAnswer):
    """What is known of a run, and of its difference to another one with both claims."""

    campaign = serializers.UUIDField()
    run = serializers.CharField()
    measure = serializers.CharField()
    against = serializers.CharField(allow_null=True)
    as_of = serializers.IntegerField(
        allow_null=True,
        help_text="The last judgment included in these numbers; null: there are no numbers yet",
    )
    is_from_upload = serializers.BooleanField(
        help_text="Estimated at the upload; no computation contains the run yet"
    )
    values = OneEstimateAnswer(many=True)
    differences = OneEstimateAnswer(many=True, help_text="The run minus the other, by every method")
    verdict = serializers.CharField(allow_blank=True)
