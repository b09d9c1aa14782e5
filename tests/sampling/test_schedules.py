"""When scheduled audits are due, checked against Celery's crontab and counts minute by minute, and in words."""

import re
from datetime import UTC, datetime, timedelta, timezone
from functools import cache

import numpy as np
import pytest
from celery.schedules import crontab
from hypothesis import given, settings
from hypothesis import strategies as st

from sampling.schedules import (
    crontab_words,
    interval_words,
    last_due,
    last_due_of_interval,
    next_due,
    next_due_of_interval,
    parse_crontab,
)

START = datetime(2026, 11, 21, 11, 45, 30, tzinfo=UTC)  # a Saturday
MINUTES = st.sampled_from(["*", "0", "*/15", "30,45", "10-20/5"])
HOURS = st.sampled_from(["*", "2", "*/6", "8-18", "0,23"])
DAYS = st.sampled_from([("*", "*"), ("1", "*"), ("*/10", "*"), ("*", "mon"), ("*", "sat,sun"), ("*", "1-5")])
MONTHS = st.sampled_from(["*", "2", "12", "1-6", "jan,nov"])


def by_the_minute(line, start, minutes):
    """Return the due times within so many minutes after the start, asking every minute's own fields."""
    minute, hour, day, month, weekday = line.split()
    allowed = crontab(minute, hour, weekday, day, month)  # Celery's reading of the fields, not of the time
    found = []
    moment = start.replace(second=0, microsecond=0)
    for _ in range(minutes):
        moment += timedelta(minutes=1)
        if (
            moment.minute in allowed.minute
            and moment.hour in allowed.hour
            and moment.day in allowed.day_of_month
            and moment.month in allowed.month_of_year
            and moment.isoweekday() % 7 in allowed.day_of_week
        ):
            found.append(moment)
    return found


@given(MINUTES, HOURS, DAYS, MONTHS, st.integers(0, 5000))
@settings(max_examples=25, deadline=None)
def test_due_times_are_those_found_by_looking_at_every_minute(minute, hour, days, month, offset):
    line = f"{minute} {hour} {days[0]} {month} {days[1]}"
    start = START + timedelta(minutes=offset)
    expected = by_the_minute(line, start, 2 * 1440)
    schedule, found, moment = parse_crontab(line), [], start
    end = start.replace(second=0) + timedelta(minutes=2 * 1440)
    while (moment := next_due(schedule, moment)) <= end:
        found.append(moment)
    assert found == expected
    assert last_due(schedule, end, start) == (expected[-1] if expected else None)


def field(least, most):
    """Return random fields: lists of values and of ranges, with and without steps."""
    value = st.integers(least, most)
    span = st.tuples(value, value).map(lambda ends: f"{min(ends)}-{max(ends)}")
    step = st.tuples(st.one_of(st.just("*"), span, value.map(str)), st.integers(1, most)).map(
        lambda parts: f"{parts[0]}/{parts[1]}"
    )
    return st.lists(st.one_of(value.map(str), span, step), min_size=1, max_size=3).map(",".join)


LINES = st.one_of(
    st.tuples(field(0, 59), field(0, 23), st.just("*"), field(1, 12), field(1, 6)),
    st.tuples(field(0, 59), field(0, 23), field(1, 28), field(1, 12), st.just("*")),
    st.tuples(field(0, 59), field(0, 23), st.sampled_from(["29", "30", "31", "29-31"]), st.just("2,3"), st.just("*")),
).map(" ".join)  # fmt: skip
MINUTE_ZERO, TEN_YEARS = np.datetime64("2095-06-01T00:00", "m"), 3652 * 1440  # 2100 has no 29 February


@cache
def every_minute():
    """Return the fields of every minute of ten years, as a calendar names them: minute, hour, day, month, weekday."""
    moments = MINUTE_ZERO + np.arange(TEN_YEARS)
    hours, days, months = (moments.astype(f"datetime64[{unit}]") for unit in "hDM")
    sunday_is_0 = (days.astype(np.int64) + 4) % 7  # 1970-01-01 was a Thursday
    return (
        (moments - hours).astype(np.int8),
        (hours - days).astype(np.int8),
        (days - months).astype(np.int8) + 1,
        (months.astype(np.int64) % 12).astype(np.int8) + 1,
        sunday_is_0.astype(np.int8),
    )


