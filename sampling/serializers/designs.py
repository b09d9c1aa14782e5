"""Requests of API clients about a campaign's designs and draws, checked before a service sees them; and the answers."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

from django.urls import reverse
from rest_framework import serializers

from judging.models import Campaign
from judging.serializers.strict import Finite, Strict, Word
from sampling.design_fields import (
    DESIGN_FIELDS,
    MOST_RUNS,
    DesignField,
    FieldKind,
)
from sampling.measures.families import grade_gains
from sampling.measures.registry import parse_measure
from sampling.models import Draw
from sampling.questions import Design, QuestionRefused, parse_designed, question_rows
from sampling.services.calibrating import CalibrationRefused, with_source
from sampling.services.layout import missing_topics
from touchstone.models import Job

LARGEST_SEED = 2**63 - 1


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


class CheckGradesAnswer(serializers.Serializer[Any]):
    """Of which grades the checks of a batch are, as its draw allotted them; lists are by grade."""

    choice = serializers.CharField(help_text="The campaign's setting then")
    ordinary = serializers.ListField(child=serializers.FloatField(), help_text="Shares among ordinary items")
    ordinary_of = serializers.ChoiceField(["labels", "gold"], help_text="What these shares are of")
    shares = serializers.ListField(child=serializers.FloatField(), help_text="Shares that all checks follow")
    checks = serializers.ListField(
        child=serializers.IntegerField(min_value=0), help_text="Of all batches until this one"
    )
    auc = serializers.FloatField(help_text="Of guessing checks, for somebody who knows all right grades")
    numbers = serializers.DictField(
        child=serializers.ListField(child=serializers.IntegerField(min_value=0)),
        help_text="Checks of this batch by topic",
    )


class DrawAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    batch = serializers.IntegerField(min_value=1)
    design = serializers.DictField(help_text="As it was recorded; older draws may lack later fields")
    topics = serializers.ListField(child=serializers.CharField())
    pooled = serializers.ListField(child=serializers.CharField())
    calibration = CalibrationAnswer(allow_null=True)
    check_grades = CheckGradesAnswer(allow_null=True, help_text="Null where checks are taken in turn")
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


def draw_json(draw: Draw, missing: Sequence[str]) -> dict[str, Any]:
    """Return a batch; `missing` are its topics that are not laid out yet."""
    parameters = dict(draw.parameters)
    topics, pooled = parameters.pop("topics", []), parameters.pop("pooled", [])
    calibration, check_grades = parameters.pop("calibration", None), parameters.pop("check_grades", None)
    return {
        "id": str(draw.pk),
        "batch": draw.batch,
        "design": parameters,
        "topics": topics,
        "pooled": pooled,
        "calibration": calibration,
        "check_grades": check_grades,
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
