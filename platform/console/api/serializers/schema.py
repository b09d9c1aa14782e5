"""Answers to requests for analyses, plans and reuse, for the API's description."""

from typing import Any

from rest_framework import serializers

from analytics.estimation.outside import Standing
from console.api.serializers.forecasts import CorrectedAnswer
from sampling.serializers.designs import DesignAnswer


class AnalysisAnswer(serializers.Serializer[Any]):
    """The newest result of an analysis; null until there is one."""

    campaign = serializers.UUIDField()
    what = serializers.CharField()
    measure = serializers.CharField(allow_blank=True)
    run = serializers.CharField(allow_null=True)
    against = serializers.CharField(allow_null=True)
    claim = serializers.CharField(allow_null=True, help_text="null where the result does not depend on one")
    family = serializers.CharField(allow_null=True)
    result = serializers.DictField(allow_null=True)
    is_current = serializers.BooleanField(help_text="Whether no judgment has arrived since")
    is_being_computed = serializers.BooleanField()
    failed = serializers.CharField(allow_null=True, help_text="Why the newest attempt failed")


class ConditionsAnswer(serializers.Serializer[Any]):
    """The answers to the questions that data cannot test."""

    questions = serializers.DictField(child=serializers.CharField())
    answers = serializers.DictField(child=serializers.BooleanField(), allow_null=True)
    answered_at = serializers.DateTimeField(allow_null=True)
    answered_by = serializers.CharField(allow_null=True)
    refused = serializers.CharField(allow_null=True, help_text="What the answers forbid, and why")


class VarianceAnswer(serializers.Serializer[Any]):
    drawing = serializers.FloatField()
    gold = serializers.FloatField()
    topics = serializers.FloatField(help_text="What no purchase of judgments changes; 0 for these topics")


class CensusDocumentAnswer(serializers.Serializer[Any]):
    topic = serializers.CharField()
    document = serializers.CharField()


class ExactGoldAnswer(serializers.Serializer[Any]):
    """Gold on every judged document that counts and lacks it: an audit by the strategy census."""

    sentence = serializers.CharField()
    comes_first = serializers.BooleanField(help_text="Whether it is the better purchase")
    is_exact = serializers.BooleanField(help_text="Whether no error is left for these topics")
    count = serializers.IntegerField()
    awaited = serializers.IntegerField(help_text="Of the documents, how many wait for the gold tier")
    cost = serializers.FloatField()
    n_weighed = serializers.IntegerField(help_text="All documents that count, judged or not")
    half_width_these = serializers.FloatField()
    half_width = serializers.FloatField(help_text="What is left for the claim")
    documents = CensusDocumentAnswer(many=True)


class PurchaseAnswer(serializers.Serializer[Any]):
    refusal = serializers.CharField(allow_null=True)
    items = serializers.FloatField(required=False)
    judgments = serializers.FloatField(required=False)
    gold = serializers.FloatField(required=False)
    cost = serializers.FloatField(required=False)
    half_width = serializers.FloatField(required=False)


class PapersPlanAnswer(serializers.Serializer[Any]):
    method = serializers.CharField()
    unit = serializers.CharField()
    bronze = serializers.FloatField()
    gold = serializers.FloatField()
    cost = serializers.FloatField()


class CurvePointAnswer(serializers.Serializer[Any]):
    money = serializers.FloatField()
    best = serializers.FloatField()
    gold_alone = serializers.FloatField()
    judgments_alone = serializers.FloatField()


