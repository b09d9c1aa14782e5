"""People whom a crowd market sends: accounts without a person's name, and codes that say that work was done.

The market's name of a person stands in Participant and nowhere else: not in events, sessions, exports or logs.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from judging.models import Assessor, Campaign, Participant, Slot
from judging.services import assign
from judging.services.entry import propose_username
from judging.services.errors import (
    AssessorSuspended,
    CampaignNotOpen,
    ConsentMissing,
    EntryParametersUnclear,
    NoPlaceLeft,
    TrainingMissing,
)
from touchstone.models import User, record

# What markets use as names. A placeholder that the market did not fill in has other characters, braces or percent.
NAME = re.compile(r"[A-Za-z0-9._:@=-]{1,200}")
SPELLINGS = {
    "participant": ("PROLIFIC_PID", "participant"),
    "study": ("STUDY_ID", "study"),
    "session": ("SESSION_ID", "session"),
}
# Somebody who tests a link reads which of its parts is wrong.
MISSING = {
    "participant": _("The link does not say which participant this is."),
    "study": _("The link does not say which study this is."),
    "session": _("The link does not say which session this is."),
}
MALFORMED = {
    "participant": _("What the link says about the participant is not a name that markets give."),
    "study": _("What the link says about the study is not a name that markets give."),
    "session": _("What the link says about the session is not a name that markets give."),
}


@dataclass(frozen=True)
class Visitor:
    """Whom the market says it sends, for which task, in which of its sessions."""

    participant: str
    study: str
    session: str


def visitor(*, participant: str, study: str, session: str) -> Visitor:
    """Return the visitor if all three names look like names; else refuse without repeating what was sent."""
    values = {"participant": participant, "study": study, "session": session}
    for kind, value in values.items():
        if not value:
            raise EntryParametersUnclear(MISSING[kind])
        if not NAME.fullmatch(value):
            raise EntryParametersUnclear(MALFORMED[kind])
    return Visitor(**values)


def study_visitor(parameters: Mapping[str, str]) -> Visitor:
    """Return the visitor of a study link: PROLIFIC_PID, STUDY_ID, SESSION_ID or participant, study, session."""
    return visitor(
        **{
            kind: next((parameters[name] for name in names if parameters.get(name)), "")
            for kind, names in SPELLINGS.items()
        }
    )


def known_participant(*, campaign: Campaign, visitor: Visitor) -> Participant | None:
    """Return who came under this name before; an erased name is nobody's."""
    return (
        Participant.objects.select_related("assessor__user", "assessor__campaign")
        .filter(campaign=campaign, participant=visitor.participant)
        .first()
    )


def check_entry(*, campaign: Campaign, visitor: Visitor) -> Participant | None:
    """Return the participant if known; refuse a new one when the campaign is not open or wants no more judgments."""
    known = known_participant(campaign=campaign, visitor=visitor)
    if known is not None:
        return known
    if campaign.state != Campaign.State.OPEN:
        raise CampaignNotOpen
    if not campaign.slots.filter(purpose=Slot.Purpose.JUDGE).exclude(state=Slot.State.DONE).exists():
        raise NoPlaceLeft
    return None


def enter(*, campaign: Campaign, visitor: Visitor) -> Assessor:
    """Return the assessor of this participant: the same one each time, a new pseudonymous one the first time."""
    known = check_entry(campaign=campaign, visitor=visitor)
    if known is None:
        try:
            return _new_participant(campaign, visitor)
        except IntegrityError:  # the same person, in the same moment: the other request made the account
            known = known_participant(campaign=campaign, visitor=visitor)
            if known is None:
                raise
    Participant.objects.filter(pk=known.pk).update(study=visitor.study, session=visitor.session)
    return known.assessor


def _new_participant(campaign: Campaign, visitor: Visitor) -> Assessor:
    with transaction.atomic():
        user = User(username=propose_username(), role=User.Role.ASSESSOR)
        user.set_unusable_password()
        user.save(force_insert=True)
        assessor = Assessor.objects.create(
            campaign=campaign,
            user=user,
            tier=Assessor.Tier.BRONZE,
            quota=campaign.judgments_per_participant,
        )
        Participant.objects.create(
            campaign=campaign,
            assessor=assessor,
            participant=visitor.participant,
            study=visitor.study,
            session=visitor.session,
        )
        # Of the assessor, not of the campaign: hundreds of these would push all else off the manager's page.
        record("came from the market", assessor, actor=user)
    return assessor


