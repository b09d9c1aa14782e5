"""Background jobs and the log of events, for API clients."""

import uuid
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from judging.models import Assessor
from judging.services.access import ManagersOnly, ResearchersOnly, stoppable_jobs, visible_jobs
from touchstone import jobs
from touchstone.event_details import details_with_names
from touchstone.models import Event, Job, user_of


class JobAnswer(serializers.ModelSerializer[Job]):
    percent = serializers.IntegerField(help_text="Progress in percent; 100 only when the job is done.")
    requested_by = serializers.CharField(source="requested_by.username", allow_null=True, default=None)
    result = serializers.DictField(help_text="The result; its keys depend on the kind.")

    class Meta:
        model = Job
        fields: tuple[str, ...] = (
            "id",
            "kind",
            "state",
            "done",
            "total",
            "percent",
            "note",
            "result",
            "error",
            "requested_by",
            "cancel_requested",
            "created_at",
            "finished_at",
        )
        read_only_fields: tuple[str, ...] = fields


class JobLine(JobAnswer):
    """A job without its result, which may be a megabyte: ask for the one job."""

    class Meta(JobAnswer.Meta):
        fields = tuple(name for name in JobAnswer.Meta.fields if name != "result")
        read_only_fields = fields

    result = None  # type: ignore[assignment]  # so a serializer drops a field that it inherits


class Jobs(generics.ListAPIView[Job]):
    """Background jobs of campaigns and collections you may see, the newest first; without their results."""

    permission_classes = (ResearchersOnly,)
    serializer_class = JobLine
    queryset = Job.objects.none()
    filter_fields = {
        "kind": "kind",
        "state": "state",
        "since": "created_at__gte",
        "requested_by": "requested_by__username",
    }
    order_fields = ("created_at",)
    default_order = "-created_at"

    def get_queryset(self) -> QuerySet[Job]:
        return visible_jobs(user_of(self.request)).select_related("requested_by").defer("result", "payload")

    @extend_schema(operation_id="jobs_list", tags=["jobs"])
    def get(self, request: Request) -> Response:
        return self.list(request)


class OneJob(APIView):
    permission_classes = (ResearchersOnly,)

    @extend_schema(operation_id="job_read", tags=["jobs"], responses=JobAnswer)
    def get(self, request: Request, job_id: uuid.UUID) -> Response:
        """The progress of a job, its result or its error."""
        return Response(JobAnswer(_job(request, job_id)).data)


class JobCancel(APIView):
    permission_classes = (ResearchersOnly,)

    @extend_schema(operation_id="job_cancel", tags=["jobs"], request=None, responses=JobAnswer)
    def post(self, request: Request, job_id: uuid.UUID) -> Response:
        """Cancel a job: at once if it waits, at its next step if it runs."""
        jobs.cancel(get_object_or_404(stoppable_jobs(user_of(request)), pk=job_id))
        return Response(JobAnswer(_job(request, job_id)).data)


def _job(request: Request, job_id: uuid.UUID) -> Job:
    return get_object_or_404(visible_jobs(user_of(request)).select_related("requested_by"), pk=job_id)


# -- events ---------------------------------------------------------------------------------------------------


class EventList(serializers.ListSerializer[Event]):
    """Events as a page shows them: the people of all of them are looked up together."""

    def to_representation(self, data: Any) -> list[Any]:
        rows = list(data)
        shown = super().to_representation(rows)
        for answer, detail in zip(shown, details_with_names(rows), strict=True):
            answer["detail"] = detail
        return list(shown)


class EventAnswer(serializers.ModelSerializer[Event]):
    actor = serializers.CharField(source="actor.username", allow_null=True, default=None)
    detail = serializers.DictField(help_text="Details; the keys depend on the verb.")

    class Meta:
        model = Event
        list_serializer_class = EventList
        fields = ("id", "at", "actor", "verb", "subject", "detail")
        read_only_fields = fields


class Events(generics.ListAPIView[Event]):
    """An event with its subject and actor. Events cannot be changed or deleted."""

    permission_classes = (ManagersOnly,)
    serializer_class = EventAnswer
    queryset = Event.objects.none()
    filter_fields = {
        "verb": "verb",
        "actor": "actor__username",
        "since": "at__gte",
        "until": "at__lt",
    }
    order_fields = ("id",)
    default_order = "-id"

    def subject(self) -> str:
        raise NotImplementedError

    def get_queryset(self) -> QuerySet[Event]:
        return Event.objects.filter(subject=self.subject()).select_related("actor")


class CampaignEvents(Events):
    """The events of the campaign, the newest first."""

    def subject(self) -> str:
        return f"campaign:{self.kwargs['campaign_id']}"

    @extend_schema(operation_id="campaign_events_list", tags=["events"])
    def get(self, request: Request, **named: Any) -> Response:
        return self.list(request)


class CollectionEvents(Events):
    """The events of the collection, the newest first."""

    def subject(self) -> str:
        return f"collection:{self.kwargs['collection_id']}"

    @extend_schema(operation_id="collection_events_list", tags=["events"])
    def get(self, request: Request, **named: Any) -> Response:
        return self.list(request)


class AssessorEvents(Events):
    """The events of one assessor, the newest first."""

    def subject(self) -> str:
        named = {"pk": self.kwargs["assessor_id"], "campaign_id": self.kwargs["campaign_id"]}
        return f"assessor:{get_object_or_404(Assessor, **named).pk}"

    @extend_schema(operation_id="assessor_events_list", tags=["events"])
    def get(self, request: Request, **named: Any) -> Response:
        return self.list(request)
