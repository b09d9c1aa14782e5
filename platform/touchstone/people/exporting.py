"""Everything that is held about a person, as one file that only its maker can read, and nothing about anybody else."""

import io
import json
import os
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.models import Session
from django.core.serializers.json import DjangoJSONEncoder
from django.db.models import Q, QuerySet
from django.forms import model_to_dict
from django.utils import timezone

from analytics.models import AssessorScreening, ConfusionEstimate, Flag, Release
from judging.models import (
    Adjudication,
    Assessor,
    Campaign,
    CollectionMember,
    Import,
    ImportedName,
    Invitation,
    Judgment,
    MachineCall,
    Message,
    Participant,
    TrainingAnswer,
)
from judging.spreadsheets import SheetWriter
from sampling.models import Draw, TopicFinding
from touchstone.ledger.rows import AT_ONCE
from touchstone.models import AccountLink, ApiToken, Event, Identity, Job, User, Webhook, WebhookDelivery

README = """What Touchstone holds about the account {name} (number {key}), as of {at}.

account.json      the account itself, where it is logged in, its API keys (not the keys themselves, which nobody has),
                  letters to the person, who they are at the company's log-in
judging.json      the campaigns in which the person judges, how they came in, messages, training, accuracy
judgments.csv     every judgment with its comment, the newest version and all before it
events.jsonl      what the log of events says the person did, or what was done to them
work.json         campaigns, invitations, draws, releases, decisions and jobs of the person, and messages they wrote

Other people do not appear: where the system holds their account beside the person's, it is left out. Documents, topics
and gold answers are left out as well. A text in judgments.csv that a spreadsheet would run as a formula begins with an
apostrophe.
docs/privacy.md says why it is held, for how long, and who sees it.
"""
# Of the details of an event: they are ids of people, of whom others must not appear.
OF_PEOPLE = frozenset({"assessor", "members", "assessors", "invitation", "note", "participants"})
COLUMNS = (
    "campaign",
    "topic",
    "document",
    "version",
    "grade",
    "reason",
    "comment",
    "active_milliseconds",
    "at",
)
ACCOUNT = (
    *("id", "username", "first_name", "last_name", "email", "role"),
    *("language", "time_zone", "is_active", "is_staff"),
)
CAMPAIGN = "assessor__campaign__name"
File = Callable[[User], Iterable[str]]


