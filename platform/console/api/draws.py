"""Designs and draws: forecast a design, draw a batch, follow its job, fetch the recorded frame."""

import hashlib
import uuid
from typing import Any, NoReturn

from django.http import FileResponse, HttpResponseNotModified
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.utils.http import parse_etags
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from analytics.services.forecast import compute
from console.api.serializers.forecasts import DesignForecastAnswer, ForecastRequest
from console.campaigns import campaign_of
from judging.models import Campaign
from judging.services.access import ManagersOnly
from judging.services.errors import Refused
from sampling.frames import FrameRefused
from sampling.models import Draw
from sampling.questions import QuestionRefused
from sampling.serializers.designs import (
    CampaignJobAnswer,
    DesignRequest,
    DrawRequest,
    DrawsAnswer,
    draws_json,
    job_json,
)
from sampling.services.queueing import queue_draw
from touchstone.files import FileDamaged, local
from touchstone.models import Job, user_of


class DesignRefused(Refused):
    status = 409
    title = "This design cannot be carried out here"


class FrameDamaged(Refused):
    status = 409
    title = "The recorded frame is missing or has been altered"


class ForecastView(APIView):
    """The expected half-width by budget, under this design and others. Nothing is changed."""

    permission_classes = (ManagersOnly,)
    scope = "read"

    @extend_schema(operation_id="forecasts_create", request=ForecastRequest, responses=DesignForecastAnswer)
    def post(self, request: Request, campaign_id: uuid.UUID) -> Response:
        campaign = campaign_of(campaign_id)
        sent = _valid_data(ForecastRequest, request, campaign)
        design, rates = sent["design"], (sent["misses"], sent["false_alarms"])
        try:
            forecast, _ = compute(campaign=campaign, design=design, rates=rates)
        except (FrameRefused, QuestionRefused) as refusal:
            raise DesignRefused(str(refusal)) from refusal
        return Response({"design": design.parameters(), **forecast.as_json()})


class DrawsView(APIView):
    """The campaign's batches; a POST queues the draw of another one."""

    permission_classes = (ManagersOnly,)

    @extend_schema(operation_id="draws_list", responses=DrawsAnswer)
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        campaign = campaign_of(campaign_id)
        try:
            return Response({"campaign": str(campaign.pk), "draws": draws_json(campaign)})
        except (FrameRefused, FileNotFoundError, FileDamaged) as refusal:
            _refuse_damaged(refusal)

    @extend_schema(
        operation_id="draws_create",
        request=DrawRequest,
        responses={200: CampaignJobAnswer, 202: CampaignJobAnswer},
    )
    def post(self, request: Request, campaign_id: uuid.UUID) -> Response:
        campaign = campaign_of(campaign_id)
        sent = _valid_data(DrawRequest, request, campaign)
        job = queue_draw(campaign=campaign, design=sent["design"], seed=sent["seed"], user=user_of(request))
        return job_response(job, campaign, status=202 if job.is_active else 200)


class CampaignJobView(APIView):
    """The progress of a draw, its layout or an audit. Jobs of other campaigns or kinds are not found."""

    permission_classes = (ManagersOnly,)

    @extend_schema(operation_id="draw_jobs_retrieve", responses=CampaignJobAnswer)
    def get(self, request: Request, campaign_id: uuid.UUID, job_id: uuid.UUID) -> Response:
        campaign = campaign_of(campaign_id)
        jobs = Job.objects.filter(kind__in=["draw", "layout", "audit"], payload__campaign=str(campaign.pk))
        return Response(job_json(get_object_or_404(jobs, pk=job_id), campaign))


class FrameView(APIView):
    """The recorded frame of a batch as it was drawn from: a Parquet file whose ETag is its SHA-256."""

    permission_classes = (ManagersOnly,)

    @extend_schema(
        operation_id="draw_frames_retrieve",
        responses={(200, "application/vnd.apache.parquet"): OpenApiTypes.BINARY, 304: None},
    )
    def get(self, request: Request, campaign_id: uuid.UUID, batch: int) -> HttpResponseBase:
        draw = get_object_or_404(Draw, campaign=campaign_of(campaign_id), batch=batch)
        etag = f'"{draw.frame_sha256}"'
        if etag in parse_etags(request.headers.get("If-None-Match", "")):
            answer: HttpResponseBase = HttpResponseNotModified()
        else:
            answer = _frame_file(draw)
        answer.headers["ETag"] = etag
        return answer


def job_response(job: Job, campaign: Campaign, *, status: int) -> Response:
    """Return the job that does what was asked, and where to ask how far it is."""
    answer = Response(job_json(job, campaign), status=status)
    answer["Location"] = answer.data["url"]
    return answer


def _frame_file(draw: Draw) -> FileResponse:
    """Return the frame's file, or refuse one whose checksum is not the recorded one."""
    try:
        path = local(draw.frame)
        stream = path.open("rb")
        if hashlib.file_digest(stream, "sha256").hexdigest() != draw.frame_sha256:
            stream.close()
            raise FrameRefused("its checksum differs from the recorded one")
    except (FrameRefused, FileNotFoundError, FileDamaged) as refusal:
        _refuse_damaged(refusal)
    stream.seek(0)
    return FileResponse(
        stream,
        as_attachment=True,
        filename=f"{draw.campaign_id}-batch-{draw.batch}.parquet",
        content_type="application/vnd.apache.parquet",
    )


def _valid_data(serializer: type[DesignRequest], request: Request, campaign: Campaign) -> dict[str, Any]:
    sent = serializer(data=request.data, context={"campaign": campaign, "user": user_of(request)})
    sent.is_valid(raise_exception=True)
    return dict(sent.validated_data)


def _refuse_damaged(fault: Exception) -> NoReturn:
    raise FrameDamaged(
        "the file is missing" if isinstance(fault, FileNotFoundError) else str(fault)
    ) from fault
