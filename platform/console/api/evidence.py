"""The evidence behind the numbers: computations, assessor accuracy, flags, audit forecasts, disputed items."""

import uuid
from typing import Any

from django.db.models import QuerySet
from django.http import Http404
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from analytics.models import AuditForecast, Computation, ConfusionEstimate, DisputedItem, Flag
from analytics.services.job_queue import newest_job
from analytics.services.recomputation import queue_recomputation
from analytics.services.screening import current_flags
from console.api.common import ComputationKey, OfComputation, job_accepted
from console.api.jobs import JobAnswer
from console.api.serializers.results import (
    ComputationAnswer,
    ConfusionAnswer,
    DisputedAnswer,
    FlagAnswer,
    ForecastAnswer,
)
from console.campaigns import campaign_of, drawn_campaign
from judging.services.access import ManagersOnly, ResearchersOnly
from touchstone.models import user_of


class ComputationsView(ListAPIView[Computation]):
    """The computations of the campaign, the newest first. A POST, by a manager, starts a new one now."""

    permission_classes = (ResearchersOnly,)
    serializer_class = ComputationAnswer
    queryset = Computation.objects.none()
    filter_fields = {"since": "created_at__gte", "until": "created_at__lt"}
    default_order = "-pk"

    def get_queryset(self) -> QuerySet[Any]:
        return Computation.objects.filter(campaign_id=self.kwargs["campaign_id"])

    @extend_schema(operation_id="computations_list")
    def get(self, request: Request, *arguments: Any, **named: Any) -> Response:
        return self.list(request)

    @extend_schema(operation_id="computations_create", request=None, responses={202: JobAnswer})
    def post(self, request: Request, campaign_id: uuid.UUID) -> Response:
        if not user_of(request).may_manage:
            raise Http404
        row = drawn_campaign(campaign_id)
        queue_recomputation(campaign=row)
        job = newest_job("estimate", active_key=str(row.pk))
        if job is None:
            raise Http404
        return job_accepted(job)


class ComputationView(APIView):
    """One computation: which rows it saw, and the test of the papers' assumption."""

    permission_classes = (ResearchersOnly,)

    @extend_schema(operation_id="computations_retrieve", responses=ComputationAnswer)
    def get(self, request: Request, campaign_id: uuid.UUID, computation_id: int) -> Response:
        found = get_object_or_404(Computation, pk=computation_id, campaign_id=campaign_id)
        return Response(ComputationAnswer(found).data)


class ConfusionsView(OfComputation):
    """The accuracy of assessors and groups. Only managers see the matrices of single assessors."""

    serializer_class = ConfusionAnswer
    queryset = ConfusionEstimate.objects.none()
    filter_fields = {
        "computation": ("computation_id", ComputationKey()),
        "scope": "scope",
        "key": "key",
        "assessor_id": "assessor_id",
    }

    def get_queryset(self) -> QuerySet[Any]:
        rows = super().get_queryset()
        rows = rows.select_related("assessor__user")
        return rows if user_of(self.request).may_manage else rows.filter(assessor=None)

    @extend_schema(operation_id="confusions_list")
    def get(self, request: Request, *arguments: Any, **named: Any) -> Response:
        return self.list(request)


class FlagsView(OfComputation):
    """Evidence against assessors, for a manager to look at. It suspends nobody by itself.

    Without `?computation=` the flags that stand: of the newest computation, and of the newest screening of the log,
    which may be that of a computation before.
    """

    permission_classes = (ManagersOnly,)
    serializer_class = FlagAnswer
    queryset = Flag.objects.none()
    filter_fields = {
        "computation": ("computation_id", ComputationKey()),
        "test": "kind",
        "assessor_id": "assessor_id",
        "assessor": "assessor__user__username",
    }

    def get_queryset(self) -> QuerySet[Any]:
        if "computation" in self.request.query_params:
            rows = super().get_queryset()
        else:
            rows = current_flags(campaign_of(self.kwargs["campaign_id"]))
        return rows.select_related("assessor__user")

    @extend_schema(operation_id="flags_list")
    def get(self, request: Request, *arguments: Any, **named: Any) -> Response:
        return self.list(request)


class ForecastsView(OfComputation):
    """The expected half-width of the 95 % confidence interval after one more audit, by strategy."""

    permission_classes = (ManagersOnly,)
    serializer_class = ForecastAnswer
    queryset = AuditForecast.objects.none()
    filter_fields = {"computation": ("computation_id", ComputationKey()), "strategy": "strategy"}

    def get_queryset(self) -> QuerySet[Any]:
        return super().get_queryset().select_related("run", "run_b")

    @extend_schema(operation_id="audit_forecasts_list")
    def get(self, request: Request, *arguments: Any, **named: Any) -> Response:
        return self.list(request)


class DisputedItemsView(OfComputation):
    """The adjudication queue: items whose grade may be wrong and affects comparisons, the most influential first."""

    permission_classes = (ManagersOnly,)
    serializer_class = DisputedAnswer
    queryset = DisputedItem.objects.none()
    filter_fields = {
        "computation": ("computation_id", ComputationKey()),
        "topic_id": "item__topic__topic_id",
    }
    order_fields = ("position",)

    def get_queryset(self) -> QuerySet[Any]:
        return super().get_queryset().select_related("item__topic", "item__document")

    @extend_schema(operation_id="disputed_items_list")
    def get(self, request: Request, *arguments: Any, **named: Any) -> Response:
        return self.list(request)
