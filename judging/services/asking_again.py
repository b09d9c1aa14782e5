"""Asking whoever gave a stuck item back to look again: a message, and their review opens it whatever its age."""

from django.db import transaction

from judging.models import Assessor, Campaign, Message, PlacesLeft
from judging.services.messages import send
from touchstone.models import User

ONE = "A document that you gave back is still open, and nobody else is left to judge it. Please look at it again: {}"
MANY = (
    "{} documents that you gave back are still open, and nobody else is left to judge them. Please look at them again: "
    "{}"
)
WHERE = "Review lists what you gave back; choose a grade there if you can give one."
NAMED = 5


def ask_again(*, campaign: Campaign, actor: User) -> int:
    """Ask everybody who gave back one of the items that are stuck; return how many were asked.

    Whoever has not read such a message yet is not asked twice.
    """
    found = PlacesLeft.objects.filter(campaign=campaign).first()
    documents: dict[int, list[str]] = {}
    for one in found.stuck if found else []:
        for assessor in one["given_back_by"]:
            documents.setdefault(assessor, []).append(one["doc_id"])
    n = 0
    with transaction.atomic():
        for person in Assessor.objects.filter(campaign=campaign, pk__in=documents).order_by("pk"):
            text = words_to_ask(documents[person.pk])
            if not Message.objects.filter(assessor=person, text=text, read_at=None).exists():
                send(assessor=person, text=text, sender=actor)
                n += 1
    return n


def words_to_ask(documents: list[str]) -> str:
    """Return the message.

    >>> words_to_ask(["d7"]).partition(": ")[2]
    'd7. Review lists what you gave back; choose a grade there if you can give one.'
    """
    named = ", ".join(one[:100] for one in documents[:NAMED]) + (", ..." if len(documents) > NAMED else "")
    asked = ONE.format(named) if len(documents) == 1 else MANY.format(len(documents), named)
    return f"{asked}. {WHERE}"
