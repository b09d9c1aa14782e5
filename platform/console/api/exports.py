"""The judgments as the files that other tools read: each format of EXPORTS has an address, and is streamed."""

import uuid

from django.http import StreamingHttpResponse
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.views import APIView

from analytics.services.exports import ExportFormat
from console.api.common import query_of
from console.researcher.downloads import export_file
from judging.models import Campaign
from judging.serializers.strict import Flag, StrictQuery
from judging.services.access import ResearchersOnly


class ExportQuery(StrictQuery):
    """Which grade stands for an item that an audit or a manager graded, too."""

    prefers_gold = Flag(
        default=True,
        help_text="Whether an audit's grade stands before the median of the assessors, where an item has one grade",
    )


def export_view(one: ExportFormat) -> type[APIView]:
    """Return the view of a format, described by what the format says of itself."""

    class ExportView(APIView):
        """What the page and the command `export` give, to the byte."""

        permission_classes = (ResearchersOnly,)
        query_serializer = ExportQuery

        @extend_schema(
            operation_id=f"{one.key}_retrieve",
            tags=["judgments"],
            description=one.help,
            responses={(200, one.content_type.partition(";")[0]): OpenApiTypes.BINARY},
        )
        def get(self, request: Request, campaign_id: uuid.UUID) -> StreamingHttpResponse:
            row = get_object_or_404(Campaign, pk=campaign_id)
            asked = query_of(ExportQuery, request, row)
            return export_file(one, row, prefers_gold=asked["prefers_gold"])

    return ExportView
