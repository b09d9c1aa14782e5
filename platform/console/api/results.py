"""Measures, estimates, comparisons, ranking: what the newest computation says, or another one that is named."""

import functools
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from analytics.estimation.wording import ClaimTest, PairComparison, sentence
from analytics.methods import REPORTED, ranked_methods
from analytics.models import Estimate
from analytics.services.assumptions import newest_answers, what_forbids
from analytics.services.comparisons import Comparisons
from analytics.services.ranking import ranking_of
from analytics.services.recomputation import latest_computation, measures_of
from analytics.services.verdicts import pair_estimates, reported_of
from console.api.common import (
    OLD_NAMES_OF_RUNS,
    ComputationKey,
    MeasureRequest,
    NegatedBoolean,
    OfComputation,
    PairRequest,
    query_of,
)
from console.api.serializers.comparisons import ComparisonAnswer, EstimateClaimAnswer, PairAnswer
from console.api.serializers.results import (
    MeasuresAnswer,
    MethodField,
    RankingAnswer,
)
from console.campaigns import campaign_of, drawn_campaign
from console.claims import ClaimRequest, claim_fields, comparisons_of
from console.researcher.prose import always_words, variance_words
from judging.models import Campaign
from judging.services.access import ResearchersOnly
from sampling.design_fields import LONGEST_MEASURE
from sampling.measures.registry import parse_measure
from sampling.measures.scoring import measure_on_scale

MEASURE = serializers.CharField(max_length=LONGEST_MEASURE)


class MeasuresView(APIView):
    """The measures that the campaign has numbers in, and the computation that these are from."""

    permission_classes = (ResearchersOnly,)

    @extend_schema(operation_id="measures_list", responses=MeasuresAnswer)
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        row = drawn_campaign(campaign_id)
        names, gains = measures_of(row), row.scale.gains()
        body = {
            "campaign": row.pk,
            "measures": [
                {
                    "name": name,
                    "kind": parse_measure(name).kind.key,
                    "ir_measures": measure_on_scale(name, gains, row.scale.relevant_grade).ir_measures,
                    "is_usual": name == names[0],
                }
                for name in names
            ],
            "computation": latest_computation(campaign=row),
        }
        return Response(MeasuresAnswer(body).data)


@dataclass(frozen=True)
class EstimateClaims:
    """What both claims say of a stored number; p is adjusted in the family where it is a difference to report."""

    family: str
    test: ClaimTest
    other: ClaimTest


class EstimatesView(OfComputation):
    """The estimates of a computation: every run (`pairs=false`) and every pair of runs (`pairs=true`), every method."""

    serializer_class = EstimateClaimAnswer
    queryset = Estimate.objects.none()
    filter_fields = {
        "computation": ("computation_id", ComputationKey()),
        "measure": ("measure", MEASURE),
        "method": "method",
        "run": "run__run_id",
        "against": "run_b__run_id",
        "pairs": ("run_b__isnull", NegatedBoolean(help_text="Only pairs of runs, or only single runs")),
        **{name: ("", field) for name, field in claim_fields().items()},
    }
    old_filters = OLD_NAMES_OF_RUNS
    default_order = "measure,method"  # with the primary key at the end: the order of an index

    def get_queryset(self) -> QuerySet[Any]:
        return super().get_queryset().select_related("run", "run_b")

    @extend_schema(operation_id="estimates_list")
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []
        among = _by_measure(request, campaign_of(campaign_id), page)
        for estimate in page:
            comparisons = among(estimate.measure)
            estimate.claims = EstimateClaims(comparisons.family.name, *comparisons.tests(estimate))
        return self.get_paginated_response(EstimateClaimAnswer(page, many=True).data)


def _by_measure(request: Request, row: Campaign, page: Sequence[Any]) -> Callable[[str], Comparisons]:
    """Return the comparisons of a page of estimates by measure, with the claim and the family of the query."""
    named = {name: request.query_params[name] for name in claim_fields() if name in request.query_params}
    asked = ClaimRequest(data=named, context={"campaign": row})
    asked.is_valid(raise_exception=True)
    return functools.cache(
        lambda measure: comparisons_of(row, page[0].computation, measure, **asked.validated_data)
    )


@dataclass(frozen=True)
class Pair:
    """A stored difference with both claims of it."""

    estimate: Estimate
    compared: PairComparison


