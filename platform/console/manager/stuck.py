"""What the overview says of items that the people of a campaign cannot finish, and what helps."""

from typing import Any

from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from judging.models import Assessor, PlacesLeft

NAMED = 5
TIERS = {"judge": "assessor", "audit": "gold assessor", "silver": "silver assessor"}


def stuck_need(row: Any) -> dict[str, Any] | None:
    """Return the alert; None while all open places can be filled."""
    found: PlacesLeft | None = getattr(row, "places_left", None)
    if found is None or found.possible >= found.wanted:
        return None
    least = "" if found.is_exact else "At least "
    missing = found.wanted - found.possible
    if found.n_stuck > missing:  # a quota is short: whose items stay open is not decided
        title = f"{least}{missing:,} judgment{'' if missing == 1 else 's'} cannot be made."
    else:
        title = f"{least}{found.n_stuck:,} item{'' if found.n_stuck == 1 else 's'} cannot be finished."
    # Whoever has joined and has not agreed yet, or is in training, will do: nothing is wrong then.
    is_waiting = found.helps.get("entry", 0) >= missing
    parts = (_lack(found), _items(row, found, missing), _helps(row, found))
    words = format_html_join(" ", "{}", ((part,) for part in parts if part))
    return {
        "level": "warn" if is_waiting else "error",
        "title": title,
        "words": words,
        "url": f"{reverse('console:items', args=[row.pk])}?state=stuck",
        "button": "See the items",
        "offers": _offers(row, found),
    }


def still_stuck_words(row: Any) -> str:
    """Return what a manager who has just changed something learns of the items that are stuck; empty if none is."""
    found: PlacesLeft | None = getattr(row, "places_left", None)
    if found is None or found.possible >= found.wanted:
        return ""
    n = f"{found.n_stuck:,} item{'' if found.n_stuck == 1 else 's'}"
    return f" At the last look {n} could not be finished; the overview says within a minute how many still cannot."


def _offers(row: Any, found: PlacesLeft) -> list[dict[str, Any]]:
    """Return what helps as buttons and links, the surest first."""
    people, n = reverse("console:assessors", args=[row.pk]), found.newcomers
    offers = []
    if n:
        label = "Invite one person" if n == 1 else f"Invite {n:,} people"
        offers.append(
            {"label": label, "url": reverse("console:invite-newcomers", args=[row.pk]), "is_post": True}
        )
    if any(one["given_back_by"] for one in found.stuck):
        url = reverse("console:ask-again", args=[row.pk])
        offers.append({"label": "Ask to look again", "url": url, "is_post": True})
    if "quota" in found.helps:
        offers.append({"label": "Raise a quota", "url": f"{people}?only=at-quota"})
    if "team" in found.helps:
        url = reverse("console:manage-topics", args=[row.pk])
        offers.append({"label": "Open topics to other teams", "url": url})
    return offers


def _lack(found: PlacesLeft) -> str:
    most = "" if found.is_exact else "at most "
    return f"{found.wanted:,} more judgments are wanted, and the people here can give {most}{found.possible:,} of them."


def _items(row: Any, found: PlacesLeft, missing: int) -> SafeString | str:
    if found.n_stuck > missing or not found.stuck:
        return ""
    named = format_html_join("; ", "{}", ((_item(row, one),) for one in found.stuck[:NAMED]))
    rest = f"; and {found.n_stuck - NAMED:,} more" if found.n_stuck > NAMED else ""
    had = max((one["n_had"] for one in found.stuck), default=0)
    why = " Whoever has had an item cannot have it again." if had else ""
    return format_html("{}{}.{}", named, rest, why)


def _item(row: Any, one: dict[str, Any]) -> SafeString:
    words = format_html("topic {}, document {}", one["topic_id"], one["doc_id"])
    if "item" not in one:  # found by a look of before
        return words
    return format_html('<a href="{}">{}</a>', reverse("console:item", args=[row.pk, one["item"]]), words)


def _helps(row: Any, found: PlacesLeft) -> SafeString:
    """Return what helps, each as a sentence."""
    kinds = {one["purpose"] for one in found.stuck}
    who = TIERS[kinds.pop()] if len(kinds) == 1 else "person"
    least = "" if found.is_exact else "at least "
    n = found.newcomers
    said = [f"{least}{n:,} more {who}{'' if n == 1 else 's'}"]
    if "entry" in found.helps:
        said.insert(0, "the consent and training of those who have joined")
    if "quota" in found.helps:
        said.append("a higher quota")
    if "team" in found.helps:
        said.append("opening topics to other teams")
    askable = {pk for one in found.stuck for pk in one["given_back_by"]}
    if askable:
        people = Assessor.objects.filter(pk__in=sorted(askable)[:NAMED]).select_related("user")
        pages = (
            (reverse("console:assessor", args=[row.pk, person.pk]), person.user.get_username())
            for person in people
        )
        names = format_html_join(", ", '<a href="{}">{}</a>', pages)
        said.append(format_html("asking whoever gave an item back to look again ({})", names))
    return format_html("What helps: {}.", format_html_join("; ", "{}", ((one,) for one in said)))
