"""Requests of API clients about a campaign's designs and draws, checked before a service sees them; and the answers."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

from django.urls import reverse
from django.utils import timezone
from rest_framework import serializers

from judging.models import Campaign
from judging.serializers.strict import Finite, Strict, TableChoice, Word
from sampling.design_fields import DESIGN_FIELDS, MOST_ITEMS, MOST_RUNS, DesignField, FieldKind
from sampling.measures.families import grade_gains
from sampling.measures.registry import parse_measure
from sampling.models import Audit, AuditSchedule, AuditTier, Draw, GoldFit
from sampling.questions import Design, QuestionRefused, parse_designed, question_rows
from sampling.schedules import LONGEST_LINE, parse_crontab
from sampling.services.audit_schedules import next_due_time, schedule_words
from sampling.services.calibrating import CalibrationRefused, with_source
from sampling.services.layout import missing_topics
from sampling.strategies import DEFAULT_STRATEGY, strategy_choices
from touchstone.models import Job

LARGEST_SEED = 2**63 - 1
FEWEST_LOOKS, MOST_LOOKS = 2, 50
MOST_SECONDS = 2_000_000_000


def _default(field: DesignField) -> dict[str, Any]:
    return {} if field.is_required else {"default": field.default}


def _count(field: DesignField) -> Any:
    return serializers.IntegerField(min_value=int(field.least), max_value=int(field.most), **_default(field))


def _runs(field: DesignField) -> Any:
    return serializers.ListField(
        child=Word(max_length=int(field.most)), max_length=MOST_RUNS, default=lambda: list(field.default)
    )


# How an API client sends a design's fields, and how it gets them back.
REQUEST_FIELDS: dict[FieldKind, Callable[[DesignField], Any]] = {
    FieldKind.CHOICE: lambda field: serializers.ChoiceField(field.keys, **_default(field)),
    FieldKind.RUNS: _runs,
    FieldKind.MEASURE: lambda field: Word(max_length=int(field.most), **_default(field)),
    FieldKind.COUNT: _count,
    FieldKind.SCORES: lambda field: Word(max_length=int(field.most), allow_blank=True, **_default(field)),
    FieldKind.SOURCE: lambda field: Word(max_length=int(field.most), allow_blank=True, **_default(field)),
    FieldKind.SHARE: lambda field: Finite(
        min_value=float(field.least), max_value=float(field.most), **_default(field)
    ),
}
ANSWER_FIELDS: dict[FieldKind, Callable[[], Any]] = {
    FieldKind.CHOICE: serializers.CharField,
    FieldKind.RUNS: lambda: serializers.ListField(child=serializers.CharField()),
    FieldKind.MEASURE: serializers.CharField,
    FieldKind.COUNT: serializers.IntegerField,
    FieldKind.SCORES: lambda: serializers.CharField(allow_blank=True),
    FieldKind.SOURCE: lambda: serializers.CharField(allow_blank=True),
    FieldKind.SHARE: serializers.FloatField,
}


class DesignRequest(Strict):
    """A `sampling.questions.Design` for the campaign in the context; its names must be known there to the user."""

    def get_fields(self) -> dict[str, Any]:
        return {
            field.name: REQUEST_FIELDS[field.kind](field) for field in DESIGN_FIELDS
        } | super().get_fields()

    def validate_measure(self, name: str) -> str:
        scale = self.context["campaign"].scale
        try:
            parsed = parse_measure(name)
            grade_gains(parsed, scale.gains(), parsed.relevant_grade or scale.relevant_grade)
        except ValueError as error:
            raise serializers.ValidationError(str(error)) from error
        return parsed.name

    def validate_scores(self, name: str) -> str:
        if name and not self.context["campaign"].collection.score_lists.filter(name=name).exists():
            raise serializers.ValidationError(f"the collection has no scores named {name!r}")
        return name

    def validate(self, sent: dict[str, Any]) -> dict[str, Any]:
        """Return what was sent as `design`, and what else there was beside it."""
        try:
            cutoff = parse_designed(sent["measure"], sent["topic_selection"]).last_rank
        except ValueError as error:
            raise serializers.ValidationError({"measure": [str(error)]}) from error
        if cutoff > sent["depth"]:
            reason = f"must be at least {cutoff}, the cutoff of {sent['measure']}: deeper ranks would never be judged"
            raise serializers.ValidationError({"depth": [reason]})
        own = {field.name: sent[field.name] for field in fields(Design)}
        run_ids = list(self.context["campaign"].collection.runs.values_list("run_id", flat=True))
        try:
            design = Design(**own)
        except QuestionRefused as error:
            raise serializers.ValidationError({"design": [str(error)]}) from error
        try:
            question_rows(design, run_ids)
        except QuestionRefused as error:
            raise serializers.ValidationError({"runs": [str(error)]}) from error
        try:
            design = with_source(self.context["campaign"], design, self.context["user"])
        except CalibrationRefused as error:
            raise serializers.ValidationError({"calibrated_on": [str(error)]}) from error
        return {"design": design, **{name: value for name, value in sent.items() if name not in own}}


class DrawRequest(DesignRequest):
    seed = serializers.IntegerField(min_value=0, max_value=LARGEST_SEED, allow_null=True, default=None)


class AuditRequest(Strict):
    """One audit at once: how many items, by which strategy, for which tier."""

    items = serializers.IntegerField(min_value=1, max_value=MOST_ITEMS)
    total = serializers.IntegerField(min_value=1, max_value=MOST_ITEMS, default=MOST_ITEMS)
    strategy = TableChoice(strategy_choices, default=DEFAULT_STRATEGY)
    tier = serializers.ChoiceField(AuditTier.choices, default=AuditTier.GOLD)
    gold_fit = serializers.ChoiceField(
        GoldFit.choices,
        allow_null=True,
        default=None,
        help_text="What predictions of gold learn from once an audit has learned; null: what stands, else refit",
    )
    seed = serializers.IntegerField(min_value=0, max_value=LARGEST_SEED, allow_null=True, default=None)

    def audit_arguments(self) -> dict[str, Any]:
        """Return what was sent in the words of `sampling.services.auditing.audit`."""
        sent = self.validated_data
        names = {"items_each_time": "items", "items_in_total": "total"}
        return {
            name: sent[names.get(name, name)] for name in (*names, "strategy", "tier", "gold_fit", "seed")
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


# -- answers --------------------------------------------------------------------------------------------------


class DesignAnswer(serializers.Serializer[Any]):
    """A design, as it can be posted again."""

    def get_fields(self) -> dict[str, Any]:
        return {field.name: ANSWER_FIELDS[field.kind]() for field in DESIGN_FIELDS}


class CalibrationAnswer(serializers.Serializer[Any]):
    """Scores as gold elsewhere read them: logit p' = logit p + intercept + slope (s - 1/2) + popularity x."""

    intercept = serializers.FloatField()
    slope = serializers.FloatField()
    popularity = serializers.FloatField(help_text="Of the log odds that a run returns the document")
    n_gold = serializers.IntegerField(help_text="Documents with gold and a score that were fitted to")
    n_relevant = serializers.FloatField(help_text="How many of them are relevant")


class DrawAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    batch = serializers.IntegerField(min_value=1)
    design = serializers.DictField(help_text="As it was recorded; older draws may lack later fields")
    topics = serializers.ListField(child=serializers.CharField())
    pooled = serializers.ListField(child=serializers.CharField())
    calibration = CalibrationAnswer(allow_null=True)
    learned_from = serializers.JSONField(allow_null=True)
    seed = serializers.IntegerField()
    frame = serializers.CharField(help_text="Address of the recorded frame")
    frame_sha256 = serializers.CharField()
    n_frame = serializers.IntegerField()
    n_drawn = serializers.IntegerField()
    drawn_by = serializers.CharField(allow_null=True)
    drawn_at = serializers.DateTimeField()
    is_laid_out = serializers.BooleanField()
    n_topics_missing = serializers.IntegerField()


class DrawsAnswer(serializers.Serializer[Any]):
    campaign = serializers.UUIDField()
    draws = DrawAnswer(many=True)


class CampaignJobAnswer(serializers.Serializer[Any]):
    """A draw or an audit under way; ask `url` until `state` is done, failed or cancelled."""

    job = serializers.UUIDField()
    url = serializers.CharField()
    page = serializers.CharField()
    kind = serializers.CharField()
    state = serializers.ChoiceField(Job.State.choices)
    percent = serializers.IntegerField(min_value=0, max_value=100)
    note = serializers.CharField(allow_blank=True)
    error = serializers.CharField(allow_blank=True)
    result = serializers.DictField()
    design = serializers.DictField(allow_null=True)
    seed = serializers.IntegerField(allow_null=True)


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
    n_planned = serializers.IntegerField(
        allow_null=True, help_text="Items that audits were to take in all, then"
    )
    n_drawn = serializers.IntegerField(allow_null=True, help_text="Items drawn for gold audits by then")
    gold_fit = serializers.CharField(
        allow_blank=True, help_text="Of a strategy that learns: refit or exact; of others empty"
    )
    learned_from = serializers.IntegerField(
        allow_null=True, help_text="Complete gold audits that the sizes learned from; 0: too little gold yet"
    )
    declaration = serializers.CharField(
        allow_blank=True,
        help_text="How imported gold is declared to have been chosen; empty of a drawn audit",
    )
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
    n_looks = serializers.IntegerField(allow_null=True)
    is_active = serializers.BooleanField()
    words = serializers.CharField()
    next_due = serializers.DateTimeField(allow_null=True)


