"""Topics checked: the plans with their topics and decisions, one more plan, and what a check found."""

import uuid
from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from console.campaigns import campaign_of
from judging.serializers.strict import Finite, Flag, Strict, WholeNumber, Word
from judging.services.access import ManagersOnly
from sampling.models import TopicCheck, TopicCheckPlan
from sampling.services.topic_checks import plan_checks, record_finding, status_of
from touchstone.models import user_of

LEAST_RISK, MOST_RISK = 1e-6, 0.999


class TopicPlanRequest(Strict):
    n_bad_good = WholeNumber(min_value=0, help_text="So many bad topics are good enough")
    n_bad_limit = WholeNumber(min_value=1, help_text="So many bad topics are too many")
    alpha = Finite(
        min_value=LEAST_RISK, max_value=MOST_RISK, default=0.05, help_text="Risk of rejecting the former"
    )
    beta = Finite(
        min_value=LEAST_RISK, max_value=MOST_RISK, default=0.05, help_text="Risk of accepting the latter"
    )
    seed = WholeNumber(min_value=0, required=False, help_text="Else one is drawn")


class FindingRequest(Strict):
    topic_id = Word(max_length=200, help_text="The plan's next topic")
    is_bad = Flag()
    reason = Word(max_length=2000, allow_blank=True, default="")


class TopicCheckAnswer(serializers.Serializer[Any]):
    sequence = serializers.IntegerField(min_value=1)
    topic_id = serializers.CharField()
    is_bad = serializers.BooleanField(allow_null=True, help_text="Null until it is checked")
    reason = serializers.CharField(allow_blank=True)


class TopicPlanAnswer(serializers.Serializer[Any]):
    """A plan, its topics in the order of checking, and the decision: null while the rest may still decide it."""

    sequence = serializers.IntegerField(min_value=1)
    n_topics = serializers.IntegerField()
    n_bad_good = serializers.IntegerField()
    n_bad_limit = serializers.IntegerField()
    alpha = serializers.FloatField()
    beta = serializers.FloatField()
    n_checks = serializers.IntegerField()
    most_bad = serializers.IntegerField(help_text="Accepted if at most so many of the checked topics are bad")
    producer_risk = serializers.FloatField()
    consumer_risk = serializers.FloatField()
    seed = serializers.IntegerField()
    n_checked = serializers.IntegerField()
    n_bad = serializers.IntegerField()
    is_accepted = serializers.BooleanField(allow_null=True)
    most_bad_topics = serializers.IntegerField(help_text="Exact upper 95 % bound, of all topics")
    made_at = serializers.DateTimeField()
    checks = TopicCheckAnswer(many=True)


class TopicPlansAnswer(serializers.Serializer[Any]):
    plans = TopicPlanAnswer(many=True)


class TopicChecksView(APIView):
    """The campaign's plans of topic checks; a POST makes one more and draws its topics."""

    permission_classes = (ManagersOnly,)

    @extend_schema(operation_id="topic_checks_list", responses=TopicPlansAnswer)
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        plans = campaign_of(campaign_id).topic_check_plans.order_by("sequence")
        return Response({"plans": [_plan_json(plan) for plan in plans]})

    @extend_schema(
        operation_id="topic_checks_create", request=TopicPlanRequest, responses={201: TopicPlanAnswer}
    )
    def post(self, request: Request, campaign_id: uuid.UUID) -> Response:
        sent = TopicPlanRequest(data=request.data)
        sent.is_valid(raise_exception=True)
        made = plan_checks(campaign=campaign_of(campaign_id), user=user_of(request), **sent.validated_data)
        return Response(_plan_json(made), status=201)


class TopicFindingsView(APIView):
    """A POST stores what the check of a plan's next topic found, and answers with the plan."""

    permission_classes = (ManagersOnly,)

    @extend_schema(
        operation_id="topic_findings_create", request=FindingRequest, responses={201: TopicPlanAnswer}
    )
    def post(self, request: Request, campaign_id: uuid.UUID, sequence: int) -> Response:
        plan = get_object_or_404(TopicCheckPlan, campaign=campaign_id, sequence=sequence)
        sent = FindingRequest(data=request.data)
        sent.is_valid(raise_exception=True)
        found = sent.validated_data
        checks = TopicCheck.objects.select_related("plan__campaign", "topic").filter(plan=plan)
        check = checks.filter(topic__topic_id=found["topic_id"]).first()
        if check is None:
            raise serializers.ValidationError({"topic_id": [f"the plan has no topic {found['topic_id']!r}"]})
        record_finding(
            check=check, is_bad=found["is_bad"], reason=found["reason"].strip(), user=user_of(request)
        )
        return Response(_plan_json(plan), status=201)


def _plan_json(plan: TopicCheckPlan) -> dict[str, Any]:
    status = status_of(plan)
    names = (
        *("sequence", "n_topics", "n_bad_good", "n_bad_limit", "alpha", "beta"),
        *("n_checks", "most_bad", "producer_risk", "consumer_risk", "seed"),
    )
    checks = plan.checks.select_related("topic", "finding").order_by("sequence")
    return {
        **{name: getattr(plan, name) for name in names},
        "n_checked": status.n_checked,
        "n_bad": status.n_bad,
        "is_accepted": status.is_accepted,
        "most_bad_topics": status.most_bad_topics,
        "made_at": plan.created_at.isoformat(),
        "checks": [_check_json(check) for check in checks],
    }


def _check_json(check: TopicCheck) -> dict[str, Any]:
    finding = getattr(check, "finding", None)
    return {
        "sequence": check.sequence,
        "topic_id": check.topic.topic_id,
        "is_bad": finding.is_bad if finding else None,
        "reason": finding.reason if finding else "",
    }
