"""Requests for analyses of a campaign's judgments, checked before a service sees them; and the answers."""

from typing import Any

from django.urls import reverse
from rest_framework import serializers

from analytics.estimation.claims import CLAIMS, Claim, claim_of
from analytics.services.analyses import ANALYSES, AnalysisSubject, analysis_of, under_claim
from analytics.services.analyses import AnalysisState as FoundAnalysis
from analytics.services.analyses.papers import under_conditions
from analytics.services.assumptions import QUESTIONS, newest_answers, what_forbids
from analytics.services.families import asked_family, default_claim
from analytics.services.plan_terms import USUAL_POWER, TermsRefused, terms_of
from analytics.services.recomputation import measures_of
from analytics.services.reuse import Answer, ReuseQuestion
from analytics.services.top_up import TopUpAnswer
from console.claims import claim_fields
from judging.models import Campaign
from judging.serializers.strict import Finite, Strict, StrictQuery, Word
from sampling.design_fields import LONGEST_MEASURE, MOST_ITEMS
from sampling.frames import newest_draw
from sampling.measures.registry import (
    WrongKind,
    nearest_sum,
    parse_linear,
    parse_measure,
    usual_spelling,
)


class ReuseRequest(StrictQuery):
    """The run, the linear measure, the run to compare with if any, and the half-width."""

    run = Word(max_length=200)
    against = Word(max_length=200, default="")
    measure = Word(max_length=LONGEST_MEASURE, default="")
    half_width = Finite(min_value=0.0, max_value=1e12, allow_null=True, default=None)

    def validate_run(self, run_id: str) -> str:
        return self._known_run(run_id)

    def validate_against(self, run_id: str) -> str:
        return self._known_run(run_id) if run_id else ""

    def _known_run(self, run_id: str) -> str:
        if not self.context["campaign"].collection.runs.filter(run_id=run_id).exists():
            raise serializers.ValidationError(f"the collection has no run {run_id!r}")
        return run_id

    def validate_measure(self, name: str) -> str:
        """Return the measure; unnamed, that of the campaign's newest batch, or for a ratio DCG to its cutoff."""
        if not name:
            draw = newest_draw(self.context["campaign"])
            return nearest_sum(draw.parameters["measure"]).name if draw else "DCG@10"
        try:
            return parse_linear(name).name
        except WrongKind as error:
            noun = parse_measure(name).kind.noun
            reason = f"{name} is {noun}; choose DCG or P with its cutoff: the same documents affect it"
            raise serializers.ValidationError(reason) from error
        except ValueError as error:
            raise serializers.ValidationError(str(error)) from error

    def validate(self, sent: dict[str, Any]) -> dict[str, Any]:
        if sent["run"] == sent["against"]:
            raise serializers.ValidationError({"against": ["both runs are the same: choose another run"]})
        measure = sent["measure"] or self.validate_measure("")
        return {**sent, "asked": ReuseQuestion(sent["run"], measure, sent["against"])}


class ReuseDraw(ReuseRequest):
    """The budget of the top-up that was shown."""

    budget = serializers.IntegerField(min_value=1, max_value=MOST_ITEMS)


def reuse_json(
    campaign: Campaign, asked: ReuseQuestion, answer: Answer, target: float | None, top_up: TopUpAnswer
) -> dict[str, Any]:
    return {
        "campaign": str(campaign.pk),
        "run": asked.run,
        "against": asked.against or None,
        "measure": asked.measure,
        **answer.as_json(),
        "wanted_half_width": target,
        "lacking": top_up.lacking.as_json() if top_up.lacking else None,
        "lacking_refusal": top_up.refusal,
        "lacking_is_being_computed": top_up.job is not None,
        "draws": reverse("console:api-draws", args=[campaign.pk]),
    }


