"""Collections, their members, and deleted collections and campaigns, for API clients."""

import uuid
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from judging.models import Campaign, Collection
from judging.serializers.strict import Flag, LongWord, Strict, StrictModel, Word
from judging.services.access import ManagersChange, ManagersOnly, RestorersOnly
from judging.services.collections import change_collection, create_collection
from judging.services.deletion import delete_collection, restore_collection
from judging.services.members import set_members
from touchstone.models import User, user_of

TAGS = ["collections"]
MOST_MEMBERS = 200
LONGEST_TEXT = 5000


class CollectionAnswer(serializers.ModelSerializer[Collection]):
    class Meta:
        model = Collection
        fields = (
            "id",
            "name",
            "description",
            "shows_html",
            "is_restricted",
            "source",
            "licence",
            "may_publish_documents",
            "created_at",
            "deleted_at",
        )
        read_only_fields = fields


class CollectionRequest(StrictModel):
    description = LongWord(max_length=LONGEST_TEXT, allow_blank=True, required=False)
    source = LongWord(max_length=LONGEST_TEXT, allow_blank=True, required=False)  # type: ignore[assignment]  # a field is no attribute of what declares it

    class Meta:
        model = Collection
        fields = ("name", "description", "shows_html", "source", "licence", "may_publish_documents")


class RestoreRequest(Strict):
    name = Word(
        max_length=100, required=False, default="", help_text="A new name, if the old one is taken now."
    )


class Confirmation(Strict):
    """The name of the collection or campaign to delete."""

    confirmation = Word(max_length=200, trim_whitespace=False)


class MembersAnswer(serializers.Serializer[Any]):
    is_restricted = serializers.BooleanField(help_text="Only members see the collection.")
    members = serializers.ListField(child=serializers.CharField(), help_text="User names, in their order.")


class MembersRequest(Strict):
    is_restricted = Flag()
    members = serializers.ListField(child=Word(max_length=150), max_length=MOST_MEMBERS)

    def validate_members(self, names: list[str]) -> list[User]:
        found = {user.username: user for user in User.objects.filter(username__in=names)}
        unknown = sorted(set(names) - set(found))
        if unknown:
            raise serializers.ValidationError(f"there is no user {', '.join(unknown[:5])}")
        return list(found.values())


class Collections(generics.ListAPIView[Collection]):
    """The collections you may see."""

    permission_classes = (ManagersChange,)
    serializer_class = CollectionAnswer
    queryset = Collection.objects.none()
    filter_fields = {"name": "name", "search": "name__icontains", "is_restricted": "is_restricted"}
    order_fields = ("name", "created_at")

    def get_queryset(self) -> QuerySet[Collection]:
        return Collection.objects.visible_to(user_of(self.request))

    @extend_schema(operation_id="collections_list", tags=TAGS)
    def get(self, request: Request) -> Response:
        return self.list(request)

    @extend_schema(
        operation_id="collection_create",
        tags=TAGS,
        request=CollectionRequest,
        responses={201: CollectionAnswer},
        examples=[OpenApiExample("usual", value={"name": "News 2026"}, request_only=True)],
    )
    def post(self, request: Request) -> Response:
        """Create an empty collection; import topics, documents and runs next."""
        sent = CollectionRequest(data=request.data)
        sent.is_valid(raise_exception=True)
        made = create_collection(user=user_of(request), **sent.validated_data)
        return Response(CollectionAnswer(made).data, status=201)


class OneCollection(APIView):
    permission_classes = (ManagersChange,)

    @extend_schema(operation_id="collection_read", tags=TAGS, responses=CollectionAnswer)
    def get(self, request: Request, collection_id: uuid.UUID) -> Response:
        """One collection."""
        return Response(CollectionAnswer(_collection(collection_id)).data)

    @extend_schema(
        operation_id="collection_change",
        tags=TAGS,
        request=CollectionRequest,
        responses=CollectionAnswer,
        examples=[OpenApiExample("usual", value={"licence": "CC BY 4.0"}, request_only=True)],
    )
    def patch(self, request: Request, collection_id: uuid.UUID) -> Response:
        """Change the collection's description; fields that are not sent keep their values."""
        row = _collection(collection_id)
        sent = CollectionRequest(row, data=request.data, partial=True)
        sent.is_valid(raise_exception=True)
        change_collection(collection=row, changes=sent.validated_data, actor=user_of(request))
        return Response(CollectionAnswer(_collection(collection_id)).data)


