"""Uploaded runs: a job imports and estimates them; their estimates."""

import uuid
from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.parsers import MultiPartParser
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from analytics.services.run_upload import find_estimates, queue_upload
from console.api.common import MeasureRequest, job_accepted, query_of
from console.api.jobs import JobAnswer
from console.api.serializers.comparisons import RunEstimateAnswer
from console.campaigns import drawn_campaign
from console.claims import ClaimRequest, claim_fields, comparisons_of
from judging.models import Run
from judging.serializers.strict import Flag, LongWord, Strict, Word
from judging.services.access import ResearchersOnly
from touchstone.models import user_of

LONGEST_DESCRIPTION = 2000


class UploadRequest(Strict):
    """One run file in TREC's format, also compressed with gzip; its run tag becomes the run's id."""

    is_strict = True
    file = serializers.FileField(max_length=300)
    description = LongWord(max_length=LONGEST_DESCRIPTION, default="", allow_blank=True)
    may_publish = Flag(default=False, help_text="Whether releases may contain the run")
    is_manual = Flag(default=False, help_text="Whether a person took part in making the run")
    group = Word(
        max_length=200,
        default="",
        allow_blank=True,
        help_text="Whose run it is: a team, or variants of one system",
    )
    against = Word(
        max_length=200,
        default="",
        allow_blank=True,
        help_text="The run to compare it with; by default the best one",
    )


class RunEstimateRequest(ClaimRequest, MeasureRequest):
    """The run, and the run to compare it with, with which claim."""

    run = Word(max_length=200)
    against = Word(max_length=200, default="")


class UploadView(APIView):
    """Upload a run: a job imports and estimates it. Its result has the numbers, and so has `run-estimate`."""

    permission_classes = (ResearchersOnly,)
    parser_classes = (MultiPartParser,)

    @extend_schema(
        operation_id="campaign_runs_create",
        request={"multipart/form-data": UploadRequest},
        responses={202: JobAnswer},
    )
    def post(self, request: Request, campaign_id: uuid.UUID) -> Response:
        row = drawn_campaign(campaign_id)
        sent = UploadRequest(data=request.data)
        sent.is_valid(raise_exception=True)
        return job_accepted(queue_upload(campaign=row, user=user_of(request), **dict(sent.validated_data)))


class RunEstimateView(APIView):
    """The estimates of a run: from the newest computation, or, before it contains the run, from its upload."""

    permission_classes = (ResearchersOnly,)
    query_serializer = RunEstimateRequest

    @extend_schema(operation_id="run_estimate_retrieve", responses=RunEstimateAnswer)
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        row = drawn_campaign(campaign_id)
        sent = query_of(RunEstimateRequest, request, row)
        choice = {name: sent[name] for name in claim_fields()}
        run = _run(row.collection.runs, sent["run"])
        rival = _run(row.collection.runs, sent["against"]) if sent["against"] else None
        estimates = find_estimates(campaign=row, run=run, measure=sent["measure"], against=rival)
        among = comparisons_of(row, estimates.computation, sent["measure"], **choice)
        body = {
            "campaign": row.pk,
            "run": estimates.run.run_id,
            "measure": estimates.measure,
            "against": estimates.against.run_id if estimates.against else None,
            **{name: getattr(estimates, name) for name in ("as_of", "is_from_upload")},
            "verdict": estimates.verdict(among),
            "compared": estimates.comparison(among),
            **{name: getattr(estimates, name) for name in ("values", "differences")},
        }
        return Response(RunEstimateAnswer(body).data)


def _run(runs: Any, run_id: str) -> Run:
    run: Run = get_object_or_404(runs, run_id=run_id)
    return run
