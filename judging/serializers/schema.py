"""What the requests of the judging screen and of machines are answered, for the API's description.

The answers themselves are plain dictionaries (judging/serializers): a serializer would cost more than the statement
that finds the item. tests/test_schemathesis.py compares them with what stands here.
"""

from typing import Any

from rest_framework import serializers


class TopicWords(serializers.Serializer[Any]):
    title = serializers.CharField()
    description = serializers.CharField(allow_blank=True)
    narrative = serializers.CharField(allow_blank=True)


class HeldDocument(serializers.Serializer[Any]):
    title = serializers.CharField(allow_blank=True)
    frame_url = serializers.CharField(help_text="The page that shows the document")
    text = serializers.CharField(required=False, allow_blank=True, help_text="With `with_text`")


class HeldItem(serializers.Serializer[Any]):
    """Something to judge, and the lease under which it is yours."""

    token = serializers.UUIDField()
    topic = TopicWords()
    document = HeldDocument()
    lease_seconds = serializers.IntegerField(min_value=1)


class MyProgress(serializers.Serializer[Any]):
    judged = serializers.IntegerField(min_value=0)
    goal = serializers.IntegerField(allow_null=True)


class ClaimAnswer(serializers.Serializer[Any]):
    items = HeldItem(many=True)
    reason = serializers.CharField(allow_blank=True, help_text="Why there are no items")
    progress = MyProgress()


class SavedJudgment(serializers.Serializer[Any]):
    token = serializers.UUIDField()
    grade = serializers.IntegerField(allow_null=True)
    obstacle = serializers.CharField(allow_blank=True)


class SubmitAnswer(ClaimAnswer):
    saved = SavedJudgment()


class ReviseAnswer(serializers.Serializer[Any]):
    saved = SavedJudgment()


class HeartbeatAnswer(serializers.Serializer[Any]):
    held = serializers.ListField(child=serializers.UUIDField(), help_text="The leases that are still yours")


class MyJudgment(SavedJudgment):
    comment = serializers.CharField(allow_blank=True)
    topic = TopicWords()
    document = HeldDocument()


class HistoryAnswer(serializers.Serializer[Any]):
    judgments = MyJudgment(many=True)


class GradeWords(serializers.Serializer[Any]):
    value = serializers.IntegerField()
    label = serializers.CharField()  # type: ignore[assignment]  # a field is no attribute of what declares it


class InstructionsAnswer(serializers.Serializer[Any]):
    campaign = serializers.CharField()
    grades = GradeWords(many=True)
    guidelines = serializers.CharField(allow_blank=True)
    prompt = serializers.CharField()
    lease_seconds = serializers.IntegerField(min_value=1)


class CallOutcome(serializers.Serializer[Any]):
    """One of the batch: 200, or why not."""

    token = serializers.CharField(allow_null=True)
    status = serializers.IntegerField()
    type = serializers.CharField(required=False)
    title = serializers.CharField(required=False)
    detail = serializers.CharField(required=False)


class JudgmentOutcome(CallOutcome):
    grade = serializers.IntegerField(required=False, allow_null=True)
    obstacle = serializers.CharField(required=False, allow_blank=True)


class BatchAnswer(serializers.Serializer[Any]):
    saved = JudgmentOutcome(many=True)
    calls = CallOutcome(many=True)
    released = serializers.IntegerField(required=False, help_text="How many leases were given back")
