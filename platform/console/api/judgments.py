"""Items, the log of judgments and adjudications, for API clients."""

import uuid
from typing import Any

from django.db.models import Prefetch, Q, QuerySet
from django.http import Http404, StreamingHttpResponse
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, extend_schema
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from analytics.releases.pseudonyms import pseudonym
from analytics.services.exports import pseudonym_key
from analytics.services.judgment_log import LOG_FORMATS, file_name, log_bytes
from console.filtering import (
    ITEM_ORDERS,
    filter_names,
    item_order,
    items_asked,
    judgments_asked,
    parameters,
)
from judging.judgment_filters import ITEMS, JUDGMENTS
from judging.models import (
    Adjudication,
    Campaign,
    GoldAnswer,
    Item,
    Judgment,
)
from judging.serializers.strict import LongWord, Strict, Token, WholeNumber
from judging.services.access import ManagersChange, ResearchersOnly
from judging.services.adjudication import adjudicate
from judging.services.filtered import without_texts
from touchstone.models import user_of

# -- how assessors are called ---------------------------------------------------------------------------------


class AssessorRow(serializers.ModelSerializer[Any]):
    """The base of rows that name an assessor: for managers by the user name, for researchers by a pseudonym."""

    assessor = serializers.SerializerMethodField(
        help_text="The user name for managers, for researchers a pseudonym that is the same in the whole campaign."
    )

    def get_assessor(self, row: Any) -> str:
        if self.context["request"].user.may_manage:
            return str(row.assessor.user.username)
        return pseudonym(pseudonym_key(row.assessor.campaign_id), row.assessor_id)


# -- judgments ------------------------------------------------------------------------------------------------


class JudgmentAnswer(AssessorRow):
    topic_id = serializers.CharField(source="item.topic.topic_id")
    doc_id = serializers.CharField(source="item.document.doc_id")
    tier = serializers.CharField(source="assessor.tier")
    kind = serializers.CharField(source="assessor.kind")
    purpose = serializers.CharField(
        source="slot.purpose",
        allow_null=True,
        default=None,
        help_text="The purpose: judge, check, audit, silver; void: set aside; null: surplus, or no grade.",
    )
    comment = serializers.SerializerMethodField(help_text="For managers; empty for researchers.")

    class Meta:
        model = Judgment
        fields = (
            "id",
            "item",
            "topic_id",
            "doc_id",
            "assessor",
            "tier",
            "kind",
            "purpose",
            "sequence",
            "grade",
            "obstacle",
            "comment",
            "active_milliseconds",
            "document_version",
            "topic_version",
            "created_at",
        )
        read_only_fields = fields
        extra_kwargs = {
            "sequence": {"help_text": "1, plus 1 for each change of the grade; the highest counts."}
        }

    def get_comment(self, row: Judgment) -> str:
        return row.comment if self.context["request"].user.may_manage else ""


class JudgmentLog(generics.ListAPIView[Judgment]):
    """Every judgment of the campaign in the order of arrival; with `since` or `before`, by time. None ever changes.

    By `seconds` only those of one assessor, topic or document are ordered. A page looks at 10,000 judgments at most, so
    with filters it may have few rows, or none, and yet name a `next` page.
    """

    permission_classes = (ResearchersOnly,)
    serializer_class = JudgmentAnswer
    queryset = Judgment.objects.none()
    filter_fields = {"item": "item"}
    query_fields = filter_names(JUDGMENTS)
    order_fields = {"id": "id", "time": "created_at", "seconds": "active_milliseconds"}
    rest: Q | None = None

    @property
    def default_order(self) -> str:
        return "time" if {"since", "before"} & self.request.query_params.keys() else "id"

    def get_queryset(self) -> QuerySet[Judgment]:
        found = judgments_asked(self.request, self.kwargs["campaign_id"])
        self.rest = found.rest
        return _with_names(found.rows)

    @extend_schema(operation_id="judgment_log_list", tags=["judgments"], parameters=parameters(JUDGMENTS))
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        return self.list(request)


