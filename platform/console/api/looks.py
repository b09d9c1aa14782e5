"""What the model said at every look, where judging goes by what it tells."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema, extend_schema_field
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response

from console.looks import look_rows
from judging.services.access import ResearchersOnly
from sampling.models import JudgingLook


class LookRowAnswer(serializers.Serializer[Any]):
    run = serializers.CharField()
    expected = serializers.FloatField(help_text="Expected MAP, by the judgments and the model.")
    better = serializers.FloatField(
        allow_null=True,
        help_text="Model probability, no confidence, that the run is better than the next one of the list; null for "
        "the last, and before the first look.",
    )


class LookAnswer(serializers.ModelSerializer[JudgingLook]):
    runs = serializers.SerializerMethodField(help_text="The best first.")

    class Meta:
        model = JudgingLook
        fields = ("id", "n_judged", "n_pooled", "may_stop", "runs", "created_at")
        read_only_fields = fields
        extra_kwargs = {
            "may_stop": {"help_text": "Whether the rule is fulfilled: 30 judgments, .95 for all neighbours."},
        }

    @extend_schema_field(LookRowAnswer(many=True))
    def get_runs(self, look: JudgingLook) -> list[dict[str, Any]]:
        return look_rows(look.scores, look.pairs)


class Looks(generics.ListAPIView[JudgingLook]):
    """What the model said at every look, the newest first; empty where judging is in random order."""

    permission_classes = (ResearchersOnly,)
    serializer_class = LookAnswer
    queryset = JudgingLook.objects.none()
    filter_fields = {"may_stop": "may_stop"}
    order_fields = {"n_judged": "n_judged", "id": "id"}
    default_order = "-id"

    def get_queryset(self) -> QuerySet[JudgingLook]:
        return JudgingLook.objects.filter(campaign_id=self.kwargs["campaign_id"])

    @extend_schema(operation_id="looks_list", tags=["results"])
    def get(self, request: Request, *arguments: Any, **named: Any) -> Response:
        return self.list(request)