class AnalysisRequest(Strict):
    """The analysis, the measure and the two runs; claim and family where the result depends on them."""

    what = serializers.ChoiceField([one.key for one in ANALYSES])
    measure = Word(max_length=LONGEST_MEASURE, default="")
    run = Word(max_length=200, default="")
    against = Word(max_length=200, default="")
    claim, family = (claim_fields()[name] for name in ("claim", "family"))

    def validate_measure(self, name: str) -> str:
        known, asked = measures_of(self.context["campaign"]), usual_spelling(name)
        if name and asked not in known:
            raise serializers.ValidationError(
                f"this campaign has numbers in {', '.join(known)}; got {name!r}"
            )
        return asked

    def validate(self, sent: dict[str, Any]) -> dict[str, Any]:
        analysis = analysis_of(sent["what"])
        named = {name: sent[name] for name in ("run", "against") if sent[name]}
        if analysis.no_runs and named:
            raise serializers.ValidationError({name: [analysis.no_runs] for name in named})
        claim = sent.pop("claim", None)
        choice = {name: value for name, value in (("claim", claim), ("family", sent["family"])) if value}
        if analysis.no_claim and choice:
            raise serializers.ValidationError({name: [analysis.no_claim] for name in choice})
        try:
            if sent["family"]:
                asked_family(self.context["campaign"], sent["family"])
        except ValueError as fault:
            raise serializers.ValidationError({"family": [str(fault)]}) from fault
        if analysis.has_usual_measure and not sent["measure"]:
            sent["measure"] = measures_of(self.context["campaign"])[0]
        if not analysis.no_runs and (wrong := self._wrong_fields(sent)):
            raise serializers.ValidationError(wrong)
        made = claim_of(claim) if claim else default_claim(self.context["campaign"])
        return {"wanted": AnalysisSubject(**sent), "claim": made}

    def _wrong_fields(self, sent: dict[str, Any]) -> dict[str, list[str]]:
        """Return what the job could not work with: a measure that it cannot parse, and runs that are not two."""
        wrong = {}
        try:
            parse_measure(sent["measure"])
        except ValueError:  # unnamed: the names of others were checked
            wrong["measure"] = ["choose a measure"]
        for name in ("run", "against"):
            if not sent[name]:
                wrong[name] = ["choose a run"]
            elif not self.context["campaign"].collection.runs.filter(run_id=sent[name]).exists():
                wrong[name] = [f"the collection has no run {sent[name]!r}"]
        if sent["run"] and sent["run"] == sent["against"]:
            wrong.setdefault("against", ["both runs are the same: choose another run"])
        return wrong


class ConditionsRequest(Strict):
    """The answers to the three questions (`analytics.services.assumptions.QUESTIONS`)."""

    same_judges = serializers.BooleanField()
    same_period = serializers.BooleanField()
    blind_to_system = serializers.BooleanField()


def conditions_json(campaign: Campaign) -> dict[str, Any]:
    answers = newest_answers(campaign)
    return {
        "questions": {question.name: question.words for question in QUESTIONS},
        "answers": {question.name: getattr(answers, question.name) for question in QUESTIONS}
        if answers
        else None,
        "answered_at": answers.answered_at if answers else None,
        "answered_by": answers.answered_by.get_username() if answers and answers.answered_by else None,
        "refused": what_forbids(answers) or None,
    }


class PlannerRequest(StrictQuery):
    """The question of the plan and the costs; power in percent. Fields that are not sent have their defaults."""

    measure = Word(max_length=LONGEST_MEASURE, default="")
    run = Word(max_length=200, default="")
    against = Word(max_length=200, default="", allow_blank=True)
    cost_judgment = Finite(min_value=1e-6, max_value=1e9, default=None, allow_null=True)
    cost_gold = Finite(min_value=1e-6, max_value=1e9, default=None, allow_null=True)
    difference = Finite(min_value=1e-9, max_value=1e6, default=None, allow_null=True)
    power = Finite(min_value=50.0, max_value=99.9, default=100 * USUAL_POWER)
    money = Finite(min_value=0.0, max_value=1e12, default=None, allow_null=True)
    family = claim_fields()["family"]
    claim = serializers.ChoiceField(
        [claim.key for claim in CLAIMS],
        default="",
        allow_blank=True,
        help_text="By default topics-like-these; of a sample of whole topics these-topics",
    )

    def validate(self, sent: dict[str, Any]) -> dict[str, Any]:
        asked = {**sent, "power": sent["power"] / 100, "measures": self.context.get("measures") or ()}
        try:
            return {"terms": terms_of(self.context["campaign"], **asked)}
        except TermsRefused as refusal:
            raise serializers.ValidationError({refusal.field: [refusal.reason]}) from refusal


def analysis_json(
    campaign: Campaign, subject: AnalysisSubject, analysis: FoundAnalysis, claim: Claim
) -> dict[str, Any]:
    answers = newest_answers(campaign)
    result = under_claim(analysis.result, claim) if analysis.result else None
    has_claim = not analysis_of(subject.what).no_claim
    return {
        "campaign": str(campaign.pk),
        "what": subject.what,
        "measure": subject.measure,
        "run": subject.run or None,
        "against": subject.against or None,
        "claim": claim.key if has_claim else None,
        "family": asked_family(campaign, subject.family).name if has_claim else None,
        "result": under_conditions(result, answers) if result else None,
        "is_current": analysis.is_current,
        "is_being_computed": analysis.active is not None,
        "failed": analysis.failed.error if analysis.failed else None,
    }
