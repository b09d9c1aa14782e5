"""What to buy next: more judgments or more gold, for which interval, at which cost. Answers at once."""

import uuid
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_GET, require_POST

from analytics.charts import Chart, curve
from analytics.estimation.claims import ALL, CLAIMS, QUESTION, claim_of
from analytics.estimation.estimate import Refusal
from analytics.planning.exact_gold import DEARER, digits
from analytics.planning.purchases import Purchase
from analytics.services.families import asked_family, default_claim, family_columns
from analytics.services.plan_terms import costs_of
from analytics.services.planning import Plan, plan
from analytics.services.recomputation import measures_of
from analytics.services.simulations import CARELESS_ASSESSORS, ask_simulation, newest_result
from console.api.serializers.analyses import PlannerRequest
from console.campaigns import drawn_campaign
from console.researcher.plots import plot_answer
from console.researcher.prose import variance_words
from judging.models import Campaign
from judging.services.access import researchers_only
from judging.spreadsheets import SheetWriter
from sampling.measures.registry import sums_among
from sampling.models import Audit, AuditTier
from sampling.strategies import CENSUS
from touchstone.models import user_of
from touchstone.replica import from_replica

FIELDS = (
    "measure",
    "run",
    "against",
    "cost_judgment",
    "cost_gold",
    "difference",
    "power",
    "money",
    "claim",
    "family",
)
SHOWN_DOCUMENTS = 100
LINES = ("Best split", "Gold labels only", "Judgments only")
TITLE = "Half-width by cost"