def _with_names(rows: QuerySet[Judgment]) -> QuerySet[Judgment]:
    joined = rows.select_related("item__topic", "item__document", "slot", "assessor__user")
    return joined.defer("item__document__text", "item__document__html", "item__topic__narrative")


class JudgmentFile(APIView):
    """The judgments that filters find, as one file."""

    permission_classes = (ResearchersOnly,)
    query_fields = filter_names(JUDGMENTS)

    @extend_schema(
        operation_id="judgment_file",
        tags=["judgments"],
        parameters=[
            *parameters(JUDGMENTS),
            OpenApiParameter(
                "file_format", {"type": "string", "enum": list(LOG_FORMATS)}, OpenApiParameter.PATH
            ),
        ],
        responses={(200, kind.partition(";")[0]): OpenApiTypes.BINARY for kind in LOG_FORMATS.values()},
    )
    def get(self, request: Request, campaign_id: uuid.UUID, file_format: str) -> StreamingHttpResponse:
        """All judgments that the filters find, streamed, in the order of arrival.

        The fields of the log and `is_latest, leased_at, batch, inclusion_probability, decision`; in CSV an apostrophe
        stands before text that a spreadsheet would run.
        """
        if file_format not in LOG_FORMATS:
            raise Http404
        row = get_object_or_404(Campaign, pk=campaign_id)
        found = judgments_asked(request, row.pk).complete()
        key = None if user_of(request).may_manage else pseudonym_key(row.pk)
        answer = StreamingHttpResponse(
            log_bytes(row, found, file_format, key), content_type=LOG_FORMATS[file_format]
        )
        answer["Content-Disposition"] = f'attachment; filename="{file_name(row, file_format)}"'
        return answer


# -- items ----------------------------------------------------------------------------------------------------


class ItemLine(serializers.ModelSerializer[Item]):
    topic_id = serializers.CharField(source="topic.topic_id")
    doc_id = serializers.CharField(source="document.doc_id")
    document_pk = serializers.IntegerField(source="document_id")
    title = serializers.CharField(source="document.title")

    class Meta:
        model = Item
        fields: tuple[str, ...] = ("id", "topic_id", "doc_id", "document_pk", "title")
        read_only_fields: tuple[str, ...] = fields


class Items(generics.ListAPIView[Item]):
    """The items of the campaign, topic by topic.

    By `newest`, `spread`, `influence` and `seconds`, as of the last computation, only items with judgments are listed;
    with `spread` the usual order is `-spread`. A page looks at 10,000 items at most, so with filters it may have few
    rows, or none, and yet name a `next` page.
    """

    permission_classes = (ResearchersOnly,)
    serializer_class = ItemLine
    queryset = Item.objects.none()
    query_fields = filter_names(ITEMS)
    order_fields = ITEM_ORDERS
    rest: Q | None = None

    @property
    def default_order(self) -> str:
        return item_order(self.request)

    def get_queryset(self) -> QuerySet[Item]:
        found = items_asked(self.request, self.kwargs["campaign_id"])
        self.rest, self.tie = found.rest, found.tie
        return without_texts(found.rows, "")

    @extend_schema(operation_id="items_list", tags=["items"], parameters=parameters(ITEMS))
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        return self.list(request)


class AdjudicationAnswer(serializers.ModelSerializer[Adjudication]):
    topic_id = serializers.CharField(source="item.topic.topic_id")
    doc_id = serializers.CharField(source="item.document.doc_id")
    decided_by = serializers.CharField(source="decided_by.username")

    class Meta:
        model = Adjudication
        fields = (
            "id",
            "item",
            "topic_id",
            "doc_id",
            "verdict",
            "grade",
            "reason",
            "decided_by",
            "created_at",
        )
        read_only_fields = fields


