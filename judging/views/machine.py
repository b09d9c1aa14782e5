"""Requests of machine assessors: what to judge by, and many judgments at once."""

import json
import uuid
from collections.abc import Mapping
from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from judging.models import Judgment, MachineCall
from judging.serializers import Submission, saved_json
from judging.serializers.schema import BatchAnswer, InstructionsAnswer
from judging.serializers.strict import Token
from judging.services import assign, machines
from judging.services.errors import Refused
from judging.services.machines import MOST_AT_ONCE

LARGEST = 2_147_483_647
MOST_CALLS = 10 * MOST_AT_ONCE  # every retry is a call


class CallRow(serializers.Serializer[Any]):
    """One request to a model."""

    token = Token()
    status = serializers.ChoiceField(MachineCall.Status.choices)
    model = serializers.CharField(max_length=200)
    detail = serializers.CharField(max_length=2000, allow_blank=True, default="", trim_whitespace=False)
    prompt_tokens = serializers.IntegerField(min_value=0, max_value=LARGEST, default=0)
    completion_tokens = serializers.IntegerField(min_value=0, max_value=LARGEST, default=0)
    cost = serializers.DecimalField(max_digits=14, decimal_places=8, min_value=0, default=0)  # type: ignore[arg-type]  # the description shows it so
    milliseconds = serializers.IntegerField(min_value=0, max_value=LARGEST, default=0)


class _CheckedLater(serializers.JSONField):
    """What is checked by itself, later, whatever it is: one that is wrong keeps no other from being stored."""

    def validate_empty_values(self, data: Any) -> tuple[bool, Any]:
        return False, data


@extend_schema_field(Submission)
class SubmissionLater(_CheckedLater):
    """A judgment."""


@extend_schema_field(CallRow)
class CallLater(_CheckedLater):
    """A request to a model."""


class Batch(serializers.Serializer[Any]):
    """Up to 50 judgments; each is looked at by itself, and a wrong one has its own 400 among the answers."""

    judgments = serializers.ListField(child=SubmissionLater(), max_length=MOST_AT_ONCE, default=list)
    calls = serializers.ListField(child=CallLater(), max_length=MOST_CALLS, default=list)
    release = serializers.ListField(child=Token(), max_length=MOST_AT_ONCE, default=list)


class MachineInstructions(APIView):
    scope = "judge"

    @extend_schema(operation_id="instructions_retrieve", responses=InstructionsAnswer)
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """What a machine judges by: the scale, the guidelines, the prompt."""
        assessor = assign.assessor_of(user=request.user, campaign_id=campaign_id)
        return Response(machines.instructions(assessor=assessor))


class MachineBatch(APIView):
    scope = "judge"

    @extend_schema(operation_id="batch_create", request=Batch, responses=BatchAnswer)
    def post(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """Store judgments and calls, and give leases back; one answer for each, in their order.

        One that cannot be stored does not keep the others from being stored. The request may be repeated.
        """
        assessor = assign.assessor_of(user=request.user, campaign_id=campaign_id)
        sent = Batch(data=request.data)
        sent.is_valid(raise_exception=True)
        if sent.validated_data["calls"] or sent.validated_data["release"]:
            machines.check_is_machine(assessor)
        judgments = [_validated_serializer(Submission, body) for body in sent.validated_data["judgments"]]
        calls = [_validated_serializer(CallRow, body) for body in sent.validated_data["calls"]]
        outcomes, stored = machines.save_batch(
            assessor=assessor,
            submissions=[checked.validated_data for checked in judgments if checked.is_valid()],
            calls=[checked.validated_data for checked in calls if checked.is_valid()],
        )
        tokens = sent.validated_data["release"]
        answer: dict[str, Any] = {
            "saved": _in_order(judgments, [_outcome_json(outcome) for outcome in outcomes]),
            "calls": _in_order(calls, [{"status": 200 if done else 404} for done in stored]),
        }
        if tokens:
            answer["released"] = machines.give_back(assessor=assessor, tokens=tokens)
        return Response(answer)


def _validated_serializer(
    serializer: type[serializers.Serializer[Any]], body: Any
) -> serializers.Serializer[Any]:
    checked = serializer(data={} if body is None else body)  # None would mean "no data were given"
    checked.is_valid()
    return checked


def _in_order(
    entries: list[serializers.Serializer[Any]], answers: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return for each entry its token with the next answer if it is valid, with its faults if not."""
    following = iter(answers)
    return [
        {"token": str(entry.validated_data["token"]), **next(following)}
        if entry.is_valid()
        else _invalid_json(entry)
        for entry in entries
    ]


def _invalid_json(entry: serializers.Serializer[Any]) -> dict[str, Any]:
    token = entry.initial_data.get("token") if isinstance(entry.initial_data, Mapping) else None
    return {
        "token": token if isinstance(token, str) else None,
        "status": 400,
        "type": "/problems/Invalid",
        "title": "The request is not valid",
        "detail": json.dumps(entry.errors),
    }


def _outcome_json(outcome: Judgment | Refused) -> dict[str, Any]:
    if isinstance(outcome, Judgment):
        return {**saved_json(outcome), "status": 200}
    name = type(outcome).__name__
    return {"status": outcome.status, "type": f"/problems/{name}", "title": outcome.title}
