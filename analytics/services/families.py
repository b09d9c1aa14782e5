"""Families of comparisons: what the first draw was made for, what was declared since, and what a request names."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db import transaction
from django.db.models import BooleanField, ExpressionWrapper, OuterRef, Q, Subquery
from django.db.models.functions import JSONObject

from analytics.estimation.claims import LIKE_THESE, QUESTION, THESE, Claim, Family, family_of
from analytics.models import ComparisonFamily
from judging.models import Campaign, Run
from judging.refusal import Refused
from sampling.design_options import WHOLE_TOPICS
from sampling.models import Draw
from touchstone.models import User, record

DECLARED = "declared the family of comparisons"


class FamilyRefused(Refused):
    title = "This is no family of comparisons"


def family_columns() -> dict[str, Any]:
    """Return what a query of campaigns may read at once, so that the default family takes no statement of its own."""
    first = Draw.objects.filter(campaign=OuterRef("pk"), batch=1)
    rows = ComparisonFamily.objects.filter(campaign=OuterRef("pk")).order_by("-id")
    row = JSONObject(name="name", runs="runs", baseline="baseline", late=_late("declared_at"))
    question = JSONObject(
        question="question", parameters="parameters", created_at="created_at", late=_late("created_at")
    )
    return {
        "first_draw": Subquery(first.values(told=question)[:1]),
        "newest_family": Subquery(rows.values(told=row)[:1]),
    }


def _late(since: str) -> ArraySubquery:
    """Return the tags of runs that came after that time; one may be the tag of a run that was set aside."""
    runs = Run.objects.filter(collection=OuterRef("campaign__collection"), created_at__gt=OuterRef(since))
    return ArraySubquery(runs.order_by("run_id").values("run_id"))


def _of_then(family: Family, late: Sequence[str]) -> Family:
    """Return the family without the tags that later runs have now: they join none, whatever they are called."""
    if family.ranked_runs.isdisjoint(late):
        return family
    if family.baseline in late:
        return Family(family.name, ())
    runs, pooled = (tuple(run for run in some if run not in late) for some in (family.runs, family.pooled))
    return Family(family.name, runs, family.baseline, pooled)


def _first_draw(campaign: Any) -> dict[str, Any] | None:
    if hasattr(campaign, "first_draw"):
        known: dict[str, Any] | None = campaign.first_draw
        return known
    found: dict[str, Any] | None = (
        campaign.draws.filter(batch=1)
        .values("question", "parameters", "created_at", late=_late("created_at"))
        .first()
    )
    return found


def question_family(campaign: Campaign) -> Family:
    """Return the comparisons that the first draw was made for, among the runs of that time.

    Of a pair that pair, of candidates each against the baseline, else every pair: of the runs that are ranked, or that
    were pooled. A later run joins none; but where no run was there to be asked about, as with imported judgments, they
    are all that the question can be about.
    """
    first = _first_draw(campaign)
    if first is None:
        return Family(QUESTION, ())
    named = tuple(first["parameters"].get("runs") or ())
    if not first["parameters"].get("pooled"):
        return _family_among(first["question"], named, tuple(_runs_of_then(campaign, first)))
    return _of_then(
        _family_among(first["question"], named, tuple(first["parameters"]["pooled"])), first["late"]
    )


def _family_among(question: str, named: tuple[str, ...], pooled: tuple[str, ...]) -> Family:
    if question == "baseline" and named:
        return Family(QUESTION, named, named[0])
    if question == "ranking" and named:
        return Family(QUESTION, named)
    if question == "pair" and named:
        return Family(QUESTION, named, pooled=pooled)
    return Family(QUESTION, pooled)


def _runs_of_then(campaign: Campaign, first: dict[str, Any]) -> list[str]:
    """Return the runs that were there at the first draw; all, where none was."""
    was_there = ExpressionWrapper(Q(created_at__lte=first["created_at"]), output_field=BooleanField())
    rows = list(campaign.collection.runs.order_by("run_id").values_list("run_id", was_there))
    then = [run_id for run_id, was_so in rows if was_so]
    return then or [run_id for run_id, _ in rows]


def asked_family(campaign: Campaign, name: str = "", until: datetime | None = None) -> Family:
    """Return the family of a name, by default the declared one; ValueError says what is wrong with a name.

    A family that was declared (by `until`) keeps the runs that it had. Any other name is read among the runs of now.
    """
    if not name and until is None and hasattr(campaign, "newest_family"):
        told: dict[str, Any] | None = campaign.newest_family
        return _stored_family(campaign, **told) if told else question_family(campaign)
    rows = campaign.comparison_families.order_by("-id")
    rows = rows if until is None else rows.filter(declared_at__lte=until)
    rows = rows.filter(name=name) if name else rows
    row = rows.values("name", "runs", "baseline", late=_late("declared_at")).first()
    if row is not None:
        return _stored_family(campaign, **row)
    if name in ("", QUESTION):
        return question_family(campaign)
    return family_of(name, _runs(campaign))


def _stored_family(campaign: Campaign, name: str, runs: list[str], baseline: str, late: list[str]) -> Family:
    """Return a declared family, which keeps its runs; what was pooled for a question is known of the first draw."""
    pooled = question_family(campaign).pooled if name == QUESTION else ()
    return _of_then(Family(name, tuple(runs), baseline, pooled), late)


@transaction.atomic
def declare_family(*, campaign: Campaign, user: User | None, name: str) -> ComparisonFamily:
    """Declare among which comparisons p-values are adjusted from now on, with the runs of now; Refused if wrong."""
    fault = family_fault(campaign, name)
    if fault:
        raise FamilyRefused(fault)
    family = question_family(campaign) if name == QUESTION else family_of(name, _runs(campaign))
    made = ComparisonFamily.objects.create(
        campaign=campaign,
        name=name,
        runs=list(family.runs),
        baseline=family.baseline,
        declared_by=user,
    )
    record(DECLARED, campaign, actor=user, family=name, n_comparisons=len(family.pairs))
    return made


def family_fault(campaign: Campaign, name: str) -> str:
    """Return why a name cannot be declared a family now; empty where it can."""
    try:
        if name != QUESTION:
            family_of(name, _runs(campaign))
    except ValueError as fault:
        return str(fault)
    return ""


def _runs(campaign: Campaign) -> list[str]:
    return list(campaign.collection.runs.order_by("run_id").values_list("run_id", flat=True))


def default_claim(campaign: Campaign) -> Claim:
    """Return what is claimed unless something else is asked for: topics like these.

    A sample of whole topics answers for the topics that it was drawn from, and these are what it was drawn to know.
    """
    known = getattr(campaign, "topic_selection", None)
    if known is None:
        known = campaign.draws.values_list("parameters__topic_selection", flat=True).first()
    return THESE if known == WHOLE_TOPICS else LIKE_THESE
