"""What rests on an import, as answers of the API."""

from typing import Any

from rest_framework import serializers


class RestAnswer(serializers.Serializer[Any]):
    what = serializers.CharField(help_text="Items, draws, computations, releases, ...")
    n = serializers.IntegerField()
    campaign = serializers.UUIDField(source="campaign.pk", default=None, allow_null=True)
    campaign_name = serializers.CharField(source="campaign.name", default=None, allow_null=True)
    is_deleted = serializers.BooleanField(help_text="The campaign is deleted; it could be restored.")


class RestsAnswer(serializers.Serializer[Any]):
    rests = RestAnswer(many=True, help_text="Empty: the import can be taken back.")
