"""Releases on a page that anybody may read, without an account: published by a manager, and taken off it again."""

import uuid
from dataclasses import dataclass

from django.db import transaction
from django.utils import timezone

from analytics.methods import REPORTED
from analytics.models import Estimate, Release
from analytics.releases.services.published_runs import HIDES_RUNS
from analytics.releases.services.releasing import ReleaseNotReady
from judging.models import Campaign
from judging.services.errors import NotFound, Refused
from touchstone.models import User, record

MAIN_MEASURES = ("nDCG@10", "DCG@10", "P@10")  # the first that there is, else the first by name


class NotPublishable(Refused):
    status = 409
    title = "This release cannot be published"


def why_not_public(release: Release) -> str:
    """Return why a release cannot be published now; empty where it can."""
    campaign = release.campaign
    if campaign.state == Campaign.State.OPEN:
        return "the campaign is open, and a release tells its assessors which documents were checks: close it first"
    names_all = int(release.manifest.get("touchstone_release", 1)) < HIDES_RUNS
    if names_all and campaign.collection.runs.filter(may_publish=False).exists():
        return "it is of an older version and names runs that may not be published: make a new release"
    if release.withdrawn_at is not None:
        return "it is withdrawn"
    return ""


@transaction.atomic
def publish(*, release: Release, actor: User | None) -> Release:
    """Let anybody read a release, with its file, at an address of its own; twice is once."""
    row = _locked_release(release)
    if row.public_since is None:
        refusal = why_not_public(row)
        if refusal:
            raise NotPublishable(refusal)
        row.public_since = timezone.now()
        row.save(update_fields=["public_since"])
        record("published a release", row.campaign, actor=actor, version=row.version, release=str(row.pk))
    return row


@transaction.atomic
def unpublish(*, release: Release, actor: User | None) -> Release:
    """Take a release off its public page; what others have read or downloaded stays with them."""
    row = _locked_release(release)
    if row.public_since is not None:
        row.public_since = None
        row.save(update_fields=["public_since"])
        record("unpublished a release", row.campaign, actor=actor, version=row.version, release=str(row.pk))
    return row


def _locked_release(release: Release) -> Release:
    rows = Release.objects.select_for_update(of=["self"]).select_related("campaign__collection")
    row = rows.get(pk=release.pk)
    if row.state != Release.State.READY:
        raise ReleaseNotReady
    return row


def public_release(campaign_id: uuid.UUID, version: str) -> Release:
    """Return a release that is public; NotFound for any other, whatever the reason."""
    rows = Release.objects.select_related("campaign__collection", "previous")
    found = rows.filter(
        campaign=campaign_id,
        version=version,
        state=Release.State.READY,
        public_since__isnull=False,
        campaign__deleted_at=None,
        campaign__collection__deleted_at=None,
    ).first()
    if found is None:
        raise NotFound
    return found


@dataclass(frozen=True)
class MainEstimates:
    """The corrected numbers of a measure, a row a run that may be published, the best first."""

    measure: str
    rows: list[Estimate]


def main_estimates(release: Release) -> MainEstimates | None:
    """Return the release's main numbers; None where it has none."""
    if release.computation is None:
        return None
    rows = Estimate.objects.filter(
        computation=release.computation, method=REPORTED.key, run_b=None, run__may_publish=True
    )
    told = set(rows.order_by().values_list("measure", "value"))
    measures = sorted({name for name, value in told if value is not None} or {name for name, _ in told})
    if not measures:
        return None
    measure = next((name for name in MAIN_MEASURES if name in measures), measures[0])
    found = rows.filter(measure=measure).select_related("run")
    best_first = sorted(found, key=lambda row: (row.value is None, -(row.value or 0.0), row.run.run_id))
    return MainEstimates(measure, best_first)
