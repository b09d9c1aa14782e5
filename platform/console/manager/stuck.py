"""What the overview says of items that the people of a campaign cannot finish, and what helps."""

from typing import Any

from django.urls import reverse

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
    words = " ".join(part for part in (_lack(found), _items(found, missing), _helps(found)) if part)
    return {
        "level": "warn" if is_waiting else "error",
        "title": title,
        "words": words,
        "url": f"{reverse('console:items', args=[row.pk])}?state=stuck",
        "button": "See the items",
        "offers": _offers(row, found),
    }


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


def _items(found: PlacesLeft, missing: int) -> str:
    if found.n_stuck > missing:
        return ""
    named = "; ".join(f"topic {one['topic_id']}, document {one['doc_id']}" for one in found.stuck[:NAMED])
    rest = f"; and {found.n_stuck - NAMED:,} more" if found.n_stuck > NAMED else ""
    had = max((one["n_had"] for one in found.stuck), default=0)
    why = " Whoever has had an item cannot have it again." if had else ""
    return f"{named}{rest}.{why}" if named else ""


def _helps(found: PlacesLeft) -> str:
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
        names = ", ".join(str(person) for person in people)
        said.append(f"asking whoever gave an item back to look again ({names})")
    return f"What helps: {'; '.join(said)}."
