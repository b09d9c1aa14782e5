"""Ways to join a campaign, for API clients: invitations, the crowd market, its participants, consent."""

import uuid
from typing import Any

from django.db.models import Case, CharField, F, QuerySet, Value, When
from django.db.models.functions import Now
from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_field
from rest_framework import generics, serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from console.manager.crowd import MOST_CODES, MarketForm
from judging.models import Assessor, Campaign, Invitation, Participant
from judging.serializers.strict import Choice, Flag, LongWord, Strict, WholeNumber, Word
from judging.services import crowd, entry
from judging.services.access import ManagersOnly
from touchstone.models import user_of

STATES = ("open", "used up", "expired", "revoked")
MOST_CODES_AT_ONCE = min(MOST_CODES, 200)


# -- invitations ----------------------------------------------------------------------------------------------


class InvitationAnswer(serializers.ModelSerializer[Invitation]):
    state = serializers.ChoiceField(STATES)
    link = serializers.SerializerMethodField(
        help_text="Everyone who opens this link becomes an assessor: share it with care."
    )

    class Meta:
        model = Invitation
        fields = (
            "id",
            "state",
            "link",
            "note",
            "tier",
            "team",
            "quota",
            "max_uses",
            "n_used",
            "expires_at",
            "revoked_at",
            "created_at",
        )
        read_only_fields = fields

    @extend_schema_field({"type": "string", "format": "uri"})
    def get_link(self, row: Invitation) -> str:
        address: str = self.context["request"].build_absolute_uri(reverse("judging:join", args=[row.token]))
        return address


class InvitationRequest(Strict):
    note = Word(max_length=100, allow_blank=True, required=False, help_text="A note for managers.")
    tier = Choice(choices=Assessor.Tier.choices, required=False)
    team = Word(max_length=60, allow_blank=True, required=False)
    quota = WholeNumber(min_value=1, max_value=1_000_000, allow_null=True, required=False)
    max_uses = WholeNumber(min_value=1, max_value=entry.MOST_USES, required=False)
    days = WholeNumber(
        min_value=1, max_value=entry.MOST_DAYS, required=False, help_text="Days until it expires."
    )


