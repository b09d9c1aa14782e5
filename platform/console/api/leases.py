"""Leases for API clients: who holds which item, and giving them back."""

import uuid
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from judging.models import Campaign, Lease, Slot
from judging.services import leases
from judging.services.access import ManagersOnly
from touchstone.models import user_of


class LeaseAnswer(serializers.ModelSerializer[Slot]):
    topic_id = serializers.CharField(source="item.topic.topic_id")
    doc_id = serializers.CharField(source="item.document.doc_id")
    assessor = serializers.CharField(source="assessor.user.username")
    is_expired = serializers.BooleanField()

    class Meta:
        model = Slot
        fields = (
            "token",
            "item",
            "topic_id",
            "doc_id",
            "assessor",
            "purpose",
            "leased_at",
            "lease_until",
            "is_expired",
        )
        read_only_fields = fields
        extra_kwargs = {
            "token": {"allow_null": False},
            "leased_at": {"allow_null": False},
            "lease_until": {"allow_null": False},
        }


class LeaseReleaseAnswer(serializers.Serializer[Any]):
    n_released = serializers.IntegerField(help_text="0: the item was judged or released meanwhile.")


class Leases(generics.ListAPIView[Slot]):
    """The leases of items, the oldest first."""

    permission_classes = (ManagersOnly,)
    serializer_class = LeaseAnswer
    queryset = Slot.objects.none()
    filter_fields = {
        "assessor": "assessor__user__username",
        "is_expired": ("is_expired", serializers.BooleanField()),
    }
    order_fields = ("leased_at",)

    def get_queryset(self) -> QuerySet[Slot]:
        row = get_object_or_404(Campaign, pk=self.kwargs["campaign_id"])
        held = leases.with_expiry(leases.held_leases(campaign=row))
        return held.defer("item__document__text", "item__document__html")

    @extend_schema(operation_id="leases_list", tags=["leases"])
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        return self.list(request)


class LeaseRelease(APIView):
    permission_classes = (ManagersOnly,)

    @extend_schema(operation_id="lease_release", tags=["leases"], request=None, responses=LeaseReleaseAnswer)
    def post(self, request: Request, campaign_id: uuid.UUID, token: uuid.UUID) -> Response:
        """Release the lease with this token; a judgment that its holder still submits is kept."""
        get_object_or_404(Lease, pk=token, slot__campaign_id=campaign_id)
        held = Slot.objects.filter(token=token, state=Slot.State.LEASED)
        slot = held.select_related("assessor__user", "campaign").first()
        released = slot is not None and leases.release(slot=slot, actor=user_of(request))
        return Response({"n_released": int(released)})


class LeasesReleaseExpired(APIView):
    permission_classes = (ManagersOnly,)

    @extend_schema(
        operation_id="leases_release_expired", tags=["leases"], request=None, responses=LeaseReleaseAnswer
    )
    def post(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """Release all expired leases."""
        row = get_object_or_404(Campaign, pk=campaign_id)
        return Response({"n_released": leases.release_expired(campaign=row, actor=user_of(request))})
