"""A plan as a program reads it, and as a table of text: the same numbers as on the page."""

from collections.abc import Iterator
from typing import Any

from analytics.estimation.estimate import Refusal
from analytics.estimation.wording import LEVEL
from analytics.planning.exact_gold import ExactGold, digits
from analytics.planning.purchases import Purchase
from analytics.services.planning import Plan

LINES = ("best", "gold_alone", "judgments_alone")


def plan_json(found: Plan) -> dict[str, Any]:
    """Return the plan as a program reads it."""
    terms, state = found.terms, found.state
    asked = {
        "measure": terms.measure,
        "run": terms.run,
        "against": terms.against or None,
        "claim": terms.claim.key,
        "family": terms.family.name if terms.family else None,
        "cost_per_judgment": terms.cost_judgment,
        "cost_per_gold": terms.cost_gold,
        "power": terms.power,
        "refusal": found.refusal or None,
    }
    if state is None:
        return asked
    tested = found.tested
    return {
        **asked,
        "n_family": tested.n if tested else None,
        "p": tested.p if tested else None,
        "p_adjusted": tested.p_adjusted if tested else None,
        "level": tested.level if tested else LEVEL,
        "difference": terms.difference,
        "half_width_now": state.half_width,
        "half_width_of_topics": state.half_width_of_topics,
        "half_width_wanted": found.wanted,
        "variance": {"drawing": state.drawing, "gold": state.gold, "topics": state.between},
        "informativeness": found.informativeness,
        "exact": _exact_json(found.exact, found.exact_sentence),
        "needed": _purchase_json(found.needed),
        "money_buys": _purchase_json(found.spent),
        "topics_needed": found.topics_needed,
        "papers": [
            {
                "method": one.name,
                "unit": one.unit,
                "bronze": one.plan.bronze,
                "gold": one.plan.gold,
                "cost": one.plan.cost,
            }
            for one in found.papers
        ],
        "papers_refusal": found.papers_refusal or None,
        "curve": [dict(zip(("money", *LINES), row, strict=True)) for row in found.curve],
    }


def _purchase_json(purchase: Purchase | Refusal | None) -> dict[str, Any] | None:
    if purchase is None:
        return None
    if isinstance(purchase, Refusal):
        return {"refusal": purchase.reason}
    names = ("items", "judgments", "gold", "cost", "half_width")
    return {"refusal": None, **{name: getattr(purchase, name) for name in names}}


def _exact_json(exact: ExactGold | None, sentence: str) -> dict[str, Any] | None:
    if exact is None:
        return None
    return {
        "sentence": sentence,
        "comes_first": exact.comes_first,
        "is_exact": exact.is_exact,
        "count": len(exact.documents),
        "awaited": exact.awaited,
        "cost": exact.cost,
        "n_weighed": exact.n_weighed,
        "half_width_these": exact.half_width_these,
        "half_width": exact.half_width,
        "documents": [{"topic": topic, "document": document} for topic, document in exact.documents],
    }


def plan_lines(found: Plan) -> Iterator[str]:
    """Yield the plan as lines of text, what comes first first."""
    terms, state = found.terms, found.state
    pair = f"{terms.run} against {terms.against}" if terms.against else terms.run
    yield f"{terms.measure} of {pair}, {terms.claim.label.lower()}"
    if state is None:
        yield f"No plan yet: {found.refusal}."
        return
    yield f"Half-width now: ± {digits(state.half_width)}"
    if found.tested:
        yield found.tested.sentence
    if state.has_topics:
        yield f"Of the choice of topics alone: ± {digits(state.half_width_of_topics)}"
    if found.exact and found.exact.comes_first:
        yield found.exact_sentence
    if isinstance(found.needed, Refusal):
        yield f"For a difference of {terms.difference:g}: {found.needed.reason}."
    elif found.needed is not None:
        yield f"For a difference of {terms.difference:g} with a power of {100 * terms.power:g} %: {found.needed.words}"
    if found.topics_needed:
        yield f"Or {found.topics_needed:,} topics in all, judged and audited as these are."
    if isinstance(found.spent, Refusal):
        yield f"With {terms.money:g}: {found.spent.reason}."
    elif found.spent is not None:
        yield f"With {terms.money:g}: {found.spent.words}"
    if found.exact and not found.exact.comes_first:
        yield found.exact_sentence
