"""Shares of relevant items: what the newest computation says of a campaign whose judgments are all there is."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.models import ShareEstimate
from console.api.common import ComputationKey, OfComputation


class ShareAnswer(serializers.ModelSerializer[ShareEstimate]):
    class Meta:
        model = ShareEstimate
        fields = (
            "topic",
            "measure",
            "method",
            "n_items",
            "n",
            "value",
            "standard_error",
            "low",
            "high",
            "degrees_of_freedom",
            "refusal",
            "warning",
        )


class SharesView(OfComputation):
    """The share of relevant items by every method, in all (`topic` empty) and by topic; of other campaigns none."""

    serializer_class = ShareAnswer
    queryset = ShareEstimate.objects.none()
    filter_fields = {
        "computation": ("computation_id", ComputationKey()),
        "topic": ("topic", serializers.CharField(max_length=255, allow_blank=True)),
        "method": "method",
    }

    @extend_schema(operation_id="shares_list")
    def get(self, request: Request, *arguments: Any, **named: Any) -> Response:
        return self.list(request)
