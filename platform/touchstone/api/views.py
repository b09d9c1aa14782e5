"""The API's own addresses: what it is, and who asks."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from touchstone.api.schema import description
from touchstone.models import ApiToken, User


class DescriptionView(APIView):
    """This description, OpenAPI 3.1."""

    authentication_classes = ()
    permission_classes = (AllowAny,)

    @extend_schema(operation_id="schema_retrieve", auth=[], responses={200: OpenApiTypes.OBJECT})
    def get(self, request: Request) -> Response:
        return Response(description())


class KeyAnswer(serializers.Serializer[Any]):
    name = serializers.CharField()
    scopes = serializers.ListField(child=serializers.ChoiceField(ApiToken.Scope.choices))
    expires_at = serializers.DateTimeField(allow_null=True)


class MeAnswer(serializers.Serializer[Any]):
    username = serializers.CharField()
    role = serializers.ChoiceField(User.Role.choices)
    key = KeyAnswer(allow_null=True, help_text="The key that was brought; null in a session")


class MeView(APIView):
    """Who I am to the API, and what my key may do."""

    scope = "read"

    @extend_schema(operation_id="me_retrieve", responses=MeAnswer)
    def get(self, request: Request) -> Response:
        user: Any = request.user
        return Response(MeAnswer({"username": user.username, "role": user.role, "key": request.auth}).data)
