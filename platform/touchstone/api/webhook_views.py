"""Webhooks by the API: make, list, change, test, and what was delivered."""

import uuid
from typing import Any

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from judging.serializers.strict import Strict, Word
from judging.services.access import ResearchersOnly
from touchstone.api.webhooks import MOST_VERBS, change_webhook, make_webhook, test_webhook
from touchstone.models import Webhook, WebhookDelivery, user_of

VERBS: dict[str, Any] = {
    "max_length": MOST_VERBS,
    "help_text": "Only events of these verbs; empty: all that you may see",
}


class WebhookRequest(Strict):
    url = Word(max_length=500)
    verbs = serializers.ListField(child=Word(max_length=50), default=list, **VERBS)


class WebhookChange(Strict):
    is_active = serializers.BooleanField(required=False)
    verbs = serializers.ListField(child=Word(max_length=50), required=False, **VERBS)


class WebhookAnswer(serializers.ModelSerializer[Webhook]):
    verbs = serializers.ListField(child=serializers.CharField())

    class Meta:
        model = Webhook
        fields: tuple[str, ...] = ("id", "url", "verbs", "is_active", "created_at")
        read_only_fields: tuple[str, ...] = fields


class NewWebhookAnswer(WebhookAnswer):
    """With the secret that signs what is sent; it is never shown again."""

    class Meta(WebhookAnswer.Meta):
        fields = (*WebhookAnswer.Meta.fields, "secret")
        read_only_fields = fields


class DeliveryAnswer(serializers.ModelSerializer[WebhookDelivery]):
    verb = serializers.CharField(source="event.verb")

    class Meta:
        model = WebhookDelivery
        fields = ("id", "event", "verb", "state", "attempts", "next_attempt_at", "answer")
        read_only_fields = fields


class TestAnswer(serializers.Serializer[Any]):
    event = serializers.IntegerField(help_text="The event that the webhook will be told of")


class WebhooksView(generics.ListAPIView[Webhook]):
    """My webhooks."""

    permission_classes = (ResearchersOnly,)
    serializer_class = WebhookAnswer
    queryset = Webhook.objects.none()
    filter_fields = {"is_active": "is_active"}
    order_fields = ("created_at",)
    default_order = "-created_at"

    def get_queryset(self) -> Any:
        return Webhook.objects.filter(user=user_of(self.request))

    @extend_schema(operation_id="webhooks_list", tags=["webhooks"])
    def get(self, request: Request) -> Response:
        return self.list(request)

    @extend_schema(
        operation_id="webhooks_create",
        tags=["webhooks"],
        request=WebhookRequest,
        responses={201: NewWebhookAnswer},
        examples=[
            OpenApiExample("usual", value={"url": "{webhook_url}", "verbs": ["closed"]}, request_only=True)
        ],
    )
    def post(self, request: Request) -> Response:
        """Make a webhook. Its host must be one that the operator of the server listed."""
        sent = WebhookRequest(data=request.data)
        sent.is_valid(raise_exception=True)
        webhook = make_webhook(user=user_of(request), **sent.validated_data)
        return Response(NewWebhookAnswer(webhook).data, status=201)


class _OwnWebhooks(APIView):
    permission_classes = (ResearchersOnly,)

    def webhook(self, webhook_id: uuid.UUID) -> Webhook:
        return get_object_or_404(Webhook.objects.filter(user=user_of(self.request)), pk=webhook_id)


class WebhookView(_OwnWebhooks):
    """One of my webhooks."""

    @extend_schema(operation_id="webhooks_retrieve", tags=["webhooks"], responses=WebhookAnswer)
    def get(self, request: Request, webhook_id: uuid.UUID) -> Response:
        return Response(WebhookAnswer(self.webhook(webhook_id)).data)

    @extend_schema(
        operation_id="webhooks_update", tags=["webhooks"], request=WebhookChange, responses=WebhookAnswer
    )
    def patch(self, request: Request, webhook_id: uuid.UUID) -> Response:
        """Switch it off or on, or have it hear of other events. What happened while it was off is not told later."""
        webhook = self.webhook(webhook_id)
        sent = WebhookChange(data=request.data)
        sent.is_valid(raise_exception=True)
        return Response(
            WebhookAnswer(change_webhook(webhook=webhook, actor=user_of(request), **sent.validated_data)).data
        )


class WebhookTestView(_OwnWebhooks):
    """Have the webhook told that it was tested."""

    @extend_schema(
        operation_id="webhook_tests_create", tags=["webhooks"], request=None, responses={202: TestAnswer}
    )
    def post(self, request: Request, webhook_id: uuid.UUID) -> Response:
        event = test_webhook(webhook=self.webhook(webhook_id), actor=user_of(request))
        return Response({"event": event.pk}, status=202)


class DeliveriesView(generics.ListAPIView[WebhookDelivery]):
    """What the webhook was told, the newest first; kept for 90 days after their end."""

    permission_classes = (ResearchersOnly,)
    serializer_class = DeliveryAnswer
    queryset = WebhookDelivery.objects.none()
    filter_fields = {"state": "state"}
    order_fields = ("id",)
    default_order = "-id"

    def get_queryset(self) -> Any:
        mine = Webhook.objects.filter(user=user_of(self.request))
        webhook = get_object_or_404(mine, pk=self.kwargs["webhook_id"])
        return WebhookDelivery.objects.filter(webhook=webhook).select_related("event")

    @extend_schema(operation_id="webhook_deliveries_list", tags=["webhooks"])
    def get(self, request: Request, webhook_id: uuid.UUID) -> Response:
        return self.list(request)
