"""Messages between managers and one assessor: a manager writes or answers, an assessor asks; no other assessor sees it.

What an assessor sees of it depends on nothing that the document is for: a question about a gold check is stored, shown
and answered as any other. Only a manager is told that an answer could give a check away.
"""

import uuid
from collections.abc import Sequence

from django.db import transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from judging.models import Assessor, Campaign, Item, Lease, Message, Slot
from judging.services.errors import LeaseUnknown, MessageUnfit, NotFound, QuestionSecret, TooManyQuestions
from touchstone.letters.queueing import queue_letter
from touchstone.models import User, record

LONGEST = 2000
MOST_SHOWN = 20
MOST_OPEN = 20  # questions of an assessor that wait for an answer


def send(*, assessor: Assessor, text: str, sender: User, item: Item | None = None) -> Message:
    """Tell an assessor something, in general or about a document; only managers who see their campaign do."""
    text = _fit(text)
    with transaction.atomic():
        _check_manages(sender, assessor.campaign_id)
        made = Message.objects.create(assessor=assessor, text=text, sender=sender, item=item)
        record("sent a message", assessor.campaign, actor=sender, assessor=assessor.user_id)
    return made


def ask(*, assessor: Assessor, text: str, token: uuid.UUID | None = None) -> Message:
    """Store an assessor's question, about the document that was given with the token, or in general."""
    text = _fit(text)
    with transaction.atomic():
        if (
            Message.objects.filter(assessor=assessor, is_from_assessor=True, read_at=None).count()
            >= MOST_OPEN
        ):
            raise TooManyQuestions
        item = _item_of(assessor, token) if token is not None else None
        made = Message.objects.create(
            assessor=assessor, sender_id=assessor.user_id, text=text, is_from_assessor=True, item=item
        )
        record("asked a question", assessor.campaign, actor=assessor.user, message=made.pk)
        for manager in managers_of(assessor.campaign):
            queue_letter(
                kind="question",
                to=manager,
                subject=f"campaign:{assessor.campaign_id}",
                title=f"A question in {assessor.campaign.name}",
                lines=[f"An assessor of the campaign “{assessor.campaign.name}” has a question."],
                link=f"/manage/campaigns/{assessor.campaign_id}/messages/",
            )
    return made


def answer(*, question: Message, text: str, sender: User, is_sure: bool = False) -> Message:
    """Answer a question, or go on in a thread; about what may be a gold check or an audit only if the sender is sure.

    Raises
    ------
    QuestionSecret
        If the answer could give away what the document is for, and the sender has not said that this is meant.
    """
    text = _fit(text)
    first = question.thread or question
    with transaction.atomic():
        _check_manages(sender, question.assessor.campaign_id)
        if is_secret(first) and not is_sure:
            raise QuestionSecret
        made = Message.objects.create(
            assessor=first.assessor, sender=sender, text=text, thread=first, item=first.item
        )
        _thread_of(first).filter(is_from_assessor=True, read_at=None).update(read_at=Now())
        campaign = first.assessor.campaign
        record("answered a question", campaign, actor=sender, assessor=first.assessor.user_id)
    return made


def close(*, question: Message, actor: User) -> None:
    """Note that a question needs no answer; twice is once."""
    with transaction.atomic():
        _check_manages(actor, question.assessor.campaign_id)
        first = question.thread or question
        if _thread_of(first).filter(is_from_assessor=True, read_at=None).update(read_at=Now()):
            campaign = first.assessor.campaign
            record("closed a question", campaign, actor=actor, assessor=first.assessor.user_id)


def is_secret(message: Message) -> bool:
    """Return whether the document was given to the assessor as a check or an audit. For managers alone."""
    return message.item_id is not None and message.assessor_id in holders_of_secrets(message.item_id)


def holders_of_secrets(item_id: uuid.UUID) -> set[int]:
    """Return to which assessors the item was given as a check or an audit."""
    given = Lease.objects.filter(slot__item=item_id)
    ordinary = Q(slot__purpose=Slot.Purpose.JUDGE) | Q(
        slot__purpose=Slot.Purpose.VOID, slot__was__in=["", "judge"]
    )
    return set(given.exclude(ordinary).values_list("assessor", flat=True))