class ComparisonsView(OfComputation):
    """All pairs of runs in one measure: corrected difference, both claims, p adjusted in a family, a sentence."""

    serializer_class = PairAnswer
    queryset = Estimate.objects.none()
    filter_fields = {
        "computation": ("computation_id", ComputationKey()),
        "measure": (
            "measure",
            serializers.CharField(
                max_length=LONGEST_MEASURE, help_text="By default the measure of the newest draw"
            ),
        ),
        "run": "run__run_id",
        "against": "run_b__run_id",
        **{name: ("", field) for name, field in claim_fields().items()},
    }
    old_filters = OLD_NAMES_OF_RUNS

    def get_queryset(self) -> QuerySet[Any]:
        rows = super().get_queryset().filter(method=REPORTED.key, run_b__isnull=False)
        if "measure" not in self.request.query_params:
            rows = rows.filter(measure=measures_of(drawn_campaign(self.kwargs["campaign_id"]))[0])
        return rows.select_related("run", "run_b")

    @extend_schema(operation_id="comparisons_list")
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        row = drawn_campaign(campaign_id)
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset())) or []
        among = _by_measure(request, row, page)
        pairs = [Pair(estimate, among(estimate.measure).of(estimate)) for estimate in page]
        return self.get_paginated_response(PairAnswer(pairs, many=True).data)


class PairClaimRequest(ClaimRequest, PairRequest):
    """Of which two runs, in which measure, with which claim."""


class ComparisonView(APIView):
    """One pair of runs: `run` minus `against` by every method, with both claims and a verdict."""

    permission_classes = (ResearchersOnly,)
    query_serializer = PairClaimRequest

    @extend_schema(operation_id="comparison_retrieve", responses=ComparisonAnswer)
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        row = drawn_campaign(campaign_id)
        sent = query_of(PairClaimRequest, request, row)
        return Response(ComparisonAnswer(_comparison(row, **sent)).data)


def _comparison(row: Campaign, measure: str, run: Any, against: Any, **choice: str) -> dict[str, Any]:
    computed = latest_computation(campaign=row)
    estimates = pair_estimates(computed, measure, run, against)
    corrected = reported_of(estimates)
    among = comparisons_of(row, computed, measure, **choice)
    compared = among.of(corrected) if corrected else None
    return {
        "campaign": row.pk,
        "computation": computed,
        "measure": measure,
        "run": run.run_id,
        "against": against.run_id,
        "verdict": sentence(compared) if compared else "",
        "compared": compared,
        "n_compared": among.n_family,
        "always": always_words(
            corrected,
            computed,
            is_open=row.state == Campaign.State.OPEN,
            significant=compared is not None and compared.test.significant,
        ),
        "variance": variance_words(corrected),
        "forbidden": what_forbids(newest_answers(row)),
        "estimates": estimates,
    }


class RankingRequest(ClaimRequest, MeasureRequest):
    method = MethodField(ranked_methods, default=REPORTED.key)


class RankingView(APIView):
    """The ranking of the runs and its uncertainty: the chance of every rank, and the interval of the whole ranking."""

    permission_classes = (ResearchersOnly,)
    query_serializer = RankingRequest

    @extend_schema(operation_id="ranking_retrieve", responses=RankingAnswer)
    def get(self, request: Request, campaign_id: uuid.UUID) -> Response:
        row = drawn_campaign(campaign_id)
        sent = query_of(RankingRequest, request, row)
        computed = latest_computation(campaign=row)
        choice = {name: sent.pop(name) for name in claim_fields()}
        among = comparisons_of(row, computed, sent["measure"], **choice)
        ranking = ranking_of(computation=computed, claim=among.claim, among=among.family.ranked_runs, **sent)
        body = {
            **{name: getattr(ranking, name) for name in ("measure", "method", "runs", "tau", "refusal")},
            **{
                name: getattr(ranking, name)
                for name in ("n_pairs", "n_apart", "n_apart_max_t", "n_unknown", "n_few")
            },
            "claim": among.claim.key,
            "family": among.family.name,
            "n_family": among.n_family,
            "n_significant": among.n_significant,
            "campaign": row.pk,
            "computation": computed,
            "left_out": [{"run": run, "reason": reason} for run, reason in ranking.left_out],
        }
        return Response(RankingAnswer(body).data)
