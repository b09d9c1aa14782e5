"""What the views share: which computation is meant, and the answer about a job."""

from typing import Any

from django.db.models import QuerySet
from django.urls import reverse
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.models import Computation
from analytics.services.recomputation import latest_computation, measures_of
from console.api.jobs import JobAnswer
from console.campaigns import campaign_of
from judging.models import Campaign, Run
from judging.serializers.strict import StrictQuery, Word
from judging.services.access import ResearchersOnly
from sampling.design_fields import LONGEST_MEASURE
from sampling.measures.registry import usual_spelling
from touchstone.models import Job

LARGEST_KEY = 2**63 - 1
OLD_NAMES_OF_RUNS = {"run_b": "against"}  # of the filters, for one version
COMPUTATION_HELP = "Id of a computation; by default the newest"


class ComputationKey(serializers.IntegerField):
    def __init__(self, **named: Any) -> None:
        super().__init__(min_value=1, max_value=LARGEST_KEY, help_text=COMPUTATION_HELP, **named)


class NegatedBoolean(serializers.BooleanField):
    """A truth value whose column says the opposite."""

    def to_internal_value(self, data: Any) -> bool:
        return not super().to_internal_value(data)


class OfComputation(ListAPIView[Any]):
    """Rows of one computation: of the newest, unless `?computation=` names another one of this campaign."""

    permission_classes: tuple[type[BasePermission], ...] = (ResearchersOnly,)

    def computation(self) -> Computation | None:
        asked = self.request.query_params.get("computation")
        if asked is None:
            return latest_computation(campaign=campaign_of(self.kwargs["campaign_id"]))
        try:
            key = ComputationKey().run_validation(asked)
        except serializers.ValidationError as fault:
            raise serializers.ValidationError({"computation": fault.detail}) from fault
        return Computation.objects.filter(campaign_id=self.kwargs["campaign_id"], pk=key).first()

    def get_queryset(self) -> QuerySet[Any]:
        computation = self.computation()
        rows: QuerySet[Any] = super().get_queryset().model.objects.all()
        return rows.none() if computation is None else rows.filter(computation=computation)


class MeasureRequest(StrictQuery):
    """In which of the campaign's measures."""

    measure = Word(
        max_length=LONGEST_MEASURE, default="", help_text="By default the measure of the newest draw"
    )

    def validate_measure(self, name: str) -> str:
        known, asked = measures_of(self.context["campaign"]), usual_spelling(name)
        if name and asked not in known:
            raise serializers.ValidationError(
                f"this campaign has numbers in {', '.join(known)}; got {name!r}"
            )
        return asked or known[0]

    def validate(self, sent: dict[str, Any]) -> dict[str, Any]:
        return {**sent, "measure": sent["measure"] or self.validate_measure("")}


class PairRequest(MeasureRequest):
    """Of which two runs, in which measure."""

    run = Word(max_length=200)
    against = Word(max_length=200)

    def validate_run(self, run_id: str) -> Run:
        return self._known_run(run_id)

    def validate_against(self, run_id: str) -> Run:
        return self._known_run(run_id)

    def _known_run(self, run_id: str) -> Run:
        found: Run | None = self.context["campaign"].collection.runs.filter(run_id=run_id).first()
        if found is None:
            raise serializers.ValidationError(f"the collection has no run {run_id!r}")
        return found

    def validate(self, sent: dict[str, Any]) -> dict[str, Any]:
        if sent["run"] == sent["against"]:
            raise serializers.ValidationError({"against": ["both runs are the same: choose another run"]})
        return super().validate(sent)


def query_of(
    kind: type[serializers.Serializer[Any]],
    request: Request,
    campaign: Campaign,
    described: type[serializers.Serializer[Any]] | None = None,
    **context: Any,
) -> dict[str, Any]:
    """Return what the query asks, or raise the answer that says what is wrong with it.

    Where an address is `described` with more than this kind takes, the defaults of the rest may be sent: generated
    clients do.
    """
    query = request.query_params.dict()
    if described is not None:
        others = {name: field for name, field in described().fields.items() if name not in kind().fields}
        query = {
            name: value
            for name, value in query.items()
            if name not in others or value != others[name].default
        }
    sent = kind(data=query, context={"campaign": campaign, **context})
    sent.is_valid(raise_exception=True)
    return dict(sent.validated_data)


def job_accepted(job: Job) -> Response:
    """Return 202 with the job, and where to ask how far it is."""
    made = Response(JobAnswer(job).data, status=202)
    made["Location"] = reverse("console:api-job", args=[job.pk])
    made["Retry-After"] = "1"
    return made
