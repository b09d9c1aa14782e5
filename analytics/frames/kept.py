"""Arrays of campaigns, kept by a process from one reading to the next: only what is new is read again.

Why that is the same as reading everything. The arrays follow from facts and judgments (assembly.py). Facts are as read
while their fingerprint is. What is known of an item's judgments changes by a new judgment of it, which is
found by its id (log.py) and makes that item be read again, or by a change of a slot's purpose: a revision that takes a
grade back is a new judgment itself, everything else shows in the fingerprint.
"""

import threading
import time
from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from django.utils import timezone
from numpy.typing import NDArray

from analytics.frames.arrays import CampaignArrays
from analytics.frames.assembly import assemble
from analytics.frames.facts import Facts, fingerprint, not_judgeable, read_facts
from analytics.frames.log import TABLE, Log, is_still_true, read_log
from judging.models import Assessor, Campaign
from sampling.models import AuditSchedule, AuditTier
from touchstone.watermark import Watermark, is_writing, mark

KEPT_CAMPAIGNS, KEPT_JUDGMENTS = 3, 6_000_000  # by a process; the newest reading is always kept
READ_ANEW_SECONDS = 600.0  # should something ever change that leaves no trace
SETTLED_SECONDS = 60.0  # a batch so old has no request under way that began before it
TRIES = 3
NOTHING_READ = Watermark()


@dataclass(frozen=True)
class People:
    """A campaign's assessors with their users. What they have done so far is as of the first reading."""

    assessors: list[Assessor]
    known_by: list[tuple[int, str]]  # key and tier, by key

    @property
    def keys(self) -> NDArray[np.int64]:
        return np.array([key for key, _ in self.known_by], dtype=np.int64)


@dataclass(frozen=True)
class Reading:
    """What a process has read of a campaign."""

    facts: Facts
    fingerprint: tuple[Any, ...]
    people: People
    log: Log
    watermark: Watermark
    read_at: float  # of all of it, by the process's clock


_kept: OrderedDict[Any, Reading] = OrderedDict()
_lock = threading.Lock()


def campaign_arrays(campaign: Campaign) -> CampaignArrays:
    """Return the arrays of a drawn campaign, all of it read now."""
    return _assemble(campaign, _read(campaign))


def current_arrays(campaign: Campaign) -> CampaignArrays:
    """Return the arrays of a drawn campaign as of now; what this process read before is not read again."""
    return _assemble(campaign, current_reading(campaign))


def current_reading(campaign: Campaign) -> Reading:
    """Return what there is to read of a drawn campaign as of now."""
    with _lock:
        known = _kept.get(campaign.pk)
    if known is not None and not is_still_true(known.log, known.watermark):
        known = None  # a backup was restored, and ids are given out again
    reading = (_fold(campaign, known) if known else None) or _read(
        campaign, known.watermark if known else NOTHING_READ
    )
    if not is_writing(TABLE):
        _keep(campaign, reading)
    return reading


def forget(campaign: Campaign | None = None) -> None:
    """Drop what was kept of a campaign, or of all."""
    with _lock:
        if campaign is None:
            _kept.clear()
        else:
            _kept.pop(campaign.pk, None)


def _assemble(campaign: Campaign, reading: Reading) -> CampaignArrays:
    schedules = AuditSchedule.objects.filter(campaign=campaign, tier=AuditTier.GOLD)
    planned = schedules.values_list("items_in_total", flat=True).first()
    facts = reading.facts
    return assemble(facts, reading.log, reading.people.assessors, planned, not_judgeable(campaign, facts))


def _people(campaign: Campaign, known: People | None = None) -> People:
    """Return the campaign's assessors; the cached ones unless an assessor was added or changed tier."""
    if known is not None:
        known_by = list(campaign.assessors.order_by("pk").values_list("pk", "tier"))
        if known.known_by == known_by:
            return known
    assessors = list(campaign.assessors.select_related("user").order_by("pk"))
    return People(assessors, [(person.pk, person.tier) for person in assessors])


def _read(campaign: Campaign, watermark: Watermark = NOTHING_READ) -> Reading:
    """Read everything. If facts change meanwhile it is read once more, so that all of it is of one moment."""
    for _ in range(TRIES):
        before, seen = mark(TABLE), fingerprint(campaign)
        facts = read_facts(campaign)
        people = _people(campaign)
        log, is_all = read_log(campaign, facts.items, people.keys)
        reading = Reading(facts, seen, people, log, watermark.advance(before), time.monotonic())
        if is_all and fingerprint(campaign) == seen:
            return reading
    # So much goes on that no moment is quiet: audits were read first, and can only look less complete than they are.
    return replace(reading, fingerprint=())


def _fold(campaign: Campaign, known: Reading) -> Reading | None:
    """Return the reading with what is new, or None where everything must be read again."""
    now, seen = mark(TABLE), fingerprint(campaign)
    people = _people(campaign, known.people)
    n_before = len(known.people.assessors)
    if (
        seen != known.fingerprint
        or known.watermark.last_id == 0
        or time.monotonic() - known.read_at > READ_ANEW_SECONDS
        or not np.array_equal(people.keys[:n_before], known.people.keys)
    ):
        return None
    new, is_all = read_log(campaign, known.facts.items, people.keys, known.watermark.last_id)
    if not is_all or fingerprint(campaign) != seen:
        return None
    log = known.log.merge(new)
    return replace(known, people=people, log=log, watermark=known.watermark.advance(now))


def _keep(campaign: Campaign, reading: Reading) -> None:
    draw = reading.facts.draw
    is_settled = draw.batch == 1 or (timezone.now() - draw.created_at).total_seconds() > SETTLED_SECONDS
    with _lock:
        _kept.pop(campaign.pk, None)
        if not reading.fingerprint or not is_settled:
            return
        _kept[campaign.pk] = reading
        while len(_kept) > 1 and (
            len(_kept) > KEPT_CAMPAIGNS or sum(r.log.id.size for r in _kept.values()) > KEPT_JUDGMENTS
        ):
            _kept.popitem(last=False)
