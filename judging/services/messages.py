"""What managers tell assessors: short texts that stay on the assessor's pages until they mark them as read."""

from collections.abc import Sequence

from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now

from judging.models import Assessor, Campaign, Message
from judging.services.errors import MessageUnfit, NotFound
from touchstone.models import User, record

LONGEST = 2000
MOST_SHOWN = 20


def send(*, assessor: Assessor, text: str, sender: User) -> Message:
    """Tell an assessor something; only managers who see their campaign do."""
    text = text.replace("\r\n", "\n").strip()
    if not 1 <= len(text) <= LONGEST:
        raise MessageUnfit
    with transaction.atomic():
        mine = Campaign.objects.visible_to(sender).filter(pk=assessor.campaign_id)
        if not sender.may_manage or not mine.exists():
            raise NotFound
        made = Message.objects.create(assessor=assessor, text=text, sender=sender)
        record("sent a message", assessor.campaign, actor=sender, assessor=assessor.user_id)
    return made


def unread(*, user: User, campaign: Campaign | None = None) -> Sequence[Message]:
    """Return the user's unread messages, the oldest first, of all campaigns or of one."""
    rows = messages_to(user=user).filter(read_at=None)
    if campaign is not None:
        rows = rows.filter(assessor__campaign=campaign)
    return list(rows.order_by("id")[:MOST_SHOWN])


def messages_to(*, user: User) -> QuerySet[Message]:
    """Return all that the user was ever told in campaigns that are still there."""
    there = {"assessor__campaign__deleted_at": None, "assessor__campaign__collection__deleted_at": None}
    return Message.objects.filter(assessor__user=user, **there).select_related("assessor__campaign", "sender")


def mark_read(*, message: Message, user: User) -> None:
    """Note that the assessor has read it; twice is once, and the first time stands."""
    with transaction.atomic():
        mine = Message.objects.filter(pk=message.pk, assessor__user=user)
        if not mine.exists():
            raise NotFound
        if mine.filter(read_at=None).update(read_at=Now()):
            record("read a message", message.assessor, actor=user, message=message.pk)
    message.refresh_from_db(fields=["read_at"])
