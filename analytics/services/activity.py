"""What was done, by when and whom: counted by the worker with each computation, so that no page counts judgments.

A computation holds the counts of the one before plus those of the judgments that came since. `until` is the judgment up
to which all are counted: like the reading of judgments (touchstone/watermark.py) it waits for transactions that were
writing.
"""

from collections import defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from django.db import connection

from analytics.frames import CampaignArrays
from analytics.frames.log import TABLE
from analytics.models import Computation
from judging.models import Assessor, Campaign
from touchstone.watermark import Mark, Watermark, mark

KEPT_DAYS, KEPT_HOURS = 120, 72
MACHINE = "machine"  # a series of its own: its judgments cost what its requests cost
SERIES = (*Assessor.Tier.values, MACHINE)
# A judgment that was revised is one judgment; the time spent on revising it counts. A machine's answer that was of no
# use is none.
_COUNTS = "count(*) FILTER (WHERE j.sequence = 1 AND j.obstacle <> 'failed'), sum(j.active_milliseconds)"
_JUDGMENTS = """
  FROM judging_judgment j JOIN judging_assessor a ON a.id = j.assessor_id
 WHERE a.campaign_id = %(campaign)s AND j.id > %(after)s AND j.id <= %(until)s
"""
BY_ASSESSOR = f"SELECT a.id, {_COUNTS} {_JUDGMENTS} GROUP BY 1"
# date_bin and not date_trunc: half the time for a million judgments.
BY_HOUR = f"""
SELECT CASE a.kind WHEN 'machine' THEN 'machine' ELSE a.tier END,
       date_bin('1 hour', j.created_at, 'epoch') AT TIME ZONE 'UTC', {_COUNTS} {_JUDGMENTS} GROUP BY 1, 2
"""
Activity = dict[str, Any]
Rows = list[tuple[Any, ...]]


def activity_before(campaign: Campaign) -> Activity:
    """Return the counts of the newest computation; nothing before the first."""
    newest = Computation.objects.filter(campaign=campaign).order_by("-id").values_list("activity", flat=True)
    return newest.first() or {}


def counted_activity(campaign: Campaign, arrays: CampaignArrays, before: Activity) -> Activity:
    """Return the counts as of now: those of the newest computation, `before`, and what has come since."""
    now = mark(TABLE)
    known = Watermark(before.get("until", 0), tuple(_marks(before)))
    if now.last_id < known.last_id:  # a backup was restored, and ids are given out again
        before, known = {}, Watermark()
    watermark = known.advance(now)
    keys = {"campaign": campaign.pk, "after": known.last_id, "until": watermark.last_id}
    return {
        "until": watermark.last_id,
        "marks": [[one.last_id, sorted(one.writers)] for one in watermark.marks],
        **_merge_rows(before, _rows(BY_ASSESSOR, keys), _rows(BY_HOUR, keys)),
        "counted": int(arrays.label_item.size),
        "agreement": agreement(arrays),
    }


def _marks(before: Activity) -> list[Mark]:
    return [Mark(last_id, frozenset(writers)) for last_id, writers in before.get("marks", [])]


def _rows(sql: str, keys: dict[str, Any]) -> Rows:
    with connection.cursor() as cursor:
        cursor.execute(sql, keys)
        return list(cursor.fetchall())


def _merge_rows(before: Activity, by_assessor: Rows, by_hour: Rows) -> Activity:
    """Return the tables with what rows (assessor, judgments, milliseconds) and (series, hour, ...) add."""
    tables: dict[str, dict[str, Any]] = {
        name: {key: list(pair) for key, pair in before.get(name, {}).items()}
        for name in ("series", "assessors")
    }
    times: dict[str, dict[str, dict[str, list[int]]]] = {
        name: dict(before.get(name, {})) for name in ("days", "hours")
    }
    for assessor, n, milliseconds in by_assessor:
        _add(tables["assessors"], str(assessor), n, milliseconds)
    for series, hour, n, milliseconds in by_hour:
        _add(tables["series"], series, n, milliseconds)
        for table, key in (("days", f"{hour:%Y-%m-%d}"), ("hours", f"{hour:%Y-%m-%dT%H}")):
            _add(times[table].setdefault(key, {}), series, n, milliseconds)
    return {
        **tables,
        "days": dict(sorted(times["days"].items())[-KEPT_DAYS:]),
        "hours": dict(sorted(times["hours"].items())[-KEPT_HOURS:]),
    }


def _add(table: dict[str, Any], key: str, n: int, milliseconds: int) -> None:
    known = table.get(key, [0, 0])
    table[key] = [known[0] + n, known[1] + int(milliseconds)]


def agreement(arrays: CampaignArrays) -> dict[str, list[float]]:
    """Return by assessor how often others give an item the same grade, and on how many items others have judged."""
    n_grades, n_assessors = arrays.n_grades, len(arrays.assessors)
    cell = arrays.label_item * n_grades + arrays.label_grade
    same = np.bincount(cell, minlength=arrays.judged.size * n_grades)[cell] - 1
    others = np.bincount(arrays.label_item, minlength=arrays.judged.size)[arrays.label_item] - 1
    shared = others > 0
    who = arrays.label_assessor[shared]
    n = np.bincount(who, minlength=n_assessors)
    total = np.bincount(who, weights=same[shared] / others[shared], minlength=n_assessors)
    return {
        str(person.pk): [round(float(total[place] / n[place]), 6), int(n[place])]
        for place, person in enumerate(arrays.assessors)
        if n[place]
    }


# -- reading it -----------------------------------------------------------------------------------------------


def filled_days(activity: Activity, today: datetime, n_days: int) -> tuple[list[str], dict[str, list[int]]]:
    """Return the last days with their judgments by series, empty days too, from the first of them that has any."""
    days = activity.get("days", {})
    wanted = [f"{today - timedelta(days=back):%Y-%m-%d}" for back in range(n_days - 1, -1, -1)]
    while wanted and wanted[0] not in days:
        wanted.pop(0)
    return wanted, _by_series(days, wanted)


def filled_hours(activity: Activity, now: datetime, n_hours: int) -> tuple[list[str], dict[str, list[int]]]:
    """Return the last hours with their judgments by series, empty hours too, from the first that has any."""
    hours = activity.get("hours", {})
    wanted = [f"{now - timedelta(hours=back):%Y-%m-%dT%H}" for back in range(n_hours - 1, -1, -1)]
    while wanted and wanted[0] not in hours:
        wanted.pop(0)
    return wanted, _by_series(hours, wanted)


def _by_series(table: dict[str, Any], wanted: list[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(lambda: [0] * len(wanted))
    for place, key in enumerate(wanted):
        for series, (n, _) in table.get(key, {}).items():
            found[series][place] = n
    return {series: found[series] for series in SERIES if series in found}


def a_day(activity: Activity, now: datetime, n_days: int = 7) -> float | None:
    """Return how many judgments came a day lately, from the first day on that had any; None if there are none."""
    days, series = filled_days(activity, now, n_days)
    if not days:
        return None
    first = datetime.fromisoformat(days[0]).replace(tzinfo=UTC)
    passed = max((now - first).total_seconds() / 86_400, 1 / 24)
    return sum(map(sum, series.values())) / passed