def values_of(text, least, most):
    """Return what a field allows, as the manual of crontab(5) reads it: written apart from the product."""
    allowed = []
    for part in text.split(","):
        span, _, step = part.partition("/")
        ends = [least, most] if span == "*" else [int(end) for end in span.split("-")]
        first, last = ends[0], most if step and len(ends) == 1 else ends[-1]
        allowed.extend(range(first, last + 1, int(step or 1)))
    return np.array(allowed, dtype=np.int8)


@pytest.mark.slow
@given(LINES, st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_due_times_of_random_lines_are_those_of_ten_years_of_minutes(line, seed):
    bounds = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 7))
    is_due = np.ones(TEN_YEARS, dtype=bool)
    for text, bound, values in zip(line.split(), bounds, every_minute(), strict=True):
        allowed = values_of(text, *bound)
        is_due &= np.isin(values, allowed % 7 if bound == (0, 7) else allowed)
    due = np.flatnonzero(is_due)
    start = MINUTE_ZERO.item().replace(tzinfo=UTC)
    schedule = parse_crontab(line)
    for minute in np.random.default_rng(seed).integers(0, TEN_YEARS, 200).tolist() + due[:50].tolist():
        moment = start + timedelta(minutes=minute)
        place = np.searchsorted(due, minute, side="right")  # what is due at this very minute is not next
        if place < len(due):
            assert next_due(schedule, moment) == start + timedelta(minutes=int(due[place]))
        newest = start + timedelta(minutes=int(due[place - 1])) if place else None
        assert last_due(schedule, moment, start - timedelta(seconds=1)) == newest


@pytest.mark.parametrize(
    ("line", "due"),
    [
        ("30 2 * * mon,thu", "2026-11-23T02:30"),
        ("0 0 29 2 *", "2028-02-29T00:00"),
        ("45 11 * * 6", "2026-11-28T11:45"),  # 30 seconds too late for today's
        ("46 11 * * 6", "2026-11-21T11:46"),
        ("0 0 * * 7", "2026-11-22T00:00"),  # 7 is Sunday, as 0 is
        ("0 0 1 jan *", "2027-01-01T00:00"),
        ("0 0 31 * *", "2026-12-31T00:00"),
        ("0 0 * * fri-sun", "2026-11-22T00:00"),
    ],
)
def test_the_next_due_time_is_right(line, due):
    assert next_due(parse_crontab(line), START) == datetime.fromisoformat(f"{due}:00+00:00")


def test_29_february_is_found_across_the_year_2100():
    assert next_due(parse_crontab("0 0 29 2 *"), datetime(2096, 3, 1, tzinfo=UTC)).year == 2104


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("", "got 0 fields"),
        ("* * * *", "got 4 fields"),
        ("* * * * * *", "got 6 fields"),
        ("60 * * * *", "minute must be 0 to 59 or *, got '60'"),
        ("-1 * * * *", "minute must be 0 to 59"),
        ("* 24 * * *", "hour must be 0 to 23"),
        ("* * 0 * *", "day must be 1 to 31"),
        ("* * * 13 *", "month must be 1 to 12"),
        ("* * * * 8", "weekday must be 0 to 7"),
        ("* * * * maandag", "weekday must be 0 to 7"),
        ("5-1 * * * *", "minute: '5-1' runs backwards"),
        ("*/0 * * * *", "step of minute must be 1 to 59"),
        ("*/ * * * *", "step of minute"),
        ("1, * * * *", "minute must be 0 to 59 or *, got ''"),
        ("\u0663 * * * *", "minute must be 0 to 59"),  # an Arabic digit three: isdigit() says yes
        ("1\u00b2 * * * *", "minute must be 0 to 59"),
        ("1e1 * * * *", "minute must be 0 to 59"),
        ("9" * 50 + " * * * *", "minute must be 0 to 59"),
        ("0 0 30 2 *", "never due"),
        ("0 0 31 4,6,9,11 *", "never due"),
        ("0 0 1 * mon", "not both"),
        ("0 0 L * *", "day must be 1 to 31 or *, got 'l'"),  # cronsim would take these four
        ("0 0 LW * *", "day must be 1 to 31 or *, got 'lw'"),
        ("0 0 * * 5L", "weekday must be 0 to 7 or *, got '5l'"),
        ("0 0 * * mon#2", "weekday must be 0 to 7 or *, got 'mon#2'"),
        ("@daily", "got 1 fields"),
        ("*;DROP * * * *", "minute must be"),
        ("0 " * 40, "at most 60 characters"),
    ],
)
def test_a_line_that_means_nothing_is_refused_with_its_reason(line, reason):
    with pytest.raises(ValueError, match=re.escape(reason)):
        parse_crontab(line)


