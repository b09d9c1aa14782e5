"""Requests of API clients about a campaign's audits, checked before a service sees them; and the answers."""

from typing import Any

from django.urls import reverse
from django.utils import timezone
from rest_framework import serializers

from judging.serializers.strict import Strict, TableChoice, Word
from sampling.design_fields import LONGEST_MEASURE, MOST_ITEMS
from sampling.models import Audit, AuditSchedule, AuditTier, GoldFit
from sampling.questions import parse_designed
from sampling.schedules import LONGEST_LINE, parse_crontab
from sampling.serializers.designs import LARGEST_SEED
from sampling.services.audit_schedules import next_due_time, schedule_words
from sampling.strategies import DEFAULT_STRATEGY, strategy_choices, strategy_of

FEWEST_LOOKS, MOST_LOOKS = 2, 50
MOST_SECONDS = 2_000_000_000


def _audit_measure(_: Any, name: str) -> str:
    try:
        return parse_designed(name, "all").name if name else ""
    except ValueError as error:
        raise serializers.ValidationError(str(error)) from error


class AuditRequest(Strict):
    """One audit at once: how many items, by which strategy, for which tier."""

    items = serializers.IntegerField(
        min_value=1,
        max_value=MOST_ITEMS,
        required=False,
        allow_null=True,
        default=None,
        help_text="Required, but of a census: it has no size",
    )
    total = serializers.IntegerField(
        min_value=1, max_value=MOST_ITEMS, required=False, allow_null=True, default=None
    )
    strategy = TableChoice(strategy_choices, default=DEFAULT_STRATEGY)
    tier = serializers.ChoiceField(AuditTier.choices, default=AuditTier.GOLD)
    gold_fit = serializers.ChoiceField(
        GoldFit.choices,
        allow_null=True,
        default=None,
        help_text="What predictions of gold learn from once an audit has learned; null: what stands, else refit",
    )
    measure = Word(max_length=LONGEST_MEASURE, allow_blank=True, default="")
    validate_measure = _audit_measure
    run = Word(max_length=200, allow_blank=True, default="", help_text="Of a census: the run")
    against = Word(
        max_length=200, allow_blank=True, default="", help_text="Of a census of a pair: the second run"
    )
    seed = serializers.IntegerField(min_value=0, max_value=LARGEST_SEED, allow_null=True, default=None)

    def validate(self, sent: dict[str, Any]) -> dict[str, Any]:
        checked: dict[str, Any] = super().validate(sent)
        is_census = strategy_of(checked["strategy"]).takes_all
        if checked["items"] is None and not is_census:
            raise serializers.ValidationError({"items": ["This field is required."]})
        if is_census and not checked["run"]:
            raise serializers.ValidationError({"run": ["a census is of a run or a pair: name it"]})
        if checked["total"] is None and not is_census:
            checked["total"] = MOST_ITEMS
        return checked

    def audit_arguments(self) -> dict[str, Any]:
        """Return what was sent in the words of `sampling.services.auditing.audit`."""
        sent = self.validated_data
        names = {"items_each_time": "items", "items_in_total": "total"}
        return {
            name: sent[names.get(name, name)]
            for name in (*names, "strategy", "tier", "gold_fit", "measure", "run", "against", "seed")
        }


class ScheduleRequest(Strict):
    """The audit schedule; what is left out stays as it is, or begins with the model's default."""

    every_seconds = serializers.IntegerField(min_value=1, max_value=MOST_SECONDS, required=False)
    crontab = Word(max_length=LONGEST_LINE, allow_blank=True, required=False)
    items_each_time = serializers.IntegerField(min_value=1, max_value=MOST_ITEMS, required=False)
    items_in_total = serializers.IntegerField(min_value=1, max_value=MOST_ITEMS, required=False)
    strategy = TableChoice(strategy_choices, required=False)
    tier = serializers.ChoiceField(AuditTier.choices, required=False)
    gold_fit = serializers.ChoiceField(GoldFit.choices, required=False)
    measure = Word(max_length=LONGEST_MEASURE, allow_blank=True, required=False)
    validate_measure = _audit_measure
    n_looks = serializers.IntegerField(
        min_value=FEWEST_LOOKS,
        max_value=MOST_LOOKS,
        required=False,
        allow_null=True,
        help_text="Complete audits declared as looks, before the first one; null for none",
    )
    is_active = serializers.BooleanField(required=False)

    def validate_crontab(self, line: str) -> str:
        if line:
            try:
                parse_crontab(line)
            except ValueError as error:
                raise serializers.ValidationError(str(error)) from error
        return line


class AuditAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    sequence = serializers.IntegerField(min_value=1)
    strategy = serializers.CharField()
    tier = serializers.CharField()
    seed = serializers.IntegerField()
    expected_in_total = serializers.FloatField()
    n_eligible = serializers.IntegerField()
    n_selected = serializers.IntegerField()
    look = serializers.IntegerField(allow_null=True, help_text="Which declared look the audit is")
    n_looks = serializers.IntegerField(allow_null=True, help_text="Looks declared, by an audit that is one")
    n_planned = serializers.IntegerField(allow_null=True, help_text="Items audits were to take in all, then")
    n_drawn = serializers.IntegerField(allow_null=True, help_text="Items drawn for gold audits by then")
    gold_fit = serializers.CharField(allow_blank=True, help_text="If it learns: refit or exact; else empty")
    measure = serializers.CharField(allow_blank=True, help_text="What influence went by; empty: not recorded")
    learned_from = serializers.IntegerField(allow_null=True, help_text="Gold audits its sizes learned from")
    run = serializers.CharField(allow_blank=True, help_text="Of a census; empty: of another audit")
    against = serializers.CharField(allow_blank=True)
    declaration = serializers.CharField(allow_blank=True, help_text="How imported gold was chosen")
    assumption = serializers.CharField(allow_blank=True, help_text="What numbers made with it assume")
    choice_p_value = serializers.FloatField(allow_null=True, help_text="p of a test of the declaration")
    sample = serializers.CharField(help_text="Address of the sample as CSV")
    made_at = serializers.DateTimeField()


class ScheduleAnswer(serializers.Serializer[Any]):
    every_seconds = serializers.IntegerField(allow_null=True)
    crontab = serializers.CharField(allow_blank=True)
    items_each_time = serializers.IntegerField()
    items_in_total = serializers.IntegerField()
    strategy = serializers.CharField()
    tier = serializers.CharField()
    gold_fit = serializers.CharField()
    measure = serializers.CharField(allow_blank=True, help_text="Empty: that of the newest draw")
    n_looks = serializers.IntegerField(allow_null=True)
    is_active = serializers.BooleanField()
    words = serializers.CharField()
    next_due = serializers.DateTimeField(allow_null=True)


class ScheduleOrNone(serializers.Serializer[Any]):
    schedule = ScheduleAnswer(allow_null=True)


class AuditsAnswer(ScheduleOrNone):
    campaign = serializers.UUIDField()
    audits = AuditAnswer(many=True)


def audit_json(audit: Audit) -> dict[str, Any]:
    return {
        "id": str(audit.pk),
        "sequence": audit.sequence,
        "strategy": audit.strategy,
        "tier": audit.tier,
        "seed": audit.seed,
        "expected_in_total": audit.expected_in_total,
        "n_eligible": audit.n_eligible,
        "n_selected": audit.n_selected,
        "look": audit.look,
        "n_looks": audit.n_looks,
        "n_planned": audit.n_planned,
        "n_drawn": audit.n_drawn,
        "gold_fit": audit.gold_fit,
        "measure": audit.measure,
        "learned_from": audit.learned_from,
        "run": audit.run,
        "against": audit.against,
        "declaration": audit.declaration,
        "assumption": audit.assumption,
        "choice_p_value": audit.choice_p_value,
        "sample": reverse("console:api-audit-sample", args=[audit.campaign_id, audit.sequence]),
        "made_at": audit.created_at.isoformat(),
    }


def schedule_json(schedule: AuditSchedule | None) -> dict[str, Any] | None:
    if schedule is None:
        return None
    due = next_due_time(schedule, timezone.now()) if schedule.is_active else None
    return {
        **{name: getattr(schedule, name) for name in ScheduleRequest().get_fields()},
        "words": schedule_words(schedule),
        "next_due": due.isoformat() if due else None,
    }
