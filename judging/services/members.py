"""Who may see a restricted collection. Nobody shuts themselves out: whoever sets the members is one of them."""

from collections.abc import Iterable

from judging.models import Collection, CollectionMember
from judging.services.deletion import locked_collection
from judging.services.errors import MembersUnfit, NotFound
from touchstone.models import User, record

SHOWN_IN_AN_ERROR = 5


def set_members(
    *, collection: Collection, is_restricted: bool, users: Iterable[User], actor: User
) -> list[User]:
    """Say whether only members see the collection, and who they are; return them. The actor stays a member."""
    wanted = {user.pk: user for user in [*users, actor]}
    unfit = sorted(user.get_username() for user in wanted.values() if not user.may_research)
    if unfit:
        raise MembersUnfit(", ".join(unfit[:SHOWN_IN_AN_ERROR]))
    with locked_collection(collection, actor) as row:
        if row.deleted_at is not None:
            raise NotFound
        before = set(row.members.values_list("user_id", flat=True))
        row.members.exclude(user__in=wanted).delete()
        CollectionMember.objects.bulk_create(
            CollectionMember(collection=row, user_id=user) for user in sorted(set(wanted) - before)
        )
        Collection.objects.filter(pk=row.pk).update(is_restricted=is_restricted)
        if before != set(wanted) or row.is_restricted != is_restricted:
            record(
                "set members",
                row,
                actor=actor,
                is_restricted=is_restricted,
                members=sorted(wanted),
            )
    return sorted(wanted.values(), key=lambda user: user.get_username())
