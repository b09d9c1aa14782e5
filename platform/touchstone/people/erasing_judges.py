"""Who judged in a closed campaign is taken out of it: judgments and leases go to stand-ins, accounts without log-in.

Numbers stay as they are. What the person's own rows then say is that they were in the campaign, and not what they
judged. `touchstone_erase_judges`, a function of the owner for workers alone, moves the rows, writes down the hashes of
those that are sealed, and forgets the keys of the campaign's releases. All of it happens, or nothing.
"""

import random
import secrets
from dataclasses import dataclass

from django.contrib.auth.hashers import make_password
from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from analytics.models import Release
from analytics.releases.services.releasing import settle_ended
from judging.models import Assessor, Campaign, Judgment, Lease
from judging.services.errors import Refused
from touchstone import jobs
from touchstone.models import Event, IdempotentRequest, Job, User, record
from touchstone.people.erasing import CannotErase, Say, seal_up_to

KIND = "erase-judges"
STAND_IN = "stand-in-"
JUDGMENTS, EVENTS = Judgment._meta.db_table, Event._meta.db_table


class CannotEraseJudges(Refused):
    status = 409
    title = "Who judged cannot be erased now"


@dataclass(frozen=True)
class ErasedJudges:
    """How many people are no longer named, and of how many judgments."""

    n_people: int
    n_judgments: int


def judges_of(campaign: Campaign) -> QuerySet[Assessor]:
    """Return the people who have judged in the campaign, or had something to judge; machines are no people."""
    given = Exists(Lease.objects.filter(assessor=OuterRef("pk")))
    judged = Exists(Judgment.objects.filter(assessor=OuterRef("pk")))
    people = campaign.assessors.exclude(kind=Assessor.Kind.MACHINE)
    return people.exclude(_is_stand_in()).filter(given | judged)


def _is_stand_in() -> Q:
    return Q(user__username__startswith=STAND_IN, user__is_active=False)


def why_not(campaign: Campaign) -> str:
    """Return why nobody can be erased from the campaign now; empty where that can be done."""
    if campaign.state != Campaign.State.CLOSED:
        return "the campaign is not closed: close it first"
    if Release.objects.filter(campaign=campaign, state=Release.State.BUILDING).exists():
        return "a release of it is being made: wait for it, or cancel it"
    if not judges_of(campaign).exists():
        return "nobody is named by its judgments"
    return ""


def queue_erasing(*, campaign: Campaign, actor: User) -> Job:
    """Queue the job that erases who judged, as workers alone may do that; once while one is waiting."""
    settle_ended()
    refusal = why_not(Campaign.objects.get(pk=campaign.pk))
    if refusal:
        raise CannotEraseJudges(refusal)
    key = f"{KIND}:{campaign.pk}"
    made = jobs.enqueue(kind=KIND, payload={"campaign": str(campaign.pk)}, active_key=key, user=actor)
    return made or Job.objects.get(active_key=key, state__in=Job.ACTIVE)


def erase_judges(*, campaign: Campaign, actor: User | None, say: Say = lambda words: None) -> ErasedJudges:
    """Give the judgments of a closed campaign to stand-ins; nobody can say afterwards who gave which.

    Raises
    ------
    CannotEraseJudges
        The campaign is not closed, a release is being made, nobody is named any more, or rows cannot be sealed.
    """
    with transaction.atomic():
        settle_ended()
        row = Campaign.objects.select_for_update().get(pk=campaign.pk)
        refusal = why_not(row)
        if refusal:
            raise CannotEraseJudges(refusal)
        people = list(judges_of(row).select_related("user"))
        users = [one.user_id for one in people]
        _seal(row, people, say)
        random.SystemRandom().shuffle(people)  # or the order of new ids would tell
        stand_ins = _stand_ins(row, people)
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT set_config('lock_timeout', '0', true), touchstone_erase_judges(%s, %s, %s)",
                [row.pk, [one.pk for one in people], [one.pk for one in stand_ins]],
            )
            n = int(cursor.fetchone()[1])
        IdempotentRequest.objects.filter(user__in=users).delete()
        record("erased who judged", row, actor=actor, n_people=len(people), n_judgments=n)
    return ErasedJudges(len(people), n)


def _seal(campaign: Campaign, people: list[Assessor], say: Say) -> None:
    """Have all rows sealed that are about to change: the ledger must know them as they were."""
    judgments = Judgment.objects.filter(assessor__in=people)
    subjects = [f"campaign:{campaign.pk}", *(f"assessor:{one.pk}" for one in people)]
    newest = {JUDGMENTS: judgments, EVENTS: Event.objects.filter(subject__in=subjects)}
    try:
        for table, rows in newest.items():
            last = rows.order_by("-pk").values_list("pk", flat=True).first()
            if last is not None:
                seal_up_to(table, last, say)
    except CannotErase as refusal:
        raise CannotEraseJudges(str(refusal)) from refusal


def _stand_ins(campaign: Campaign, people: list[Assessor]) -> list[Assessor]:
    """Return an assessor for each, with the same trust and counters, under a closed account without a password."""
    users = User.objects.bulk_create(
        User(username=f"{STAND_IN}{secrets.token_hex(8)}", password=make_password(None), is_active=False)
        for _ in people
    )
    return Assessor.objects.bulk_create(
        Assessor(
            campaign=campaign,
            user=user,
            tier=person.tier,
            kind=person.kind,
            status=person.status,
            team=person.team,
            n_judged=person.n_judged,
            n_failed=person.n_failed,
        )
        for user, person in zip(users, people, strict=True)
    )