class ScheduleOrNone(serializers.Serializer[Any]):
    schedule = ScheduleAnswer(allow_null=True)


class AuditsAnswer(ScheduleOrNone):
    campaign = serializers.UUIDField()
    audits = AuditAnswer(many=True)


def draw_json(draw: Draw, missing: Sequence[str]) -> dict[str, Any]:
    """Return a batch; `missing` are its topics that are not laid out yet."""
    parameters = dict(draw.parameters)
    topics, pooled = parameters.pop("topics", []), parameters.pop("pooled", [])
    calibration = parameters.pop("calibration", None)
    return {
        "id": str(draw.pk),
        "batch": draw.batch,
        "design": parameters,
        "topics": topics,
        "pooled": pooled,
        "calibration": calibration,
        "learned_from": draw.learned_from,
        "seed": draw.seed,
        "frame": reverse("console:api-frame", args=[draw.campaign_id, draw.batch]),
        "frame_sha256": draw.frame_sha256,
        "n_frame": draw.n_frame,
        "n_drawn": draw.n_drawn,
        "drawn_by": draw.drawn_by.get_username() if draw.drawn_by else None,
        "drawn_at": draw.created_at.isoformat(),
        "is_laid_out": not missing,
        "n_topics_missing": len(missing),
    }


def draws_json(campaign: Campaign) -> list[dict[str, Any]]:
    """Return all batches. Only the newest can be laid out in part: a later one is not drawn before that is done."""
    draws = list(campaign.draws.select_related("drawn_by").order_by("batch"))
    return [draw_json(draw, missing_topics(draw) if draw is draws[-1] else []) for draw in draws]


def job_json(job: Job, campaign: Campaign) -> dict[str, Any]:
    return {
        "job": str(job.pk),
        "url": reverse("console:api-campaign-job", args=[campaign.pk, job.pk]),
        "page": reverse("job", args=[job.pk]),
        "kind": job.kind,
        "state": job.state,
        "percent": job.percent,
        "note": job.note,
        "error": job.error,
        "result": job.result,
        "design": job.payload.get("design"),
        "seed": job.payload.get("seed"),
    }


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
        "learned_from": audit.learned_from,
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