@require_GET
@researchers_only
@from_replica
def planner(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """What to buy next for a pair or a run: the page, by closed forms."""
    row = drawn_campaign(
        campaign_id, "draws", "collection__runs", "scale__grades", **family_columns(), **_plan_columns()
    )
    given = {name: request.GET.get(name, "").strip() for name in FIELDS}
    measures = measures_of(row)
    context: dict[str, Any] = {
        "campaign": row,
        "measures": sums_among(measures),
        "runs": row.collection.runs.all(),
        "costs_are_known": costs_of(row)[2],
        "claims": CLAIMS,
        "shown_documents": SHOWN_DOCUMENTS,
        "dearer": DEARER,
    }
    sent = PlannerRequest(data=_not_empty(given), context={"campaign": row, "measures": measures})
    if sent.is_valid():
        found = plan(campaign=row, terms=sent.validated_data["terms"])
        if "plot" in request.GET:
            return plot_answer(request, {"curve": lambda: None if found.refusal else _curve(found)})
        if request.GET.get("documents") == "csv":
            return _documents_csv(found)
        context |= {"plan": found, "given": _shown_terms(given, found), "shown": _plan_context(found)}
        context["claim"] = found.terms.claim
        context |= _tab_context(given) | _family_context(row, found, is_asked=bool(given["family"]))
        if found.state is not None:
            context["variance"] = _variance_words(found)
            context["careless"] = _careless(row)
    elif "plot" in request.GET:
        return plot_answer(request, {})
    else:
        # A claim or a family that is wrong has no field in which it could be corrected: the form begins without it.
        given |= dict.fromkeys({"claim", "family"} & set(sent.errors), "")
        context |= {"given": given, "errors": {name: found[0] for name, found in sent.errors.items()}}
        context["claim"] = claim_of(given["claim"]) if given["claim"] else default_claim(row)
        context |= _tab_context(given)
    is_wrong = "errors" in context and context["runs"].exists()
    return render(request, "console/researcher/planner.html", context, status=400 if is_wrong else 200)


def _plan_columns() -> dict[str, Any]:
    """Return what a query of campaigns reads at once of what a plan asks for."""
    censuses = Audit.objects.filter(campaign=OuterRef("pk"), strategy=CENSUS, tier=AuditTier.GOLD)
    return {"has_census": Exists(censuses), "careless": newest_result(CARELESS_ASSESSORS)}


@require_POST
@researchers_only
def simulate(request: HttpRequest, campaign_id: uuid.UUID) -> HttpResponse:
    """Have a job find what careless assessors would cost."""
    row = drawn_campaign(campaign_id)
    job = ask_simulation(campaign=row, what=CARELESS_ASSESSORS, user=user_of(request))
    back = urlencode({"back": reverse("console:planner", args=[row.pk])})
    return redirect(f"{reverse('job', args=[job.pk])}?{back}")


def _tab_context(given: dict[str, str]) -> dict[str, Any]:
    """Return what the tabs keep in their addresses: what was asked of claim and family."""
    asked = {name: given[name] for name in ("claim", "family") if given[name]}
    return {"asked": asked, "asked_choice": f"&{urlencode(asked)}" if asked else ""}


def _family_context(row: Campaign, found: Plan, *, is_asked: bool) -> dict[str, Any]:
    """Return the family of the pair with the other choices; nothing where no pair is compared."""
    if found.tested is None:
        return {}
    family = found.tested.family
    declared = asked_family(row).name if is_asked else family.name
    return {
        "family": family,
        "families": dict.fromkeys([declared, QUESTION, ALL]),
        "n_family": found.tested.n,
        "is_declared": family.name == declared,
    }


def _careless(row: Any) -> dict[str, Any] | None:
    """Return what the newest simulation says of careless assessors; None where there is none."""
    if row.careless is None or row.careless["result"] is None:
        return None
    made = row.careless["result"]
    widths = {name: digits(made[name]) for name in ("half_width", "careless_half_width")}
    return {**made, **widths, "simulated_at": datetime.fromisoformat(row.careless["at"])}


def _shown_terms(given: dict[str, str], plan: Plan) -> dict[str, str]:
    """Return what the form shows: what was typed, and else what was taken."""
    terms = plan.terms
    taken = {
        "measure": terms.measure,
        "run": terms.run,
        "against": terms.against,
        "cost_judgment": f"{terms.cost_judgment:g}",
        "cost_gold": f"{terms.cost_gold:g}",
        "difference": "" if terms.difference is None else f"{terms.difference:g}",
        "power": f"{100 * terms.power:g}",
        "money": "" if terms.money is None else f"{terms.money:g}",
        "claim": terms.claim.key,
    }
    return taken | {name: value for name, value in given.items() if value}


def _plan_context(plan: Plan) -> dict[str, Any]:
    """Return the numbers to read."""
    if plan.refusal or plan.state is None:
        return {}
    return {
        "curve": _curve(plan),
        "half_width": digits(plan.state.half_width),
        "half_width_of_topics": digits(plan.state.half_width_of_topics),
        "wanted": "" if plan.wanted is None else digits(plan.wanted),
        "exact": _exact(plan),
        "needed": _purchase(plan.needed),
        "spent": _purchase(plan.spent),
        "papers": [
            {
                "name": one.name,
                "words": one.words,
                "bronze": f"{one.plan.bronze:,.0f} {one.unit}",
                "gold": f"{one.plan.gold:,.0f}",
                "cost": _money(one.plan.cost),
            }
            for one in plan.papers
        ],
    }


def _purchase(purchase: Purchase | Refusal | None) -> dict[str, Any] | None:
    """Return a purchase to read."""
    if purchase is None:
        return None
    if isinstance(purchase, Refusal):
        return {"refusal": purchase.reason}
    return {
        "items": purchase.items,
        "judgments": purchase.judgments,
        "gold": purchase.gold,
        "money": _money(purchase.cost),
        "half_width": digits(purchase.half_width),
    }


def _money(amount: float) -> str:
    """Return an amount to read.

    >>> _money(1234.56), _money(0.5)
    ('1,235', '0.5')
    """
    return f"{amount:,.0f}" if amount >= 10 or amount == 0 else f"{amount:.2g}"


def _exact(plan: Plan) -> dict[str, Any] | None:
    """Return gold on named documents to read, with the first of them."""
    if plan.exact is None:
        return None
    return {
        "sentence": plan.exact_sentence,
        "comes_first": plan.exact.comes_first,
        "is_exact": plan.exact.is_exact,
        "is_open": plan.exact.is_open,
        "count": len(plan.exact.documents),
        "documents": plan.exact.documents[:SHOWN_DOCUMENTS],
    }


def _documents_csv(plan: Plan) -> HttpResponse:
    """Return the documents whose gold makes the number exact as a file; an empty one where none is missing."""
    answer = HttpResponse(content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = 'attachment; filename="gold-on-these-documents.csv"'
    writer = SheetWriter(answer)
    writer.writerow(["topic", "document"])
    for pair in plan.exact.documents if plan.exact else ():
        writer.writerow(pair)
    return answer


def _variance_words(plan: Plan) -> str:
    """Return where the variance comes from: for topics like these with the share of their choice."""
    state = plan.state
    if state is None or not state.has_topics:
        return variance_words(plan.estimate)
    parts = {
        "the choice of topics": state.between,
        "the gold audit": state.gold,
        "the draw of documents": state.drawing,
    }
    total = sum(parts.values())
    shares = [f"{100 * part / total:.0f} % from {name}" for name, part in parts.items() if part > 0]
    return f"Of this variance come {', '.join(shares)}."


def _curve(plan: Plan) -> Chart:
    money = [amount for amount, *_ in plan.curve]
    lines = {name: [row[1 + place] for row in plan.curve] for place, name in enumerate(LINES)}
    return curve(
        money, lines, TITLE, x_title="money spent from now on", target=plan.wanted, is_logarithmic=False
    )


def _not_empty(given: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in given.items() if value}
