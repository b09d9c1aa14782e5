"""Requests of managers' programs about designs, draws and audits: forecast, draw, audit, fetch what was recorded."""

import hashlib
import uuid
from typing import Any, NoReturn

from django.http import FileResponse, Http404, HttpResponseNotModified, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils.http import parse_etags
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import api_view, permission_classes
from rest_framework.request import Request
from rest_framework.response import Response

from judging.models import Campaign
from judging.services.access import ManagersOnly
from judging.services.errors import Refused
from sampling.frames import FrameRefused
from sampling.models import Audit, AuditSchedule, Draw
from sampling.questions import QuestionRefused
from sampling.serializers import (
    AuditRequest,
    AuditsAnswer,
    CampaignJobAnswer,
    DesignForecastAnswer,
    DesignRequest,
    DrawRequest,
    DrawsAnswer,
    ScheduleOrNone,
    ScheduleRequest,
    audit_json,
    draws_json,
    job_json,
    schedule_json,
)
from sampling.services.audit_samples import sample_lines
from sampling.services.audit_schedules import save_schedule
from sampling.services.auditing import queue_audit
from sampling.services.forecasting import preview
from sampling.services.queueing import queue_draw
from touchstone.models import Job, user_of


class DesignRefused(Refused):
    status = 409
    title = "This design cannot be carried out here"


class AuditRunning(Refused):
    status = 409
    title = "Another audit of this campaign is being drawn"


class FrameDamaged(Refused):
    status = 409
    title = "The recorded frame is not there as it was drawn from"


@extend_schema(operation_id="forecasts_create", request=DesignRequest, responses=DesignForecastAnswer)
@api_view(["POST"])
@permission_classes([ManagersOnly])
def forecast(request: Request, campaign_id: uuid.UUID) -> Response:
    """What a budget buys under this design and others, before a judgment is spent. Nothing is changed."""
    campaign = _campaign(campaign_id)
    design = _valid(DesignRequest, request, campaign)["design"]
    try:
        shown = preview(campaign=campaign, design=design)
    except (FrameRefused, QuestionRefused) as refusal:
        raise DesignRefused(str(refusal)) from refusal
    return Response({"design": design.parameters(), **shown.as_json()})


@extend_schema(methods=["GET"], operation_id="draws_list", responses=DrawsAnswer)
@extend_schema(
    methods=["POST"],
    operation_id="draws_create",
    request=DrawRequest,
    responses={200: CampaignJobAnswer, 202: CampaignJobAnswer},
)
@api_view(["GET", "POST"])
@permission_classes([ManagersOnly])
def draws(request: Request, campaign_id: uuid.UUID) -> Response:
    """The campaign's batches; a POST queues the draw of another one."""
    campaign = _campaign(campaign_id)
    if request.method == "GET":
        try:
            return Response({"campaign": str(campaign.pk), "draws": draws_json(campaign)})
        except (FrameRefused, FileNotFoundError) as refusal:
            _damaged(refusal)
    sent = _valid(DrawRequest, request, campaign)
    job = queue_draw(campaign=campaign, design=sent["design"], seed=sent["seed"], user=user_of(request))
    answer = Response(job_json(job, campaign), status=202 if job.is_active else 200)
    answer["Location"] = answer.data["url"]
    return answer


@extend_schema(operation_id="draw_jobs_retrieve", responses=CampaignJobAnswer)
@api_view(["GET"])
@permission_classes([ManagersOnly])
def job(request: Request, campaign_id: uuid.UUID, job_id: uuid.UUID) -> Response:
    """How far a draw, its layout or an audit is. A job of another campaign, or of another kind, is not there."""
    campaign = _campaign(campaign_id)
    of_campaign = Job.objects.filter(kind__in=["draw", "layout", "audit"], payload__campaign=str(campaign.pk))
    return Response(job_json(get_object_or_404(of_campaign, pk=job_id), campaign))


