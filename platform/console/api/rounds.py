"""Two rounds for API clients: POST queues a comparison, GET gives its result."""

import uuid
from typing import Any

from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from analytics.services.rounds import KIND, ask_rounds
from console.api.serializers.rounds import RoundsAnswer, RoundsRequest, rounds_json
from judging.services.access import ResearchersOnly, visible_jobs
from touchstone.models import Job, user_of


class RoundsView(APIView):
    """Compare a run in one round with a run in another, by a job."""

    permission_classes = (ResearchersOnly,)

    @extend_schema(
        operation_id="rounds_create", tags=["rounds"], request=RoundsRequest, responses={202: RoundsAnswer}
    )
    def post(self, request: Request) -> Response:
        """Queue the comparison (202); `Location` has its result. Both campaigns must be visible to you."""
        user = user_of(request)
        sent = RoundsRequest(data=request.data, context={"user": user})
        sent.is_valid(raise_exception=True)
        job = ask_rounds(**sent.validated_data, user=user)
        answer = _answer(job, status=202)
        answer["Location"] = reverse("console:api-rounds-result", args=[job.pk])
        return answer


class RoundsResultView(APIView):
    """What came of a comparison of two rounds."""

    permission_classes = (ResearchersOnly,)

    @extend_schema(operation_id="rounds_read", tags=["rounds"], responses=RoundsAnswer)
    def get(self, request: Request, job_id: uuid.UUID) -> Response:
        """The result of the job, or its state."""
        job = get_object_or_404(visible_jobs(user_of(request)), pk=job_id, kind=KIND)
        return _answer(job, status=200)


def _answer(job: Job, *, status: int) -> Response:
    body: dict[str, Any] = rounds_json(job)
    answer = Response(body, status=status)
    if job.is_active:
        answer["Retry-After"] = "2"
    return answer