# -- the end of the work --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Completion:
    """How far a participant is. Without a code there is a reason for none, or more to judge."""

    n_judged: int
    quota: int | None
    is_done: bool
    is_participant: bool
    code: str = ""
    url: str = ""
    obstacle: str = ""
    refusal: str = ""  # the type of the refusal whose title is the obstacle


def completion(*, assessor: Assessor) -> Completion:
    """Return the code if the work is done: the quota reached, or nothing left to judge and something judged."""
    participant = Participant.objects.filter(assessor=assessor).first()
    assessor.refresh_from_db(fields=["n_judged", "quota", "status"])
    campaign, obstacle, refusal = assessor.campaign, "", ""
    is_done = participant is not None and participant.completed_at is not None
    if not is_done:
        is_done, obstacle, refusal = _is_done(assessor)
    if is_done and participant is not None and participant.completed_at is None:
        _complete(participant)
    progress: dict[str, Any] = {"n_judged": assessor.n_judged, "quota": assessor.quota, "is_done": is_done}
    if participant is None or not is_done:
        reason: dict[str, Any] = {"obstacle": obstacle, "refusal": refusal}
        return Completion(**progress, **reason, is_participant=participant is not None)
    if campaign.entry != Campaign.Entry.HIT and campaign.completion_code:
        return Completion(
            **progress, is_participant=True, code=campaign.completion_code, url=campaign.completion_url
        )
    return Completion(**progress, is_participant=True, code=own_code(campaign, assessor.pk))


def _is_done(assessor: Assessor) -> tuple[bool, str, str]:
    """Return whether the work is done, else why it cannot go on: in words, and as the type of a refusal.

    Whether work is left, only a claim can tell.
    """
    if assessor.quota is not None and assessor.n_judged >= assessor.quota:
        return True, "", ""
    try:
        reason = assign.claim(assessor=assessor).reason
    except (ConsentMissing, TrainingMissing):
        return False, "", ""
    except AssessorSuspended as refusal:
        return False, refusal.title, type(refusal).__name__
    except CampaignNotOpen as refusal:
        # A closed campaign has no work left; what was judged by then is to be paid.
        return assessor.n_judged > 0, refusal.title, type(refusal).__name__
    return reason in ("no work", "quota") and assessor.n_judged > 0, "no work" if reason else "", ""


def _complete(participant: Participant) -> None:
    with transaction.atomic():
        first = Participant.objects.filter(pk=participant.pk, completed_at=None).update(completed_at=Now())
        if first:
            record("completed", participant.assessor, actor=participant.assessor.user)


def own_code(campaign: Campaign, assessor_id: int) -> str:
    """Return this assessor's code: 50 bits that only this installation can compute, easy to copy by hand."""
    key = hmac.digest(settings.SECRET_KEY.encode(), f"completion of {campaign.pk}".encode(), hashlib.sha256)
    digest = hmac.digest(key, str(assessor_id).encode(), hashlib.sha256)
    letters = base64.b32encode(digest).decode()[:10]
    return f"{letters[:5]}-{letters[5:]}"


def whose_codes(*, campaign: Campaign, codes: Iterable[str]) -> list[tuple[str, Participant | None]]:
    """Return beside each code the participant it belongs to; None: it is nobody's, so somebody made it up.

    Compared with the codes of all participants, done or not: a code is checked by whom it names, and by their work.
    """
    participants = {
        _plain(own_code(campaign, row.assessor_id)): row
        for row in campaign.participants.select_related("assessor__user")
    }
    return [(code, participants.get(_plain(code))) for code in codes]


def _plain(code: str) -> str:
    return re.sub(r"[^A-Z2-7]", "", code.upper())


# -- settings and erasure -------------------------------------------------------------------------------------


def set_market(*, campaign: Campaign, user: User, **fields: Any) -> None:
    """Change how strangers come in; those who are in keep the quota they came in with."""
    with transaction.atomic():
        Campaign.objects.filter(pk=campaign.pk).update(**fields)
        record("set the entry", campaign, actor=user, entry=fields["entry"])


def market_origins(campaign: Campaign) -> list[str]:
    """Return the sites that may show the HIT and get it back; a market uses one or two."""
    return campaign.market_origin.split()


def erase_market_names(*, campaign: Campaign, user: User) -> int:
    """Empty the market's names of all participants and of their sessions: for ever. Returns how many had one.

    Their judgments stay, under accounts that belong to nobody; who comes again gets a new account.
    """
    with transaction.atomic():
        erased = campaign.participants.exclude(participant="", session="").update(participant="", session="")
        record("erased the market's names", campaign, actor=user, participants=erased)
    return erased