class Invitations(generics.ListAPIView[Invitation]):
    """Invitation links, the newest first. Everyone who opens one becomes an assessor."""

    permission_classes = (ManagersOnly,)
    serializer_class = InvitationAnswer
    queryset = Invitation.objects.none()
    filter_fields = {"tier": "tier", "state": ("state", serializers.ChoiceField(STATES))}
    order_fields = ("id",)
    default_order = "-id"

    def get_queryset(self) -> QuerySet[Invitation]:
        return _with_state(Invitation.objects.filter(campaign_id=self.kwargs["campaign_id"]))

    @extend_schema(operation_id="invitations_list", tags=["invitations"])
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        return self.list(request)

    @extend_schema(
        operation_id="invitation_create",
        tags=["invitations"],
        request=InvitationRequest,
        responses={201: InvitationAnswer},
        examples=[OpenApiExample("usual", value={"note": "for Dora", "days": 7}, request_only=True)],
    )
    def post(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """Create a link."""
        sent = InvitationRequest(data=request.data)
        sent.is_valid(raise_exception=True)
        made = entry.create_invitation(
            campaign=_campaign(campaign_id), user=user_of(request), **sent.validated_data
        )
        return Response(_invitation_json(request, campaign_id, made.pk), status=201)


class InvitationRevoke(APIView):
    permission_classes = (ManagersOnly,)

    @extend_schema(
        operation_id="invitation_revoke", tags=["invitations"], request=None, responses=InvitationAnswer
    )
    def post(self, request: Request, campaign_id: uuid.UUID, invitation_id: int) -> Response:
        """Revoke a link; assessors who joined through it stay."""
        found = get_object_or_404(
            Invitation.objects.select_related("campaign"), pk=invitation_id, campaign_id=campaign_id
        )
        entry.revoke_invitation(invitation=found, user=user_of(request))
        return Response(_invitation_json(request, campaign_id, invitation_id))


def _with_state(rows: QuerySet[Invitation]) -> QuerySet[Invitation]:
    state = Case(
        When(revoked_at__isnull=False, then=Value("revoked")),
        When(n_used__gte=F("max_uses"), then=Value("used up")),
        When(expires_at__lte=Now(), then=Value("expired")),
        default=Value("open"),
        output_field=CharField(),
    )
    return rows.annotate(state=state)


def _invitation_json(request: Request, campaign_id: uuid.UUID, pk: int) -> Any:
    row = _with_state(Invitation.objects.filter(campaign_id=campaign_id)).get(pk=pk)
    return InvitationAnswer(row, context={"request": request}).data


# -- the crowd market -----------------------------------------------------------------------------------------


class MarketAnswer(serializers.ModelSerializer[Campaign]):
    completion_url = serializers.CharField(allow_blank=True)
    hit_url = serializers.SerializerMethodField(help_text="Address of the external question of a HIT.")
    study_url = serializers.SerializerMethodField(
        help_text="Address to which a study sends its participants."
    )

    class Meta:
        model = Campaign
        fields = (
            "entry",
            "judgments_per_participant",
            "market_origin",
            "completion_code",
            "completion_url",
            "hit_url",
            "study_url",
        )
        read_only_fields = fields

    @extend_schema_field({"type": "string", "format": "uri"})
    def get_hit_url(self, row: Campaign) -> str:
        return self._address("hit", row)

    @extend_schema_field({"type": "string", "format": "uri"})
    def get_study_url(self, row: Campaign) -> str:
        return self._address("study", row)

    def _address(self, name: str, row: Campaign) -> str:
        there = reverse(f"judging:{name}", args=[row.entry_key])
        address: str = self.context["request"].build_absolute_uri(there)
        return address


class MarketRequest(Strict):
    """Entry of crowd workers. A HIT needs the market's sites, a study the code that the market expects."""

    entry = Choice(choices=Campaign.Entry.choices)
    judgments_per_participant = WholeNumber(min_value=1, max_value=100_000)
    market_origin = Word(max_length=200, allow_blank=True, default="")
    completion_code = Word(max_length=60, allow_blank=True, default="")
    completion_url = Word(max_length=200, allow_blank=True, default="")

    def validate(self, sent: dict[str, Any]) -> dict[str, Any]:
        """Ask the page's form: sites and links are checked in one place."""
        form = MarketForm({f"{MarketForm.prefix}-{name}": value for name, value in sent.items()})
        if not form.is_valid():
            raise serializers.ValidationError(
                {name: list(map(str, faults)) for name, faults in form.errors.items()}
            )
        return dict(form.cleaned_data)


class Market(APIView):
    permission_classes = (ManagersOnly,)

    @extend_schema(operation_id="market_read", tags=["market"], responses=MarketAnswer)
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """The entry of crowd workers."""
        return Response(MarketAnswer(_campaign(campaign_id), context={"request": request}).data)

    @extend_schema(
        operation_id="market_set",
        tags=["market"],
        request=MarketRequest,
        responses=MarketAnswer,
        examples=[
            OpenApiExample(
                "usual", value={"entry": "closed", "judgments_per_participant": 20}, request_only=True
            )
        ],
    )
    def put(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """Change the entry of crowd workers; present participants keep their quota."""
        sent = MarketRequest(data=request.data)
        sent.is_valid(raise_exception=True)
        crowd.set_market(campaign=_campaign(campaign_id), user=user_of(request), **sent.validated_data)
        return Response(MarketAnswer(_campaign(campaign_id), context={"request": request}).data)


class ParticipantAnswer(serializers.ModelSerializer[Participant]):
    username = serializers.CharField(source="assessor.user.username")
    n_judged = serializers.IntegerField(source="assessor.n_judged")

    class Meta:
        model = Participant
        fields = (
            "id",
            "assessor",
            "username",
            "n_judged",
            "participant",
            "study",
            "session",
            "created_at",
            "completed_at",
        )
        read_only_fields = fields
        extra_kwargs = {
            "participant": {"help_text": "The market's name of the participant; empty once erased."}
        }


class Participants(generics.ListAPIView[Participant]):
    """Participants from the market, the newest first."""

    permission_classes = (ManagersOnly,)
    serializer_class = ParticipantAnswer
    queryset = Participant.objects.none()
    filter_fields = {
        "participant": "participant",
        "assessor": "assessor",
        "is_unfinished": "completed_at__isnull",
    }
    order_fields = ("id",)
    default_order = "-id"

    def get_queryset(self) -> QuerySet[Participant]:
        found = Participant.objects.filter(campaign_id=self.kwargs["campaign_id"])
        return found.select_related("assessor__user")

    @extend_schema(operation_id="participants_list", tags=["market"])
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        return self.list(request)


class Sure(Strict):
    sure = Flag()

    def validate_sure(self, sure: bool) -> bool:
        if not sure:
            raise serializers.ValidationError("nothing was erased: send true to confirm")
        return sure


class ErasureAnswer(serializers.Serializer[Any]):
    n_erased = serializers.IntegerField(help_text="Participants whose names were erased.")


class ParticipantsErase(APIView):
    permission_classes = (ManagersOnly,)

    @extend_schema(
        operation_id="participants_erase",
        tags=["market"],
        request=Sure,
        responses=ErasureAnswer,
        examples=[OpenApiExample("usual", value={"sure": True}, request_only=True)],
    )
    def post(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """Erase the market's names of all participants permanently. Judgments are kept under anonymous accounts."""
        sent = Sure(data=request.data)
        sent.is_valid(raise_exception=True)
        erased = crowd.erase_market_names(campaign=_campaign(campaign_id), user=user_of(request))
        return Response({"n_erased": erased})


class CodesRequest(Strict):
    codes = serializers.ListField(child=Word(max_length=60), min_length=1, max_length=MOST_CODES_AT_ONCE)


class CodeAnswer(serializers.Serializer[Any]):
    code = serializers.CharField()
    username = serializers.CharField(allow_null=True, help_text="Null: no participant has this code.")
    assessor = serializers.IntegerField(allow_null=True)
    n_judged = serializers.IntegerField(allow_null=True)
    completed_at = serializers.DateTimeField(allow_null=True)


class CodesAnswer(serializers.Serializer[Any]):
    codes = CodeAnswer(many=True)


class Codes(APIView):
    permission_classes = (ManagersOnly,)
    scope = "read"

    @extend_schema(
        operation_id="codes_check",
        tags=["market"],
        request=CodesRequest,
        responses=CodesAnswer,
        examples=[OpenApiExample("usual", value={"codes": ["AAAAA-AAAAA"]}, request_only=True)],
    )
    def post(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """Return the participants of these completion codes, with their numbers of judgments. Nothing is changed."""
        sent = CodesRequest(data=request.data)
        sent.is_valid(raise_exception=True)
        checked = crowd.whose_codes(campaign=_campaign(campaign_id), codes=sent.validated_data["codes"])
        return Response({"codes": [_code_json(code, row) for code, row in checked]})


def _code_json(code: str, row: Participant | None) -> dict[str, Any]:
    if row is None:
        return {"code": code, "username": None, "assessor": None, "n_judged": None, "completed_at": None}
    line = CodeAnswer(
        {
            "code": code,
            "username": row.assessor.user.username,
            "assessor": row.assessor_id,
            "n_judged": row.assessor.n_judged,
            "completed_at": row.completed_at,
        }
    )
    return dict(line.data)


# -- consent --------------------------------------------------------------------------------------------------


class ConsentText(Strict):
    text = LongWord(
        max_length=20_000, allow_blank=True, help_text="Markdown; empty: no consent is requested."
    )


class Consent(APIView):
    permission_classes = (ManagersOnly,)

    @extend_schema(operation_id="consent_read", tags=["consent"], responses=ConsentText)
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """The text that assessors agree to before they judge."""
        return Response({"text": _campaign(campaign_id).consent})

    @extend_schema(
        operation_id="consent_set",
        tags=["consent"],
        request=ConsentText,
        responses=ConsentText,
        examples=[OpenApiExample("usual", value={"text": "We keep what you judge."}, request_only=True)],
    )
    def put(self, request: Request, campaign_id: uuid.UUID) -> Response:
        """Change the text; assessors who have agreed are not asked again."""
        sent = ConsentText(data=request.data)
        sent.is_valid(raise_exception=True)
        entry.set_consent_text(
            campaign=_campaign(campaign_id), text=sent.validated_data["text"], user=user_of(request)
        )
        return Response({"text": _campaign(campaign_id).consent})


def _campaign(campaign_id: uuid.UUID) -> Campaign:
    return get_object_or_404(Campaign, pk=campaign_id)
