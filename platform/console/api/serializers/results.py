"""The answers: every field by name, nothing that is not listed."""

from collections.abc import Callable, Iterable
from typing import Any

from drf_spectacular.utils import extend_schema_field, extend_schema_serializer
from rest_framework import serializers

from analytics.methods import Method, choices
from analytics.models import (
    AuditForecast,
    Computation,
    ConfusionEstimate,
    DisputedItem,
    Estimate,
    Flag,
    Release,
)
from analytics.screening.kinds import flag_choices
from judging.serializers.strict import TableChoice
from sampling.measures.registry import reported_kinds
from touchstone.models import Job


class ComputationAnswer(serializers.ModelSerializer[Computation]):
    class Meta:
        model = Computation
        fields = (
            "id",
            "last_judgment_id",
            "n_batches",
            "n_audits",
            "bronze_score",
            "assumption",
            "n_judgments",
            "n_items",
            "n_audited",
            "n_gold_checks",
            "look",
            "n_looks",
            "is_by_gold_judges",
            "seconds",
            "created_at",
        )


class MeasureAnswer(serializers.Serializer[Any]):
    name = serializers.CharField()
    kind = TableChoice(reported_kinds)
    ir_measures = serializers.CharField(allow_blank=True, help_text="Its name in ir_measures, if it has one")
    is_usual = serializers.BooleanField(help_text="The measure of the newest draw; the default of requests")


class MeasuresAnswer(serializers.Serializer[Any]):
    campaign = serializers.UUIDField()
    measures = MeasureAnswer(many=True)
    computation = ComputationAnswer(allow_null=True, help_text="The newest; null before the first judgment")


NUMBERS = (
    "value", "standard_error", "low", "high", "p_value", "degrees_of_freedom", "topics_standard_error", "topics_low",
    "topics_high", "topics_p_value", "topics_degrees_of_freedom", "topics_refusal", "always_low", "always_high",
    "unbounded_value", "unbounded_low", "unbounded_high", "range_low", "range_high", "components", "n", "n_positive",
    "judged_share", "gold_share", "outside_low", "outside_high", "sources", "refusal", "warning",
)  # fmt: skip


class MethodField(serializers.ChoiceField):
    """One of the methods of estimation, by its key; the table is read anew by each serializer."""

    def __init__(self, methods: Callable[[], Iterable[Method]] | None = None, **options: Any) -> None:
        super().__init__(choices(methods() if methods else None), **options)


class OtherRun(serializers.CharField):
    """The run that is subtracted; null where a row is of one run."""

    def __init__(self, **named: Any) -> None:
        super().__init__(source="run_b.run_id", allow_null=True, default=None, **named)


@extend_schema_serializer(deprecate_fields=("run_b",))
class EstimateAnswer(serializers.ModelSerializer[Estimate]):
    """A value with its 95 % confidence interval, or the reason why there is none. `against` not null: the difference
    run - against."""

    run = serializers.CharField(source="run.run_id")
    against = OtherRun()
    run_b = OtherRun(help_text="Deprecated: against")
    method = MethodField()
    components = serializers.DictField(child=serializers.FloatField(), help_text="Variance by source")
    sources = serializers.ListField(child=serializers.CharField())

    class Meta:
        model = Estimate
        fields: tuple[str, ...] = ("id", "run", "against", "run_b", "measure", "method", *NUMBERS)


class OneEstimateAnswer(EstimateAnswer):
    """An estimate that may not be stored, so it has no id."""

    class Meta:
        model = Estimate
        fields = ("run", "against", "run_b", "measure", "method", *NUMBERS)


class RankedRunAnswer(serializers.Serializer[Any]):
    run = serializers.CharField(source="run_id")
    value = serializers.FloatField(source="estimate.value")
    low = serializers.FloatField(source="estimate.low")
    high = serializers.FloatField(source="estimate.high")
    judged_share = serializers.FloatField(
        source="estimate.judged_share", allow_null=True, help_text="Judged@k, k the measure's cutoff"
    )
    gold_share = serializers.FloatField(
        source="estimate.gold_share", allow_null=True, help_text="The share that has a gold label"
    )
    rank = serializers.IntegerField()
    rank_low = serializers.IntegerField(
        help_text="With rank_high: simultaneous bounds of all runs at 95 % confidence"
    )
    rank_high = serializers.IntegerField()
    rank_alone_low = serializers.IntegerField(
        help_text="With rank_alone_high: bounds of this run, if it was chosen before the results were seen"
    )
    rank_alone_high = serializers.IntegerField()
    probabilities = serializers.ListField(child=serializers.FloatField(), help_text="Of rank 1, 2, ...")


class TauAnswer(serializers.Serializer[Any]):
    low = serializers.FloatField()
    high = serializers.FloatField()


class LeftOutAnswer(serializers.Serializer[Any]):
    run = serializers.CharField()
    reason = serializers.CharField()


class RankingAnswer(serializers.Serializer[Any]):
    campaign = serializers.UUIDField()
    computation = ComputationAnswer(allow_null=True)
    measure = serializers.CharField()
    method = serializers.CharField()
    runs = RankedRunAnswer(many=True)
    left_out = LeftOutAnswer(many=True)
    tau = TauAnswer(allow_null=True, help_text="Kendall's tau with the true ranking, 95 %")
    claim = serializers.CharField()
    family = serializers.CharField(help_text="The family that is asked for: its runs are ranked")
    n_family = serializers.IntegerField(help_text="Comparisons of the family that were tested")
    n_significant = serializers.IntegerField(
        help_text="Of these, significant by the corrected method's adjusted p"
    )
    n_pairs = serializers.IntegerField()
    n_apart = serializers.IntegerField(help_text="Significant pairs, by Holm's p")
    n_apart_max_t = serializers.IntegerField(
        help_text="Significant pairs by the test of the ranks: max-t for these topics, Holm for topics like these"
    )
    n_unknown = serializers.IntegerField()
    n_few = serializers.IntegerField(help_text="Pairs that fewer than 10 documents with a gain above 0 carry")
    refusal = serializers.CharField(allow_blank=True)