def test_of_all_missed_times_only_the_newest_is_due_and_none_from_before_the_schedule():
    schedule = parse_crontab("0 * * * *")
    assert last_due(schedule, START, START - timedelta(days=30)) == datetime(2026, 11, 21, 11, tzinfo=UTC)
    assert last_due(schedule, START, datetime(2026, 11, 21, 11, tzinfo=UTC)) is None
    assert last_due(schedule, START, START) is None


def test_an_interval_is_due_every_so_many_seconds_after_its_start():
    assert last_due_of_interval(60, START, START + timedelta(seconds=59)) is None
    assert last_due_of_interval(60, START, START + timedelta(seconds=60)) == START + timedelta(seconds=60)
    # Down for a day: the newest one alone.
    after = START + timedelta(days=1, seconds=59)
    assert last_due_of_interval(60, START, after) == START + timedelta(days=1)
    assert next_due_of_interval(60, START, after) == START + timedelta(days=1, seconds=60)
    assert next_due_of_interval(60, START, START) == START + timedelta(seconds=60)


def test_a_moment_of_another_zone_is_the_same_moment_and_one_without_a_zone_is_refused():
    schedule = parse_crontab("30 2 * * *")
    elsewhere = START.astimezone(timezone(timedelta(hours=9)))
    assert next_due(schedule, elsewhere) == next_due(schedule, START)
    assert next_due(schedule, elsewhere).tzinfo is UTC
    with pytest.raises(ValueError, match="needs a time zone"):
        next_due(schedule, START.replace(tzinfo=None))
    with pytest.raises(ValueError, match="at least 1, got 0"):
        last_due_of_interval(0, START, START)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("30 2 * * mon,thu", "every Monday and Thursday at 02:30"),
        ("0 0 * * *", "every day at 00:00"),
        ("* * * * *", "every day every minute"),
        ("0 * * * *", "every day every hour"),
        ("*/15 * * * *", "every day every 15 minutes"),
        ("15 8-10 * * sun", "every Sunday at 08:15, 09:15 and 10:15"),
        ("*/30 8-18 * * 1-5", "every weekday from Monday to Friday every 30 minutes from 08:00 to 18:30"),
        ("0 6 1,15 * *", "on day 1 and 15 of every month at 06:00"),
        ("0 6 1 1,7 *", "on day 1 of January and July at 06:00"),
        ("0 6 * jun sat,sun", "every Saturday and Sunday in June at 06:00"),
        ("5,25 * * * *", "every day at minute 5 and 25 of the hour"),
        ("*/20 1,5,7 * * *", "every day every 20 minutes in the hours 01, 05 and 07"),
    ],
)
def test_a_schedule_is_said_in_words(line, words):
    assert crontab_words(parse_crontab(line)) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(1, "every second"), (61, "every 61 seconds"), (3600, "every hour"), (172800, "every 2 days")],
)
def test_an_interval_is_said_in_words(seconds, words):
    assert interval_words(seconds) == words
