"""Releases: listed, made by a job, downloaded, cited, compared with the one before, withdrawn."""

import uuid
from typing import Any

from django.core.validators import RegexValidator
from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from analytics.aggregation.rules import DEFAULT_RULE, aggregation_choices
from analytics.models import Release
from analytics.releases.services import releasing
from console.api.serializers.results import ChangesAnswer, CitationAnswer, ReleaseAnswer
from console.campaigns import campaign_of
from console.researcher.downloads import release_file
from judging.serializers.strict import Flag, LongWord, Strict, TableChoice, Word
from judging.services.access import ManagersOnly, ResearchersOnly
from touchstone.models import user_of


class ReleaseRequest(Strict):
    """The contents and the name of the release. Fields that are not sent have the defaults of the page."""

    is_strict = True
    version = Word(max_length=20, validators=[RegexValidator(r"^[0-9]+(\.[0-9]+){0,2}$")])
    title = Word(max_length=200)
    authors = LongWord(
        max_length=5000,
        default="",
        allow_blank=True,
        help_text="One per line, with an ORCID iD where there is one",
    )
    notes = LongWord(max_length=5000, default="", allow_blank=True, help_text="Release notes, in Markdown")
    licence = Word(max_length=200, default="", allow_blank=True)
    doi = Word(max_length=200, default="", allow_blank=True, help_text="Such as 10.5281/zenodo.1")
    url = Word(max_length=500, default="", allow_blank=True, help_text="Where the release will be found")
    aggregation = TableChoice(aggregation_choices, default=DEFAULT_RULE)
    prefers_gold = Flag(default=True)
    includes_documents = Flag(default=False)
    includes_runs = Flag(default=True)


class WithdrawRequest(Strict):
    """The reason for the withdrawal."""

    is_strict = True
    reason = LongWord(max_length=2000)


class ReleasesView(ListAPIView[Release]):
    """The campaign's releases, the newest first. A POST queues another one; GET it until it is ready."""

    permission_classes = (ResearchersOnly,)
    serializer_class = ReleaseAnswer
    queryset = Release.objects.none()
    filter_fields = {"state": "state", "version": "version"}
    order_fields = ("created_at",)
    default_order = "-created_at"

    def get_queryset(self) -> QuerySet[Any]:
        return Release.objects.filter(campaign_id=self.kwargs["campaign_id"]).select_related(
            "previous", "job"
        )

    @extend_schema(operation_id="releases_list")
    def get(self, request: Request, *arguments: Any, **named: Any) -> Response:
        return self.list(request)

    @extend_schema(
        operation_id="releases_create",
        request=ReleaseRequest,
        responses={202: ReleaseAnswer},
        examples=[
            OpenApiExample("usual", value={"version": "7.1", "title": "A test collection"}, request_only=True)
        ],
    )
    def post(self, request: Request, campaign_id: uuid.UUID) -> Response:
        sent = ReleaseRequest(data=request.data)
        sent.is_valid(raise_exception=True)
        made = releasing.make_release(
            campaign=campaign_of(campaign_id), actor=user_of(request), **sent.validated_data
        )
        answer = Response(ReleaseAnswer(made).data, status=202)
        answer["Location"] = reverse("console:api-release", args=[campaign_id, made.pk])
        answer["Retry-After"] = "2"
        return answer


class ReleaseView(APIView):
    """One release: its state, hashes and sources."""

    permission_classes = (ResearchersOnly,)

    @extend_schema(operation_id="releases_retrieve", responses=ReleaseAnswer)
    def get(self, request: Request, campaign_id: uuid.UUID, release_id: uuid.UUID) -> Response:
        return Response(ReleaseAnswer(_release(campaign_id, release_id)).data)


class DownloadView(APIView):
    """The file of a release, a zip whose ETag is its SHA-256; `Range` and `If-None-Match` are understood."""

    permission_classes = (ResearchersOnly,)

    @extend_schema(
        operation_id="releases_download",
        responses={
            (200, "application/zip"): OpenApiTypes.BINARY,
            (206, "application/zip"): OpenApiTypes.BINARY,
        },
    )
    def get(self, request: Request, campaign_id: uuid.UUID, release_id: uuid.UUID) -> HttpResponseBase:
        return release_file(request, _release(campaign_id, release_id))


class CitationView(APIView):
    """How the release is cited, as text and for BibTeX."""

    permission_classes = (ResearchersOnly,)

    @extend_schema(operation_id="releases_citation", responses=CitationAnswer)
    def get(self, request: Request, campaign_id: uuid.UUID, release_id: uuid.UUID) -> Response:
        return Response(CitationAnswer(releasing.citation(release=_release(campaign_id, release_id))).data)


class ChangesView(APIView):
    """The changes since the previous release."""

    permission_classes = (ResearchersOnly,)

    @extend_schema(operation_id="releases_changes", responses=ChangesAnswer)
    def get(self, request: Request, campaign_id: uuid.UUID, release_id: uuid.UUID) -> Response:
        release = _release(campaign_id, release_id)
        previous = release.previous.version if release.previous else None
        changes = releasing.release_changes(release=release)
        body = {"previous": previous, "notes": release.notes, "changes": changes}
        return Response(ChangesAnswer(body).data)


class WithdrawView(APIView):
    """Withdraw a release, with a reason that is shown. Its file remains available to those who have cited it."""

    permission_classes = (ManagersOnly,)

    @extend_schema(operation_id="releases_withdraw", request=WithdrawRequest, responses={200: ReleaseAnswer})
    def post(self, request: Request, campaign_id: uuid.UUID, release_id: uuid.UUID) -> Response:
        release = _release(campaign_id, release_id)
        sent = WithdrawRequest(data=request.data)
        sent.is_valid(raise_exception=True)
        releasing.withdraw(release=release, reason=sent.validated_data["reason"], actor=user_of(request))
        return Response(ReleaseAnswer(_release(campaign_id, release_id)).data)


class ForgetKeyView(APIView):
    """Delete the pseudonym key: from then on, nobody, including this server, can identify the assessors."""

    permission_classes = (ManagersOnly,)

    @extend_schema(operation_id="releases_forget_key", request=None, responses={200: ReleaseAnswer})
    def post(self, request: Request, campaign_id: uuid.UUID, release_id: uuid.UUID) -> Response:
        releasing.forget_key(release=_release(campaign_id, release_id), actor=user_of(request))
        return Response(ReleaseAnswer(_release(campaign_id, release_id)).data)


def _release(campaign_id: uuid.UUID, release_id: uuid.UUID) -> Release:
    found = Release.objects.select_related("previous", "campaign", "job")
    return get_object_or_404(found, pk=release_id, campaign_id=campaign_id)
