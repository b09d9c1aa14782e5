"""Requests about two rounds, and the answers."""

import uuid
from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from analytics.estimation.rounds import CLAIMS
from analytics.services.rounds import (
    RoundsState,
    is_current,
    rounds_question,
    rounds_sentence,
    rounds_under_conditions,
)
from analytics.services.rounds.question import (
    AUDITS,
    RoundChoice,
    RoundsQuestion,
    RoundsRefused,
    refuse_question,
)
from judging.models import Campaign
from judging.serializers.strict import Choice, Strict, Word
from sampling.design_fields import LONGEST_MEASURE
from touchstone.models import Job, User

LONGEST_DATE = 40


class RoundRequest(Strict):
    """A campaign and a run of its collection."""

    campaign = serializers.UUIDField()
    run = Word(max_length=200)


class FirstRoundRequest(RoundRequest):
    """The first round; with `until` the topics that were judged before it."""

    until = Word(
        max_length=LONGEST_DATE, default="", allow_blank=True, help_text="ISO 8601; without a zone UTC"
    )


class SecondRoundRequest(RoundRequest):
    """The second round; with `since` the topics that were judged from then on."""

    since = Word(
        max_length=LONGEST_DATE, default="", allow_blank=True, help_text="ISO 8601; without a zone UTC"
    )


class RoundsRequest(Strict):
    """Two rounds, the measure, the claim, and which audit says how assessors err."""

    first = FirstRoundRequest()
    second = SecondRoundRequest()
    measure = Word(max_length=LONGEST_MEASURE)
    claim = Choice(list(CLAIMS), default=CLAIMS[0])
    audit = Choice(list(AUDITS), default="own")

    def validate(self, sent: dict[str, Any]) -> dict[str, Any]:
        campaigns, choices = {}, {}
        for name in ("first", "second"):
            given = dict(sent[name])
            campaigns[name] = visible_campaign(self.context["user"], given["campaign"], name)
            choices[name] = RoundChoice(**given | {"campaign": str(given["campaign"])})
        question = RoundsQuestion(
            choices["first"], choices["second"], sent["measure"], sent["claim"], sent["audit"]
        )
        try:
            refuse_question(question, campaigns["first"], campaigns["second"])
        except RoundsRefused as refusal:
            raise serializers.ValidationError(at_field(refusal.field, str(refusal))) from refusal
        return {"question": question, **campaigns}


def visible_campaign(user: User, campaign_id: uuid.UUID, name: str) -> Campaign:
    """Return a drawn campaign that the user may see; any other looks absent."""
    rows = Campaign.objects.visible_to(user).filter(draws__batch=1).select_related("collection", "scale")
    found = rows.filter(pk=campaign_id).first()
    if found is None:
        raise serializers.ValidationError(at_field(f"{name}.campaign", "there is no such campaign"))
    return found


def at_field(field: str, reason: str) -> dict[str, Any]:
    """Return a fault under its field, which may be within another.

    >>> at_field("second.run", "absent")
    {'second': {'run': ['absent']}}
    """
    outer, _, inner = (field or "first").partition(".")
    return {outer: {inner: [reason]} if inner else [reason]}


class RoundsClaimAnswer(serializers.Serializer[Any]):
    """The difference under one claim."""

    claim = serializers.ChoiceField(list(CLAIMS))
    value = serializers.FloatField()
    low = serializers.FloatField()
    high = serializers.FloatField()
    p_value = serializers.FloatField(allow_null=True)
    degrees_of_freedom = serializers.FloatField(allow_null=True)
    statistic = serializers.FloatField(allow_null=True)
    limited_by = serializers.CharField(help_text="What gave the half-width: topics or judging")
    significant = serializers.BooleanField()


class RoundsResult(serializers.Serializer[Any]):
    """The difference of two rounds; `claims` are empty where `refusal` says why."""

    first = serializers.DictField()
    second = serializers.DictField()
    measure = serializers.CharField()
    claim = serializers.CharField()
    audit = serializers.CharField()
    n_shared_topics = serializers.IntegerField()
    one_audit = serializers.BooleanField(help_text="Whether both audits went by the same random numbers")
    covariance = serializers.FloatField(
        allow_null=True, help_text="C, of the documents audited in both rounds"
    )
    n_audited_in_both = serializers.IntegerField(allow_null=True)
    refusal = serializers.CharField(allow_blank=True)
    claims = RoundsClaimAnswer(many=True)
    lines = serializers.ListField(child=serializers.DictField(), help_text="The papers' methods, by name")
    drift = serializers.CharField(allow_blank=True)
    sentence = serializers.CharField()
    is_current = serializers.BooleanField(help_text="Whether no judgment has arrived since")


class RoundsAnswer(serializers.Serializer[Any]):
    """A comparison of two rounds: its job and, once it is done, the result."""

    job = serializers.UUIDField()
    state = serializers.ChoiceField(Job.State.choices)
    result = RoundsResult(allow_null=True)
    failed = serializers.CharField(allow_null=True, help_text="Why there is no result")


def rounds_json(job: Job) -> dict[str, Any]:
    """Return the answer about a job of two rounds."""
    return {
        "job": str(job.pk),
        "state": job.state,
        "result": shown_rounds(job.result, job) if job.state == Job.State.DONE else None,
        "failed": job.error if job.state == Job.State.FAILED else None,
    }


def shown_rounds(result: Mapping[str, Any], job: Job) -> dict[str, Any]:
    """Return a result with its sentence, as the three questions allow it to be read."""
    question = rounds_question(job)
    first, second = (Campaign.objects.get(pk=choice.campaign) for choice in (question.first, question.second))
    shown = rounds_under_conditions(dict(result), first, second)
    return {
        **shown,
        "sentence": rounds_sentence(shown),
        "is_current": is_current(shown, first, second),
    }


def state_json(state: RoundsState) -> dict[str, Any] | None:
    """Return the newest result that was made, as it may be read; None without one."""
    return shown_rounds(state.result, state.made) if state.result and state.made else None