class ItemAnswer(ItemLine):
    gold_grade = serializers.SerializerMethodField(help_text="The gold answer; null: there is none.")
    judgments = JudgmentAnswer(many=True, help_text="All judgments, including changed grades and surplus.")
    adjudications = AdjudicationAnswer(many=True, help_text="The last adjudication counts.")

    class Meta(ItemLine.Meta):
        fields = (*ItemLine.Meta.fields, "gold_grade", "judgments", "adjudications")
        read_only_fields = fields

    def get_gold_grade(self, row: Item) -> int | None:
        answers = GoldAnswer.objects.filter(topic=row.topic_id, document=row.document_id)
        return answers.values_list("grade", flat=True).first()


class OneItem(APIView):
    permission_classes = (ResearchersOnly,)

    @extend_schema(operation_id="item_read", tags=["items"], responses=ItemAnswer)
    def get(self, request: Request, campaign_id: uuid.UUID, item_id: uuid.UUID) -> Response:
        """One item with all its judgments and adjudications."""
        judgments = _with_names(Judgment.objects.order_by("id"))
        rows = Item.objects.select_related("topic", "document").prefetch_related(
            Prefetch("judgments", judgments), Prefetch("adjudications", _decisions().order_by("id"))
        )
        row = get_object_or_404(rows, pk=item_id, campaign_id=campaign_id)
        return Response(ItemAnswer(row, context={"request": request}).data)


# -- adjudication ---------------------------------------------------------------------------------------------


class AdjudicationRequest(Strict):
    item = Token()
    grade = WholeNumber(
        min_value=0, max_value=9, allow_null=True, default=None, help_text="null unless `verdict` is decided"
    )
    reason = LongWord(max_length=2000, allow_blank=True, default="")
    verdict = serializers.ChoiceField(
        Adjudication.Verdict.choices,
        default=Adjudication.Verdict.DECIDED,
        help_text="stands: the grades are no longer in question; withdrawn: the last adjudication is taken back",
    )

    def validate(self, sent: dict[str, Any]) -> dict[str, Any]:
        if (sent["verdict"] == Adjudication.Verdict.DECIDED) != (sent["grade"] is not None):
            raise serializers.ValidationError(
                {"grade": ["a grade is for the verdict decided, and only for it"]}
            )
        return sent

    def validate_item(self, pk: uuid.UUID) -> Item:
        found = Item.objects.filter(pk=pk, campaign_id=self.context["campaign_id"]).first()
        if found is None:
            raise serializers.ValidationError("the campaign has no such item")
        return found


class Adjudications(generics.ListAPIView[Adjudication]):
    """The adjudications, the newest first; the newest of an item counts."""

    permission_classes = (ManagersChange,)
    serializer_class = AdjudicationAnswer
    queryset = Adjudication.objects.none()
    filter_fields = {
        "item": "item",
        "topic_id": "item__topic__topic_id",
        "decided_by": "decided_by__username",
    }
    order_fields = ("id",)
    default_order = "-id"

    def get_queryset(self) -> QuerySet[Adjudication]:
        return _decisions().filter(item__campaign_id=self.kwargs["campaign_id"])

    @extend_schema(operation_id="adjudications_list", tags=["adjudications"])
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        return self.list(request)

    @extend_schema(
        operation_id="adjudication_create",
        tags=["adjudications"],
        request=AdjudicationRequest,
        responses={201: AdjudicationAnswer},
        examples=[
            OpenApiExample(
                "usual", value={"item": "{item_id}", "grade": 1, "reason": "a list"}, request_only=True
            )
        ],
    )
    def post(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """Decide an item's grade in the qrels, let it stand, or take the last word back.

        No estimate uses it, because the item was not drawn at random.
        """
        sent = AdjudicationRequest(data=request.data, context={"campaign_id": campaign_id})
        sent.is_valid(raise_exception=True)
        made = adjudicate(actor=user_of(request), **sent.validated_data)
        return Response(AdjudicationAnswer(_decisions().get(pk=made.pk)).data, status=201)


def _decisions() -> QuerySet[Adjudication]:
    joined = Adjudication.objects.select_related("item__topic", "item__document", "decided_by")
    return joined.defer("item__document__text", "item__document__html")