class CollectionDelete(APIView):
    permission_classes = (ManagersOnly,)

    @extend_schema(
        operation_id="collection_delete",
        tags=TAGS,
        request=Confirmation,
        responses=CollectionAnswer,
        examples=[OpenApiExample("usual", value={"confirmation": "{collection_name}"}, request_only=True)],
    )
    def post(self, request: Request, collection_id: uuid.UUID) -> Response:
        """Hide the collection with its campaigns, which are closed. Nothing is removed; `restore` brings it back."""
        row = _collection(collection_id)
        delete_collection(collection=row, confirmation=confirmation_in(request), actor=user_of(request))
        return Response(CollectionAnswer(_collection(collection_id)).data)


class CollectionRestore(APIView):
    permission_classes = (RestorersOnly,)

    @extend_schema(
        operation_id="collection_restore",
        tags=TAGS,
        request=RestoreRequest,
        responses=CollectionAnswer,
        examples=[OpenApiExample("usual", value={}, request_only=True)],
    )
    def post(self, request: Request, collection_id: uuid.UUID) -> Response:
        """Bring a deleted collection back, its campaigns closed. Send a `name` if another one has its name now."""
        name = name_in(request)
        restore_collection(collection=_collection(collection_id), actor=user_of(request), name=name)
        return Response(CollectionAnswer(_collection(collection_id)).data)


class CollectionMembers(APIView):
    permission_classes = (ManagersOnly,)

    @extend_schema(operation_id="members_read", tags=TAGS, responses=MembersAnswer)
    def get(self, request: Request, collection_id: uuid.UUID) -> Response:
        """Whether only members see the collection, and who they are."""
        return Response(_members_json(_collection(collection_id)))

    @extend_schema(
        operation_id="members_set",
        tags=TAGS,
        request=MembersRequest,
        responses=MembersAnswer,
        examples=[OpenApiExample("usual", value={"is_restricted": True, "members": []}, request_only=True)],
    )
    def put(self, request: Request, collection_id: uuid.UUID) -> Response:
        """Set the members. You always stay a member."""
        sent = MembersRequest(data=request.data)
        sent.is_valid(raise_exception=True)
        set_members(
            collection=_collection(collection_id),
            is_restricted=sent.validated_data["is_restricted"],
            users=sent.validated_data["members"],
            actor=user_of(request),
        )
        return Response(_members_json(_collection(collection_id)))


# -- what was deleted -----------------------------------------------------------------------------------------


class DeletedCollections(generics.ListAPIView[Collection]):
    """Deleted collections and campaigns that can be restored, the newest first."""

    permission_classes = (ManagersOnly,)
    serializer_class = CollectionAnswer
    queryset = Collection.objects.none()
    order_fields = ("deleted_at", "name")
    default_order = "-deleted_at"

    def get_queryset(self) -> QuerySet[Collection]:
        return Collection.objects.open_to(user_of(self.request)).filter(deleted_at__isnull=False)

    @extend_schema(operation_id="deleted_collections_list", tags=TAGS)
    def get(self, request: Request) -> Response:
        return self.list(request)


class DeletedCampaignAnswer(serializers.ModelSerializer[Campaign]):
    collection_is_deleted = serializers.SerializerMethodField()

    class Meta:
        model = Campaign
        fields = ("id", "name", "collection", "deleted_at", "collection_is_deleted")
        read_only_fields = fields

    def get_collection_is_deleted(self, row: Campaign) -> bool:
        return row.collection.deleted_at is not None


class DeletedCampaigns(generics.ListAPIView[Campaign]):
    """Deleted campaigns, the newest first. Restore a deleted collection before its campaigns."""

    permission_classes = (ManagersOnly,)
    serializer_class = DeletedCampaignAnswer
    queryset = Campaign.objects.none()
    filter_fields = {"collection": "collection"}
    order_fields = ("deleted_at", "name")
    default_order = "-deleted_at"

    def get_queryset(self) -> QuerySet[Campaign]:
        mine = Collection.objects.open_to(user_of(self.request))
        found = Campaign.objects.filter(collection__in=mine, deleted_at__isnull=False)
        return found.select_related("collection")

    @extend_schema(operation_id="deleted_campaigns_list", tags=["campaigns"])
    def get(self, request: Request) -> Response:
        return self.list(request)


def name_in(request: Request) -> str:
    """Return the new name of what is restored, "" if none is sent."""
    sent = RestoreRequest(data=request.data)
    sent.is_valid(raise_exception=True)
    return str(sent.validated_data["name"])


def confirmation_in(request: Request) -> str:
    sent = Confirmation(data=request.data)
    sent.is_valid(raise_exception=True)
    name: str = sent.validated_data["confirmation"]
    return name


def _collection(collection_id: uuid.UUID) -> Collection:
    return get_object_or_404(Collection, pk=collection_id)


def _members_json(row: Collection) -> dict[str, Any]:
    names = row.members.order_by("user__username").values_list("user__username", flat=True)
    return {"is_restricted": row.is_restricted, "members": list(names)}
