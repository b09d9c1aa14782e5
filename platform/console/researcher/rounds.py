"""Two rounds: a run in one campaign or period against a run in another."""

import uuid
from collections.abc import Mapping
from typing import Any

from django.core.exceptions import BadRequest
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import urlencode
from django.views.decorators.http import require_GET, require_POST

from analytics.estimation.rounds import CLAIMS
from analytics.services.rounds import (
    CLAIM_WORDS,
    ask_rounds,
    claims_in_order,
    find_rounds,
    forbidden_rounds,
    is_answered,
)
from analytics.services.rounds.question import AUDITS
from console.api.serializers.rounds import RoundsRequest, state_json
from judging.models import Campaign, Run
from judging.services.access import researchers_only
from sampling.measures.kinds import Linear
from sampling.measures.registry import suggested_measures
from touchstone.models import User, user_of

FIELDS = (
    "first",
    "first_run",
    "until",
    "second",
    "second_run",
    "since",
    "measure",
    "claim",
    "audit",
)
LABELS = {
    "first": "First campaign",
    "first_run": "First run",
    "until": "First round ends before",
    "second": "Second campaign",
    "second_run": "Second run",
    "since": "Second round starts",
    "measure": "Measure",
    "claim": "Claim",
    "audit": "Assessor errors",
}
PLACES = {  # where a field of the form stands in a request
    "first": ("first", "campaign"),
    "first_run": ("first", "run"),
    "until": ("first", "until"),
    "second": ("second", "campaign"),
    "second_run": ("second", "run"),
    "since": ("second", "since"),
}
NEEDED = ("first", "first_run", "second", "second_run", "measure")


@require_GET
@researchers_only
def rounds(request: HttpRequest) -> HttpResponse:
    """What is asked of two rounds, and what is known of it."""
    user = user_of(request)
    given = _form_fields(request.GET)
    context: dict[str, Any] = {
        "given": given,
        "campaigns": _campaigns(user),
        "runs": _runs(user, given),
        "measures": suggested_measures((Linear,)),
        "claims": [(claim, CLAIM_WORDS[claim]) for claim in CLAIMS],
        "audits": [(key, words[:1].upper() + words[1:]) for key, words in AUDITS.items()],
    }
    if all(given[name] for name in NEEDED):
        context |= _answer(user, given)
    return render(
        request, "console/researcher/rounds.html", context, status=400 if context.get("errors") else 200
    )


@require_POST
@researchers_only
def compute(request: HttpRequest) -> HttpResponse:
    """Have the rounds compared by a job."""
    given, user = _form_fields(request.POST), user_of(request)
    sent = _request(given, user)
    if not sent.is_valid():
        raise BadRequest(str(sent.errors))
    job = ask_rounds(**sent.validated_data, user=user)
    back = f"{reverse('console:rounds')}?{urlencode({name: text for name, text in given.items() if text})}"
    return redirect(f"{reverse('job', args=[job.pk])}?{urlencode({'back': back})}")


def _answer(user: User, given: Mapping[str, str]) -> dict[str, Any]:
    sent = _request(given, user)
    if not sent.is_valid():
        return {"errors": _faults(sent.errors)}
    asked = sent.validated_data
    found = find_rounds(asked["question"])
    first, second = asked["first"], asked["second"]
    context: dict[str, Any] = {"found": found, "first": first, "second": second}
    result = state_json(found)
    if result is None:
        return context
    claims = [one | {"words": CLAIM_WORDS[one["claim"]]} for one in claims_in_order(result)]
    return context | {
        "result": result,
        "sides": [result["first"] | {"row": first}, result["second"] | {"row": second}],
        "shown_claims": claims,
        "forbidden": forbidden_rounds(first, second),
        "is_asked": is_answered(first, second),
    }


def _form_fields(sent: Mapping[str, str]) -> dict[str, str]:
    return {name: sent.get(name, "").strip() for name in FIELDS}


def _request(given: Mapping[str, str], user: User) -> RoundsRequest:
    data: dict[str, Any] = {"first": {}, "second": {}}
    for name, text in given.items():
        if not text:
            continue
        if name in PLACES:
            outer, inner = PLACES[name]
            data[outer][inner] = text
        else:
            data[name] = text
    return RoundsRequest(data=data, context={"user": user})


def _faults(errors: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the faults of a request by the fields of the form, with their labels."""
    found = []
    fields = {place: name for name, place in PLACES.items()}
    for outer, inside in errors.items():
        parts = inside.items() if isinstance(inside, dict) else [("", inside)]
        for inner, faults in parts:
            name = fields.get((outer, inner), outer)
            found.append(
                {"field": name, "label": LABELS.get(name, "This question"), "reason": str(faults[0])}
            )
    return found


def _campaigns(user: User) -> Any:
    drawn = Campaign.objects.visible_to(user).filter(draws__batch=1)
    return drawn.select_related("collection").order_by("-created_at", "pk")


def _runs(user: User, given: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the runs of the campaigns that are chosen; nothing where one is not there."""
    found = {}
    for name in ("first", "second"):
        key = _key(given[name])
        campaign = _campaigns(user).filter(pk=key).first() if key else None
        runs = Run.objects.filter(collection=campaign.collection) if campaign else Run.objects.none()
        found[name] = list(runs.values_list("run_id", flat=True))
    return found


def _key(text: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text)
    except ValueError:
        return None