class PlannerAnswer(serializers.Serializer[Any]):
    """The plan; with a `refusal`, only the question."""

    campaign = serializers.UUIDField()
    measure = serializers.CharField()
    run = serializers.CharField(allow_blank=True)
    against = serializers.CharField(allow_null=True)
    claim = serializers.CharField()
    family = serializers.CharField(allow_null=True, help_text="null of a run's own value")
    cost_per_judgment = serializers.FloatField()
    cost_per_gold = serializers.FloatField()
    power = serializers.FloatField(help_text="As a share of one")
    refusal = serializers.CharField(allow_null=True)
    difference = serializers.FloatField(required=False, allow_null=True, help_text="null: none was named")
    n_family = serializers.IntegerField(
        required=False, allow_null=True, help_text="Comparisons of the family that were tested"
    )
    p = serializers.FloatField(required=False, allow_null=True)
    p_adjusted = serializers.FloatField(required=False, allow_null=True, help_text="null outside the family")
    level = serializers.FloatField(
        required=False,
        help_text="What the plan brings p below: .05/n_family, counted with this one; or .05 of a single comparison",
    )
    half_width_now = serializers.FloatField(required=False)
    half_width_of_topics = serializers.FloatField(required=False, help_text="Of the choice of topics alone")
    half_width_wanted = serializers.FloatField(required=False, allow_null=True)
    variance = VarianceAnswer(required=False)
    informativeness = serializers.FloatField(required=False, allow_null=True)
    exact = ExactGoldAnswer(required=False, allow_null=True)
    needed = PurchaseAnswer(required=False, allow_null=True)
    money_buys = PurchaseAnswer(required=False, allow_null=True)
    topics_needed = serializers.IntegerField(required=False, allow_null=True)
    papers = PapersPlanAnswer(many=True, required=False)
    papers_refusal = serializers.CharField(
        required=False, allow_null=True, help_text="Why the papers' formulas plan nothing; null where they do"
    )
    curve = CurvePointAnswer(many=True, required=False)


class LackingAnswer(serializers.Serializer[Any]):
    """The top-up; `design` is null if no judgment is missing."""

    half_width = serializers.FloatField()
    half_width_after = serializers.FloatField()
    n_new = serializers.FloatField()
    judgments = serializers.FloatField()
    design = DesignAnswer(allow_null=True)
    note = serializers.CharField(allow_blank=True)
    corrected = CorrectedAnswer(allow_null=True, help_text="After the top-up; null if no judgment is missing")


class OutsideAnswer(serializers.Serializer[Any]):
    """What documents that could not be judged may be worth, in units of the measure."""

    standing = serializers.ChoiceField([one.name.lower() for one in Standing])
    words = serializers.CharField()
    above = serializers.FloatField(
        help_text="The true value is at most so far above, whatever they are worth"
    )
    below = serializers.FloatField()
    expected_above = serializers.FloatField(allow_null=True, help_text="What is likely; no guarantee")
    expected_below = serializers.FloatField(allow_null=True)
    cautious_above = serializers.FloatField(allow_null=True)
    cautious_below = serializers.FloatField(allow_null=True)
    half_width = serializers.FloatField(allow_null=True, help_text="What they are held against")


class ReuseAnswer(serializers.Serializer[Any]):
    """How far the existing judgments answer for a run, from its documents alone."""

    campaign = serializers.UUIDField()
    run = serializers.CharField()
    against = serializers.CharField(allow_null=True)
    measure = serializers.CharField()
    n_documents = serializers.IntegerField()
    n_outside = serializers.IntegerField()
    share_outside = serializers.FloatField()
    examples_outside = serializers.ListField(child=serializers.ListField(child=serializers.CharField()))
    n_drawn = serializers.IntegerField()
    n_judged = serializers.IntegerField()
    expected_judgments = serializers.FloatField()
    effective_judgments = serializers.FloatField()
    half_width = serializers.FloatField(allow_null=True)
    half_width_now = serializers.FloatField(allow_null=True)
    relative_variance = serializers.FloatField(allow_null=True)
    relative_reason = serializers.CharField(allow_blank=True)
    refusal = serializers.CharField(allow_blank=True)
    refusal_now = serializers.CharField(allow_blank=True)
    too_few = serializers.CharField(allow_blank=True)
    usual_half_width = serializers.FloatField(allow_null=True)
    outside = OutsideAnswer(allow_null=True)
    corrected = CorrectedAnswer(help_text="`half_width` is the drawing alone")
    wanted_half_width = serializers.FloatField(allow_null=True)
    lacking = LackingAnswer(allow_null=True)
    lacking_refusal = serializers.CharField(allow_blank=True)
    lacking_is_being_computed = serializers.BooleanField()
    draws = serializers.CharField(help_text="Where `lacking.design` can be posted")