@extend_schema(
    operation_id="draw_frames_retrieve",
    responses={(200, "application/vnd.apache.parquet"): OpenApiTypes.BINARY, 304: None},
)
@api_view(["GET", "HEAD"])
@permission_classes([ManagersOnly])
def frame(request: Request, campaign_id: uuid.UUID, batch: int) -> HttpResponseBase:
    """The recorded frame of a batch as it was drawn from: a Parquet file whose ETag is its SHA-256."""
    draw = get_object_or_404(Draw, campaign=_campaign(campaign_id), batch=batch)
    etag = f'"{draw.frame_sha256}"'
    if etag in parse_etags(request.headers.get("If-None-Match", "")):
        answer: HttpResponseBase = HttpResponseNotModified()
    else:
        try:
            stream = draw.frame.open("rb")
            if hashlib.file_digest(stream, "sha256").hexdigest() != draw.frame_sha256:
                stream.close()
                raise FrameRefused("its checksum is another")
        except (FrameRefused, FileNotFoundError) as refusal:
            _damaged(refusal)
        stream.seek(0)
        answer = FileResponse(
            stream,
            as_attachment=True,
            filename=f"{draw.campaign_id}-batch-{draw.batch}.parquet",
            content_type="application/vnd.apache.parquet",
        )
    answer.headers["ETag"] = etag
    return answer


@extend_schema(methods=["GET"], operation_id="audits_list", responses=AuditsAnswer)
@extend_schema(
    methods=["POST"], operation_id="audits_create", request=AuditRequest, responses={202: CampaignJobAnswer}
)
@api_view(["GET", "POST"])
@permission_classes([ManagersOnly])
def audits(request: Request, campaign_id: uuid.UUID) -> Response:
    """The campaign's audits and their schedule; a POST queues one more audit, now."""
    campaign = _campaign(campaign_id)
    if request.method == "GET":
        schedule = AuditSchedule.objects.filter(campaign=campaign).first()
        made = [audit_json(audit) for audit in campaign.audits.order_by("sequence")]
        return Response({"campaign": str(campaign.pk), "schedule": schedule_json(schedule), "audits": made})
    sent = AuditRequest(data=request.data)
    sent.is_valid(raise_exception=True)
    queued = queue_audit(campaign=campaign, user=user_of(request), **sent.asked())
    if queued is None:
        raise AuditRunning("wait until it is done")
    answer = Response(job_json(queued, campaign), status=202)
    answer["Location"] = answer.data["url"]
    return answer


@extend_schema(methods=["GET"], operation_id="audit_schedule_retrieve", responses=ScheduleOrNone)
@extend_schema(
    methods=["PATCH"],
    operation_id="audit_schedule_update",
    request=ScheduleRequest,
    responses=ScheduleOrNone,
)
@api_view(["GET", "PATCH"])
@permission_classes([ManagersOnly])
def audit_schedule(request: Request, campaign_id: uuid.UUID) -> Response:
    """When audits are made, and which; a PATCH changes what it names. A new time counts from now on."""
    campaign = _campaign(campaign_id)
    if request.method == "PATCH":
        sent = ScheduleRequest(data=request.data)
        sent.is_valid(raise_exception=True)
        save_schedule(campaign=campaign, actor=user_of(request), **sent.validated_data)
    return Response({"schedule": schedule_json(AuditSchedule.objects.filter(campaign=campaign).first())})


@extend_schema(operation_id="audit_samples_retrieve", responses={(200, "text/csv"): OpenApiTypes.BINARY})
@api_view(["GET"])
@permission_classes([ManagersOnly])
def audit_sample(request: Request, campaign_id: uuid.UUID, sequence: int) -> HttpResponseBase:
    """All items an audit could select as CSV, with what it takes to draw the sample again."""
    return sample_answer(get_object_or_404(Audit, campaign_id=campaign_id, sequence=sequence))


def sample_answer(audit: Audit) -> StreamingHttpResponse:
    answer = StreamingHttpResponse(sample_lines(audit), content_type="text/csv; charset=utf-8")
    name = f"audit-{audit.sequence}-{audit.tier}-{audit.strategy}.csv"
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


def _campaign(campaign_id: uuid.UUID) -> Campaign:
    found = Campaign.objects.select_related("collection", "scale").filter(pk=campaign_id).first()
    if found is None:
        raise Http404
    return found


def _valid(serializer: type[DesignRequest], request: Request, campaign: Campaign) -> dict[str, Any]:
    sent = serializer(data=request.data, context={"campaign": campaign})
    sent.is_valid(raise_exception=True)
    return dict(sent.validated_data)


def _damaged(fault: Exception) -> NoReturn:
    raise FrameDamaged("the file is gone" if isinstance(fault, FileNotFoundError) else str(fault)) from fault


forecast.cls.scope = "read"
