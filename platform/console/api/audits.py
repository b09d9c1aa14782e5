"""Audits: the list, one more, the schedule, and each audit's sample as a file."""

import uuid

from django.http import StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from console.api.draws import job_response
from console.campaigns import campaign_of
from judging.services.access import ManagersOnly
from judging.services.errors import Refused
from sampling.models import Audit, AuditSchedule
from sampling.serializers.audits import (
    AuditRequest,
    AuditsAnswer,
    ScheduleOrNone,
    ScheduleRequest,
    audit_json,
    schedule_json,
)
from sampling.serializers.designs import CampaignJobAnswer
from sampling.services.audit_samples import sample_lines
from sampling.services.audit_schedules import save_schedule
from sampling.services.auditing import queue_audit
from touchstone.models import user_of


class AuditRunning(Refused):
    status = 409
    title = "Another audit of this campaign is being drawn"


class AuditsView(APIView):
    """The campaign's audits and their schedule; a POST queues one more audit, now."""

    permission_classes = (ManagersOnly,)

    @extend_schema(operation_id="audits_list", responses=AuditsAnswer)
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        campaign = campaign_of(campaign_id)
        schedule = AuditSchedule.objects.filter(campaign=campaign).first()
        audits = [audit_json(audit) for audit in campaign.audits.order_by("sequence")]
        return Response({"campaign": str(campaign.pk), "schedule": schedule_json(schedule), "audits": audits})

    @extend_schema(operation_id="audits_create", request=AuditRequest, responses={202: CampaignJobAnswer})
    def post(self, request: Request, campaign_id: uuid.UUID) -> Response:
        campaign = campaign_of(campaign_id)
        sent = AuditRequest(data=request.data)
        sent.is_valid(raise_exception=True)
        job = queue_audit(campaign=campaign, user=user_of(request), **sent.audit_arguments())
        if job is None:
            raise AuditRunning("wait until it is done")
        return job_response(job, campaign, status=202)


class AuditScheduleView(APIView):
    """The schedule of audits. A PATCH changes the fields it names. A new time counts from now on."""

    permission_classes = (ManagersOnly,)

    @extend_schema(operation_id="audit_schedule_retrieve", responses=ScheduleOrNone)
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        schedule = AuditSchedule.objects.filter(campaign=campaign_of(campaign_id)).first()
        return Response({"schedule": schedule_json(schedule)})

    @extend_schema(operation_id="audit_schedule_update", request=ScheduleRequest, responses=ScheduleOrNone)
    def patch(self, request: Request, campaign_id: uuid.UUID) -> Response:
        sent = ScheduleRequest(data=request.data)
        sent.is_valid(raise_exception=True)
        save_schedule(campaign=campaign_of(campaign_id), actor=user_of(request), **sent.validated_data)
        return self.get(request, campaign_id)


class AuditSampleView(APIView):
    """All items that an audit could select, as CSV, with everything needed to draw the sample again."""

    permission_classes = (ManagersOnly,)

    @extend_schema(operation_id="audit_samples_retrieve", responses={(200, "text/csv"): OpenApiTypes.BINARY})
    def get(self, request: Request, campaign_id: uuid.UUID, sequence: int) -> HttpResponseBase:
        audit = get_object_or_404(Audit, campaign_id=campaign_id, sequence=sequence)
        answer = StreamingHttpResponse(sample_lines(audit), content_type="text/csv; charset=utf-8")
        name = f"audit-{audit.sequence}-{audit.tier}-{audit.strategy}.csv"
        answer["Content-Disposition"] = f'attachment; filename="{name}"'
        return answer
