"""Events hold ids of people, so that a log which nobody can change holds no names: here they are looked up."""

from collections.abc import Iterable
from typing import Any

from judging.models import ImportedName, Invitation
from touchstone.models import Event, User


def details_with_names(events: Iterable[Event]) -> list[dict[str, Any]]:
    """Return the details of events with the names that people have today, in three statements at most.

    An invitation appears by its note, the assessors of an imported file by their account and what the file calls them.
    """
    details = [dict(event.detail) for event in events]
    users = _users({key for detail in details for key in _people(detail)})
    files = {key for detail in details for key in _keys(detail.get("assessors"))}
    in_files = dict(
        ImportedName.objects.filter(assessor__user__in=files).values_list("assessor__user_id", "name")
        if files
        else ()
    )
    invitations = {detail["invitation"] for detail in details if detail.get("invitation")}
    notes = dict(
        Invitation.objects.filter(pk__in=invitations).values_list("pk", "note") if invitations else ()
    )
    return [_with_names(detail, users, in_files, notes) for detail in details]


def _keys(value: Any) -> list[int]:
    """Return the ids in a detail: one, several, or none where it is no id.

    >>> _keys(3), _keys([1, 2]), _keys(None), _keys("bob"), _keys(True)
    ([3], [1, 2], [], [], [])
    """
    values = value if isinstance(value, list) else [value]
    return [one for one in values if isinstance(one, int) and not isinstance(one, bool)]


def _people(detail: dict[str, Any]) -> list[int]:
    return [key for name in ("assessor", "members", "assessors") for key in _keys(detail.get(name))]


def _users(keys: set[int]) -> dict[int, str]:
    return dict(User.objects.filter(pk__in=keys).values_list("pk", "username") if keys else ())


def _with_names(
    detail: dict[str, Any], users: dict[int, str], in_files: dict[int, str], notes: dict[int, str]
) -> dict[str, Any]:
    named = dict(detail)
    if _keys(detail.get("assessor")):
        named["assessor"] = users.get(detail["assessor"])
    if _keys(detail.get("members")):
        named["members"] = sorted(users[key] for key in _keys(detail["members"]) if key in users)
    if _keys(detail.get("assessors")):
        here = [key for key in _keys(detail["assessors"]) if key in users]
        named["assessors"] = {users[key]: in_files.get(key, "") for key in here}
    if "invitation" in named:
        named["note"] = notes.get(named.pop("invitation"), "")
    return named
