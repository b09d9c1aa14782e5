"""Deleting and restoring collections and campaigns. Deleted is hidden and closed, never removed: nothing cascades.

Whoever deletes types the name. A collection takes its campaigns out of sight with it; they are closed, so that nobody
judges for what nobody sees, and they come back with it, closed. The name is free for others at once: whoever restores
what has lost its name to another gives a new one. A campaign that went with its collection keeps its name.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import IntegrityError, OperationalError, transaction
from django.db.models.functions import Now
from psycopg.errors import LockNotAvailable

from judging.models import Campaign, Collection
from judging.services.errors import (
    CollectionBusy,
    CollectionDeleted,
    ConfirmationWrong,
    NameTaken,
    NotFound,
)
from touchstone.models import User, record


def delete_collection(*, collection: Collection, confirmation: str, actor: User) -> None:
    """Hide a collection and all that belongs to it, and close its campaigns. Twice is once."""
    with locked_collection(collection, actor) as row:
        _check_name(confirmation, row.name)
        if row.deleted_at is not None:
            return
        # Whoever opens a campaign locks it first and then looks at the collection: see campaigns.open_campaign.
        mine = list(row.campaigns.select_for_update(no_key=True).order_by("pk"))
        Collection.objects.filter(pk=row.pk).update(deleted_at=Now())
        n_closed = sum(_close(campaign, actor) for campaign in mine)
        record("deleted", row, actor=actor, name=row.name, n_campaigns_closed=n_closed)


def restore_collection(*, collection: Collection, actor: User, name: str = "") -> None:
    """Bring a collection back with its campaigns, closed as they are; those deleted by themselves stay so.

    `name` is a new one, if the old one was taken meanwhile; a taken one is refused with NameTaken.
    """
    with locked_collection(collection, actor) as row:
        _restore(row, name or row.name, actor)


def delete_campaign(*, campaign: Campaign, confirmation: str, actor: User) -> None:
    """Close and hide a campaign. Twice is once."""
    with transaction.atomic():
        row = _locked_campaign(campaign, actor)
        _check_name(confirmation, row.name)
        if row.deleted_at is not None:
            return
        _close(row, actor)
        Campaign.objects.filter(pk=row.pk).update(deleted_at=Now())
        record("deleted", row, actor=actor, name=row.name)


def restore_campaign(*, campaign: Campaign, actor: User, name: str = "") -> None:
    """Bring a campaign back, closed as it is; `name` as for a collection."""
    with transaction.atomic():
        row = _locked_campaign(campaign, actor)
        if row.collection.deleted_at is not None:
            raise CollectionDeleted
        _restore(row, name or row.name, actor)


def _restore(row: Collection | Campaign, name: str, actor: User) -> None:
    rows = type(row)._default_manager.filter(pk=row.pk, deleted_at__isnull=False)
    try:
        with transaction.atomic():
            is_back = rows.update(deleted_at=None, name=name)
    except IntegrityError as error:
        raise NameTaken from error
    if is_back:
        was = {"was": row.name} if name != row.name else {}
        record("restored", row, actor=actor, name=name, **was)


@contextmanager
def locked_collection(collection: Collection, actor: User) -> Iterator[Collection]:
    """Yield the row as it is now, in a transaction in which nobody else changes it or makes a campaign of it.

    An import holds the row while it reads its file: whoever comes then is told so. And whoever was a member when he
    asked, and is none any more, finds nothing.
    """
    with transaction.atomic():
        try:
            with transaction.atomic():
                row = Collection.objects.select_for_update().filter(pk=collection.pk).first()
        except OperationalError as error:
            if isinstance(error.__cause__, LockNotAvailable):
                raise CollectionBusy from error
            raise
        if row is None or not Collection.objects.open_to(actor).filter(pk=row.pk).exists():
            raise NotFound
        yield row


def _locked_campaign(campaign: Campaign, actor: User) -> Campaign:
    rows = Campaign.objects.select_for_update(no_key=True, of=["self"]).select_related("collection")
    row = rows.filter(pk=campaign.pk, collection__in=Collection.objects.open_to(actor)).first()
    if row is None:
        raise NotFound
    return row


def _check_name(confirmation: str, name: str) -> None:
    if confirmation != name:
        raise ConfirmationWrong


def _close(campaign: Campaign, actor: User) -> bool:
    """Close a campaign whose row is locked; return whether it was open."""
    if campaign.state != Campaign.State.OPEN:
        return False
    Campaign.objects.filter(pk=campaign.pk).update(state=Campaign.State.CLOSED)
    record("closed", campaign, actor=actor)
    return True
