"""Forecasts of designs: the request with the error rates to assume, and the answers."""

from typing import Any

from rest_framework import serializers

from judging.serializers.strict import Finite
from sampling.outlook import USUAL_RATES
from sampling.serializers.designs import DesignAnswer, DesignRequest

MISSES, FALSE_ALARMS = USUAL_RATES


class ForecastRequest(DesignRequest):
    """A design, and the assessors' error rates to assume where no gold has measured them."""

    misses = Finite(
        min_value=0.0, max_value=1.0, default=MISSES, help_text="Share of relevant ones judged not relevant"
    )
    false_alarms = Finite(
        min_value=0.0, max_value=1.0, default=FALSE_ALARMS, help_text="Share of the others judged relevant"
    )

    def validate(self, sent: dict[str, Any]) -> dict[str, Any]:
        if sent["misses"] + sent["false_alarms"] >= 1:
            reason = "misses and false alarms must sum to less than 1: otherwise labels say nothing, or the opposite"
            raise serializers.ValidationError({"false_alarms": [reason]})
        return super().validate(sent)


SHARES = "Of the variance: drawing, assessors, topics"


class TopicsLikeTheseAnswer(serializers.Serializer[Any]):
    """What is expected for topics like these: the spread between topics is in it."""

    half_width = serializers.FloatField()
    middle = serializers.ListField(child=serializers.FloatField(), allow_null=True)
    shares = serializers.DictField(child=serializers.FloatField(), help_text=SHARES)
    n_topics = serializers.IntegerField()
    topics_from = serializers.CharField(help_text="Where the spread between topics is known from")
    is_assumed = serializers.BooleanField(help_text="Whether it is assumed")


class CorrectedAnswer(serializers.Serializer[Any]):
    """What is expected of the corrected number, assessors' errors included: for these topics, and beside it."""

    half_width = serializers.FloatField(
        allow_null=True, help_text="For these topics; null where `refusal` says why"
    )
    middle = serializers.ListField(
        child=serializers.FloatField(),
        allow_null=True,
        help_text="Between what the middle 80 % of simulated campaigns lie, of which `half_width` is the median; null: "
        "none was simulated, and `half_width` is the closed form",
    )
    n_plays = serializers.IntegerField(help_text="Simulated campaigns")
    shares = serializers.DictField(child=serializers.FloatField(), help_text=SHARES)
    n_gold = serializers.FloatField(
        allow_null=True, help_text="Gold labels of the planned audit; null: gold assessors judge"
    )
    errors_from = serializers.CharField(
        allow_blank=True, help_text="Where the assessors' errors are known from"
    )
    is_assumed = serializers.BooleanField(help_text="Whether they are assumed")
    topics_like_these = TopicsLikeTheseAnswer(
        allow_null=True, help_text="The default claim; null with one topic, or without a forecast"
    )
    refusal = serializers.CharField(allow_blank=True)


class MixtureAnswer(serializers.Serializer[Any]):
    """What the shares for other questions cost this one, and what they buy; null where there is no number."""

    n_items_without = serializers.FloatField(allow_null=True, help_text="For the same half-width")
    half_width_without = serializers.FloatField(allow_null=True)
    n_runs = serializers.IntegerField()
    n_estimable = serializers.IntegerField(help_text="Runs whose own value can be estimated")
    n_estimable_without = serializers.IntegerField()
    run_half_width = serializers.FloatField(allow_null=True, help_text="Median over the runs")
    run_half_width_without = serializers.FloatField(allow_null=True)


class DesignForecastAnswer(serializers.Serializer[Any]):
    """The forecast of a budget: half-widths of intervals by design, null where a design cannot reach it.

    `widths` take judgments as free of error; `corrected` has the assessors' errors in it.
    """

    design = DesignAnswer()
    n_frame = serializers.IntegerField()
    n_question = serializers.IntegerField()
    n_comparisons = serializers.IntegerField()
    already = serializers.FloatField()
    n_topics = serializers.FloatField(
        allow_null=True, help_text="Topics judged at the budget, where whole topics are drawn"
    )
    budgets = serializers.ListField(child=serializers.IntegerField())
    widths = serializers.DictField(
        child=serializers.ListField(child=serializers.FloatField(allow_null=True)), help_text="By design"
    )
    same_width = serializers.DictField(child=serializers.FloatField(allow_null=True), help_text="By design")
    audit_half_width = serializers.FloatField(
        allow_null=True,
        help_text="With scores as the prior: the half-width if they were a machine's judgments of the whole pool, "
        "audited with as many gold labels; else null",
    )
    mixture = MixtureAnswer(allow_null=True)
    n_silent_topics = serializers.IntegerField(
        allow_null=True, help_text="Of a ratio: topics of which no document says anything of the question"
    )
    limit = serializers.CharField(
        allow_blank=True,
        help_text="Of a ratio: why so few judgments give no interval of the corrected number",
    )
    corrected = CorrectedAnswer(help_text="At the budget; `widths` are the drawing alone")
    corrected_widths = serializers.ListField(
        child=serializers.FloatField(allow_null=True),
        help_text="Half-widths of the corrected number at the budgets, in closed form, for these topics; or empty",
    )
    corrected_by_design = serializers.DictField(
        child=serializers.FloatField(allow_null=True),
        help_text="The same at the budget, of the designs of which it is forecast; or empty",
    )
    corrected_floor = serializers.FloatField(
        allow_null=True,
        help_text="The least of these that any number of items from the budget on reaches with the planned audit",
    )