def open_questions(campaign: Campaign) -> QuerySet[Message]:
    """Return the questions of a campaign that nobody has answered or closed, the oldest first."""
    found = Message.objects.filter(is_from_assessor=True, read_at=None, assessor__campaign=campaign)
    return found.select_related("assessor__user", "item__topic", "item__document").order_by("id")


def conversation(assessor: Assessor) -> list[Message]:
    """Return the newest messages from and to an assessor, the newest first."""
    found = Message.objects.filter(assessor=assessor).select_related(
        "sender", "item__topic", "item__document"
    )
    return list(found.defer("item__document__text", "item__document__html").order_by("-id")[:MOST_SHOWN])


def threads_about(item: Item) -> list[Message]:
    """Return what was asked and written about an item, each first message with its answers behind it."""
    found = Message.objects.filter(item=item).select_related(
        "sender", "assessor__user", "assessor__campaign", "item"
    )
    rows = list(found.order_by("-id")[: 5 * MOST_SHOWN])
    return sorted(rows, key=lambda row: (row.thread_id or row.pk, row.pk))


def unread(*, user: User) -> Sequence[Message]:
    """Return the user's unread messages, the oldest first, of all campaigns."""
    return list(messages_to(user=user).filter(read_at=None).order_by("id")[:MOST_SHOWN])


def waiting(assessor: Assessor) -> tuple[Sequence[Message], bool]:
    """Return an assessor's unread messages, the oldest first, and whether a question of theirs waits for an answer."""
    open_ones = Message.objects.filter(assessor=assessor, read_at=None).select_related(
        "assessor__campaign", "sender"
    )
    rows = list(
        open_ones.order_by("id")[: MOST_SHOWN + MOST_OPEN]
    )  # so many questions, at most, are among them
    told = [row for row in rows if not row.is_from_assessor]
    return told[:MOST_SHOWN], len(told) < len(rows)


def messages_to(*, user: User) -> QuerySet[Message]:
    """Return all that the user was ever told in campaigns that are still there."""
    there = {"assessor__campaign__deleted_at": None, "assessor__campaign__collection__deleted_at": None}
    told = Message.objects.filter(assessor__user=user, is_from_assessor=False, **there)
    return told.select_related("assessor__campaign", "sender")


def mark_read(*, message: Message, user: User) -> None:
    """Note that the assessor has read it; twice is once, and the first time stands."""
    with transaction.atomic():
        mine = Message.objects.filter(pk=message.pk, assessor__user=user, is_from_assessor=False)
        if not mine.exists():
            raise NotFound
        if mine.filter(read_at=None).update(read_at=Now()):
            record("read a message", message.assessor, actor=user, message=message.pk)
    message.refresh_from_db(fields=["read_at"])


def _fit(text: str) -> str:
    text = text.replace("\r\n", "\n").strip()
    if not 1 <= len(text) <= LONGEST:
        raise MessageUnfit
    return text


def _check_manages(user: User, campaign_id: uuid.UUID) -> None:
    mine = Campaign.objects.visible_to(user).filter(pk=campaign_id)
    if not user.may_manage or not mine.exists():
        raise NotFound


def _item_of(assessor: Assessor, token: uuid.UUID) -> Item:
    """Return the item that the assessor was given with the token, whatever became of the lease."""
    item = Item.objects.filter(slots__leases__token=token, slots__leases__assessor=assessor).first()
    if item is None:
        raise LeaseUnknown
    return item


def _thread_of(first: Message) -> QuerySet[Message]:
    return Message.objects.filter(Q(pk=first.pk) | Q(thread=first))


def managers_of(campaign: Campaign) -> list[User]:
    """Return the managers who see the campaign and have an address."""
    managers = User.objects.filter(role=User.Role.MANAGER, is_active=True).exclude(email="")
    return [one for one in managers if Campaign.objects.visible_to(one).filter(pk=campaign.pk).exists()]