def export(user: User, path: Path) -> list[str]:
    """Write the file, which must not exist and which only its owner can read; return the names of what is in it.

    Raises
    ------
    OSError
        If it cannot be written, or is there already.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with (
            os.fdopen(descriptor, "wb") as target,
            zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive,
        ):
            for name, lines in FILES.items():
                with io.TextIOWrapper(archive.open(name, "w"), "utf-8", newline="") as file:
                    file.writelines(lines(user))
    except BaseException:
        path.unlink()  # half a file would look like a whole one
        raise
    return list(FILES)


def _json(value: Any) -> str:
    return json.dumps(value, cls=DjangoJSONEncoder, ensure_ascii=False, indent=2, sort_keys=True) + "\n"


def _rows(found: QuerySet[Any], *fields: str) -> list[dict[str, Any]]:
    return list(found.order_by("pk").values(*fields))


def _readme(user: User) -> Iterable[str]:
    at = timezone.now().isoformat(timespec="seconds")
    yield README.format(name=user.get_username(), key=user.pk, at=at)


def _account(user: User) -> Iterable[str]:
    sessions = [
        {"expires_at": one.expire_date, "data": {k: v for k, v in data.items() if not k.startswith("_auth")}}
        for one in Session.objects.order_by("expire_date").iterator()
        if (data := one.get_decoded()).get(SESSION_KEY) == str(user.pk)
    ]
    yield _json(
        {
            **model_to_dict(user, ACCOUNT),
            "id": user.pk,
            "date_joined": user.date_joined,
            "last_login": user.last_login,
            "seen_at": user.seen_at,
            "identities": _rows(
                Identity.objects.filter(user=user), "issuer", "subject", "label", "created_at"
            ),
            "links": _rows(
                AccountLink.objects.filter(user=user),
                "kind",
                "role",
                "email",
                "created_at",
                "expires_at",
                "used_at",
            ),
            "sessions": sessions,
            "api_keys": _rows(
                ApiToken.objects.filter(user=user), "name", "scopes", "created_at", "expires_at", "revoked_at"
            ),
            "webhooks": _rows(Webhook.objects.filter(user=user), "url", "verbs", "is_active", "created_at"),
            "webhook_deliveries": _rows(
                WebhookDelivery.objects.filter(webhook__user=user), "event", "state", "attempts", "answer"
            ),
            "letters": _rows(
                user.letters.all(), "kind", "address", "subject", "title", "text", "state", "created_at"
            ),
            "letters_switched_off": _rows(user.letter_refusals.all(), "kind", "created_at"),
            "collections": _rows(CollectionMember.objects.filter(user=user), "collection__name"),
        }
    )


def _judging(user: User) -> Iterable[str]:
    mine = Assessor.objects.filter(user=user)
    about = Q(assessor__in=mine)
    flags = (CAMPAIGN, "kind", "evidence", "p_adjusted", "effect", "created_at")
    yield _json(
        {
            "campaigns": _rows(
                mine, "campaign__name", "tier", "kind", "status", "n_judged", "quota", "team", "consented_at",
                "trained_at", "created_at",
            ),
            "market": _rows(
                Participant.objects.filter(about), "campaign__name", "participant", "study", "session", "created_at",
                "completed_at",
            ),
            "names_in_imported_files": _rows(ImportedName.objects.filter(about), "source", "name"),
            "messages": _rows(
                Message.objects.filter(about), CAMPAIGN, "is_from_assessor", "text", "created_at", "read_at"
            ),
            "training_answers": _rows(
                TrainingAnswer.objects.filter(about), CAMPAIGN, "attempt", "grade", "created_at"
            ),
            "machine_calls": _rows(
                MachineCall.objects.filter(about), "status", "model", "detail", "prompt_tokens", "completion_tokens",
                "cost", "milliseconds", "created_at",
            ),
            "accuracy": _rows(
                ConfusionEstimate.objects.filter(about), "computation__campaign__name", "computation__created_at",
                "accuracy", "accuracy_low", "accuracy_high", "n_gold_checks", "n_audited", "matrix",
            ),
            "flags": _rows(Flag.objects.filter(about), *flags),
            "screenings": _rows(AssessorScreening.objects.filter(about), "screening__created_at", "tests"),
        }
    )  # fmt: skip


class _Lines:
    """Gives each line that a SheetWriter writes."""

    def write(self, text: str) -> str:
        return text


def _judgments(user: User) -> Iterable[str]:
    writer = SheetWriter(_Lines())
    yield writer.writerow(COLUMNS)
    found = Judgment.objects.filter(assessor__user=user).order_by("pk").values_list(
        CAMPAIGN, "item__topic__topic_id", "item__document__doc_id", "sequence", "grade",
        "obstacle", "comment", "active_milliseconds", "created_at",
    )  # fmt: skip
    for row in found.iterator(AT_ONCE):
        yield writer.writerow([*row[:-1], row[-1].isoformat()])


def _events(user: User) -> Iterable[str]:
    keys = [f"user:{user.pk}", *(f"assessor:{key}" for key in user.assessors.values_list("pk", flat=True))]
    mine = Event.objects.filter(Q(actor=user) | Q(subject__in=keys) | Q(detail__assessor=user.pk)).order_by(
        "pk"
    )
    for event in mine.iterator(AT_ONCE):
        detail = {name: value for name, value in event.detail.items() if name not in OF_PEOPLE}
        row = {
            "at": event.at,
            "verb": event.verb,
            "subject": event.subject,
            "by_person": event.actor_id == user.pk,
        }
        yield json.dumps({**row, "detail": detail}, cls=DjangoJSONEncoder, ensure_ascii=False) + "\n"


def _work(user: User) -> Iterable[str]:
    yield _json(
        {
            "campaigns": _rows(Campaign.objects.filter(created_by=user), "name", "created_at"),
            "invitations": _rows(Invitation.objects.filter(created_by=user), "campaign__name", "tier"),
            "invitations_to_accounts": _rows(
                AccountLink.objects.filter(created_by=user, kind="invitation"), "role", "created_at", "used_at"
            ),
            "draws": _rows(Draw.objects.filter(drawn_by=user), "campaign__name", "batch", "created_at"),
            "releases": _rows(Release.objects.filter(made_by=user), "campaign__name", "version", "authors"),
            "adjudications": _rows(
                Adjudication.objects.filter(decided_by=user), "item__topic__topic_id", "item__document__doc_id",
                "verdict", "grade", "reason", "created_at",
            ),
            "findings": _rows(TopicFinding.objects.filter(decided_by=user), "is_bad", "reason", "created_at"),
            "messages_written": _rows(Message.objects.filter(sender=user), "text", "created_at"),
            "imports": _rows(
                Import.objects.filter(user=user), "collection__name", "state", "kind", "files", "created_at"
            ),
            "imports_taken_back": _rows(
                Import.objects.filter(taken_back_by=user), "collection__name", "kind", "taken_back_at"
            ),
            "jobs": _rows(
                Job.objects.filter(requested_by=user), "kind", "state", "payload", "note", "error", "created_at",
                "finished_at",
            ),
        }
    )  # fmt: skip


FILES: dict[str, File] = {
    "README.txt": _readme,
    "account.json": _account,
    "judging.json": _judging,
    "judgments.csv": _judgments,
    "events.jsonl": _events,
    "work.json": _work,
}
