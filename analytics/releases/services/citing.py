"""What a release is cited by: its people and places, its day, its name; as it was asked for, in its own format."""

from datetime import UTC
from typing import Any

from analytics.models import Release
from analytics.releases.about import slug
from analytics.releases.people import author_of
from judging.models import Campaign


def cited_in(release: Release, form: int) -> dict[str, Any]:
    """Return the people and the places that a release of the format names; format 1 has a line a name."""
    lines = tuple(line.strip() for line in release.authors.splitlines() if line.strip())
    if form == 1:
        return {"authors": lines}
    people = [author_of(line) for line in lines]
    return {
        "authors": tuple(one.name for one in people),
        "orcids": tuple(one.orcid for one in people),
        "doi": release.doi,
        "url": release.url,
    }


def published_on(release: Release) -> str:
    """Return the day on which it was asked for, in UTC: a file that is made again says the same."""
    return release.created_at.astimezone(UTC).strftime("%Y-%m-%d")


def slug_of(campaign: Campaign) -> str:
    return slug(campaign.name, f"campaign-{str(campaign.pk)[:8]}")