class ConfusionAnswer(serializers.ModelSerializer[ConfusionEstimate]):
    """confusion[true grade][given grade]; rows sum to 1, null where no grade is known."""

    counts = serializers.JSONField()
    matrix = serializers.JSONField()
    low = serializers.JSONField()
    high = serializers.JSONField()
    label = serializers.CharField(  # type: ignore[assignment]  # every field has an attribute of that name
        source="shown_label", help_text="The key in words; an assessor's user name"
    )

    class Meta:
        model = ConfusionEstimate
        fields = (
            "id",
            "scope",
            "key",
            "label",
            "assessor_id",
            "counts",
            "matrix",
            "low",
            "high",
            "n_gold_checks",
            "n_audited",
            "accuracy",
            "accuracy_low",
            "accuracy_high",
            "drift_p_value",
        )


class FlagAnswer(serializers.ModelSerializer[Flag]):
    """What one test says against an assessor. `effect` is in the unit that `evidence` names."""

    assessor = serializers.CharField(source="assessor.user.username")
    test = serializers.ChoiceField(source="kind", choices=flag_choices())
    topics = serializers.ListField(
        child=serializers.CharField(),
        help_text="Ids of the topics that show it; empty where the test names none",
    )

    class Meta:
        model = Flag
        fields = (
            "id",
            "computation_id",
            "assessor_id",
            "assessor",
            "test",
            "p_adjusted",
            "effect",
            "topics",
            "evidence",
            "created_at",
        )


@extend_schema_serializer(deprecate_fields=("run_b",))
class ForecastAnswer(serializers.ModelSerializer[AuditForecast]):
    """The expected half-width after one more audit by this strategy."""

    run = serializers.CharField(source="run.run_id", allow_null=True, default=None)
    against = OtherRun()
    run_b = OtherRun(help_text="Deprecated: against")

    class Meta:
        model = AuditForecast
        fields = (
            "id",
            "strategy",
            "n_more",
            "run",
            "against",
            "run_b",
            "measure",
            "half_width_now",
            "half_width_after",
            "half_width_error",
            "middle_low",
            "middle_high",
            "drawing_share",
            "topics_half_width_after",
            "topics_share",
            "refusal",
        )


class DisputedAnswer(serializers.ModelSerializer[DisputedItem]):
    topic_id = serializers.CharField(source="item.topic.topic_id")
    doc_id = serializers.CharField(source="item.document.doc_id")

    class Meta:
        model = DisputedItem
        fields = (
            "id",
            "position",
            "item_id",
            "topic_id",
            "doc_id",
            "influence",
            "error_probability",
            "joint_grade",
            "reasons",
        )


class PictureAnswer(serializers.Serializer[Any]):
    name = serializers.CharField()
    words = serializers.CharField()
    query = serializers.ListField(child=serializers.CharField(), help_text="The parameters of its address")
    url = serializers.CharField()


class PicturesAnswer(serializers.Serializer[Any]):
    plots = PictureAnswer(many=True)


class ReleaseAnswer(serializers.ModelSerializer[Release]):
    """A release; its pseudonym key is never returned."""

    campaign = serializers.UUIDField(source="campaign_id")
    job = serializers.UUIDField(source="job_id", allow_null=True)
    computation = serializers.IntegerField(source="computation_id", allow_null=True)
    previous = serializers.CharField(source="previous.version", allow_null=True, default=None)
    state = serializers.SerializerMethodField()
    failed = serializers.SerializerMethodField(help_text="Why it could not be built; otherwise empty")
    has_key = serializers.SerializerMethodField(
        help_text="Whether this server can still identify the assessors behind the pseudonyms"
    )

    class Meta:
        model = Release
        fields = (
            "id",
            "campaign",
            "version",
            "title",
            "authors",
            "notes",
            "licence",
            "doi",
            "url",
            "aggregation",
            "prefers_gold",
            "includes_documents",
            "includes_runs",
            "state",
            "failed",
            "job",
            "computation",
            "previous",
            "last_judgment_id",
            "n_bytes",
            "sha256",
            "merkle_root",
            "created_at",
            "ready_at",
            "withdrawn_at",
            "withdrawn_reason",
            "public_since",
            "has_key",
        )

    @extend_schema_field(serializers.ChoiceField(Release.State.choices))
    def get_state(self, release: Release) -> str:
        """The row learns that its job failed when the next release is asked for; who reads it is told at once."""
        return Release.State.FAILED.value if self._job_in_vain(release) else str(release.state)

    def get_failed(self, release: Release) -> str:
        job = self._job_in_vain(release)
        return (job.error or job.state) if job else ""

    @staticmethod
    def _job_in_vain(release: Release) -> Job | None:
        job = release.job
        if job is None or release.state == Release.State.READY:
            return None
        return job if job.state in (Job.State.FAILED, Job.State.CANCELLED) else None

    def get_has_key(self, release: Release) -> bool:
        return bool(release.pseudonym_key)


class CitationAnswer(serializers.Serializer[Any]):
    text = serializers.CharField()
    bibtex = serializers.CharField()


class ChangesAnswer(serializers.Serializer[Any]):
    previous = serializers.CharField(allow_null=True, help_text="The version it is compared with")
    notes = serializers.CharField(allow_blank=True)
    changes = serializers.JSONField(help_text="What was added, changed, removed")
