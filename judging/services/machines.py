"""Machine assessors: programs that judge under the contract of `assign`, many items at a time.

A machine is a judge like others and never the standard: the database refuses it the gold tier.
"""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection, transaction
from django.db.models.functions import Now

from judging.models import Assessor, Campaign, Judgment, Lease, MachineCall, Slot
from judging.prompts import DEFAULT_PROMPT
from judging.services import assign
from judging.services.claims import Claim
from judging.services.errors import NotAMachine, Refused, UserNameTaken
from judging.services.item_frame import prompt_texts
from judging.services.leases import ASSESSOR_LOCK, OPEN
from touchstone.models import User, record

MOST_AT_ONCE = assign.MOST_AHEAD
Call = Mapping[str, Any]  # the fields of a MachineCall but its assessor; the lease is its "token"


def add_machine(*, campaign: Campaign, username: str, actor: User | None = None) -> Assessor:
    """Return the machine assessor of this user name, made if there is none; nobody can log in as it.

    It is asked for no consent: whoever starts the machine answers for it.
    """
    with transaction.atomic():
        user, is_new = User.objects.get_or_create(username=username)
        if is_new:
            user.set_unusable_password()
            user.save(update_fields=["password"])
        assessor, is_new = Assessor.objects.get_or_create(
            campaign=campaign,
            user=user,
            defaults={"kind": Assessor.Kind.MACHINE, "tier": Assessor.Tier.BRONZE, "consented_at": Now()},
        )
        if assessor.kind != Assessor.Kind.MACHINE:
            raise UserNameTaken(f"{username} is a {assessor.kind} assessor of this campaign")
        if is_new:
            record("added machine", campaign, actor=actor, assessor=user.pk)
    return assign.assessor_of(user=user, campaign_id=campaign.pk)


def instructions(*, assessor: Assessor) -> dict[str, Any]:
    """Return what a machine must know before it judges: the scale, the guidelines, the prompt."""
    check_is_machine(assessor)
    campaign = assessor.campaign
    return {
        "campaign": campaign.name,
        "grades": [{"value": grade.value, "label": grade.label} for grade in campaign.scale.grades.all()],
        "guidelines": campaign.guidelines,
        "prompt": campaign.machine_prompt or DEFAULT_PROMPT,
        "lease_seconds": campaign.lease_seconds,
    }


def texts_of(*, claim: Claim, campaign: Campaign, longest: int | None = None) -> dict[uuid.UUID, str]:
    """Return by item what is to be judged."""
    return prompt_texts([held.item_id for held in claim.items], campaign, longest)


def save_batch(
    *, assessor: Assessor, submissions: Sequence[Mapping[str, Any]], calls: Sequence[Call] = ()
) -> tuple[list[Judgment | Refused], list[bool]]:
    """Store judgments, each by itself, and what the machine was asked for them.

    Returns for each judgment its row or why it was refused, and for each call whether it was stored: the call must
    name a lease of this assessor. Sent twice, a judgment and the calls of its lease are stored once.
    """
    if calls:
        check_is_machine(assessor)
    tokens = {call["token"] for call in calls}
    mine = set(Lease.objects.filter(assessor=assessor, token__in=tokens).values_list("token", flat=True))
    waiting = [call for call in calls if call["token"] in mine]
    outcomes = []
    for submission in submissions:
        token = submission["token"]
        outcomes.append(_save(assessor, submission, [call for call in waiting if call["token"] == token]))
        waiting = [call for call in waiting if call["token"] != token]
    _store_calls(assessor, waiting)
    return outcomes, [call["token"] in mine for call in calls]


def give_back(*, assessor: Assessor, tokens: Sequence[uuid.UUID]) -> int:
    """End leases that a machine will not use, so that others need not wait for them; return how many."""
    check_is_machine(assessor)
    held = Slot.objects.filter(assessor=assessor, state=Slot.State.LEASED, token__in=tokens)
    return int(held.update(**OPEN))


def check_is_machine(assessor: Assessor) -> None:
    if assessor.kind != Assessor.Kind.MACHINE:
        raise NotAMachine


def _save(assessor: Assessor, submission: Mapping[str, Any], calls: Sequence[Call]) -> Judgment | Refused:
    try:
        with transaction.atomic():
            # The same request may be under way a second time: of the two, one finds the judgment there.
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [ASSESSOR_LOCK, assessor.user_id])
            is_new = not Judgment.objects.filter(client_token=submission["client_token"]).exists()
            judgment = assign.submit(assessor=assessor, **submission)
            if is_new:
                _store_calls(assessor, calls)
            return judgment
    except Refused as refusal:
        _store_calls(assessor, calls)  # they were made, and cost what they cost
        return refusal


def _store_calls(assessor: Assessor, calls: Sequence[Call]) -> None:
    rows = [
        MachineCall(
            assessor=assessor,
            lease_token=call["token"],
            **{name: value for name, value in call.items() if name != "token"},
        )
        for call in calls
    ]
    MachineCall.objects.bulk_create(rows)
