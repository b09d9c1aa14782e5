"""When a scheduled audit is due: every so many seconds, or at the times of a crontab line; and both in words.

Times are UTC, which has no summer time: no due time is skipped or comes twice. cronsim finds the times, forwards and
backwards; a line is read here, because its words need the values of its fields and a refusal names what is wrong.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone

from cronsim import CronSim

UTC = timezone.utc

MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
WEEKDAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
FIELDS = (
    ("minute", 0, 59, ()),
    ("hour", 0, 23, ()),
    ("day", 1, 31, ()),
    ("month", 1, 12, tuple(name[:3].lower() for name in MONTHS)),
    ("weekday", 0, 7, tuple(name[:3].lower() for name in WEEKDAYS)),
)
LONGEST_MONTH = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
LONGEST_LINE = 60
SPELLED_OUT_TIMES = 4
UNITS = ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


@dataclass(frozen=True)
class Crontab:
    """A checked line: the values each field allows, sorted. Sunday is 0."""

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: tuple[int, ...]
    months: tuple[int, ...]
    weekdays: tuple[int, ...]

    @property
    def line(self) -> str:
        """Return the line in one spelling, every value listed, that every implementation of cron reads alike."""
        days = "*" if len(self.days) == 31 else _comma_list(self.days)
        weekdays = "*" if len(self.weekdays) == 7 else _comma_list(self.weekdays)
        return " ".join(
            (_comma_list(self.minutes), _comma_list(self.hours), days, _comma_list(self.months), weekdays)
        )


def _comma_list(values: Iterable[int]) -> str:
    return ",".join(map(str, values))


# -- reading a line -------------------------------------------------------------------------------------------


def parse_crontab(line: str) -> Crontab:
    """Return the schedule that a line "minute hour day month weekday" means, in UTC.

    A field is `*` or values and ranges joined by commas, each with an optional step: `*/15`, `8-18/2`, `1,15`,
    `mon-fri`. Weekdays are 0 to 7, both Sunday. Days of the month and weekdays together are refused: programs differ in
    whether both must hold or one.

    Raises
    ------
    ValueError
        Anything else; a line that is never due, such as 30 February.

    Examples
    --------
    >>> parse_crontab("30 2 * * mon,thu").weekdays
    (1, 4)
    """
    parts = line.split()
    if len(line) > LONGEST_LINE or len(parts) != len(FIELDS):
        given = f"{len(line)} characters" if len(line) > LONGEST_LINE else f"{len(parts)} fields"
        raise ValueError(
            f"a crontab line has 5 fields, minute hour day month weekday, and at most {LONGEST_LINE} characters; "
            f"got {given}"
        )
    minutes, hours, days, months, weekdays = (
        _values(part, *field) for part, field in zip(parts, FIELDS, strict=True)
    )
    weekdays = tuple(sorted({weekday % 7 for weekday in weekdays}))
    if len(days) < 31 and len(weekdays) < 7:
        raise ValueError("give days of the month or weekdays, not both: leave one of them *")
    if not any(day <= LONGEST_MONTH[month - 1] for day in days for month in months):
        raise ValueError("is never due: none of these months has such a day")
    return Crontab(minutes, hours, days, months, weekdays)


def _values(text: str, name: str, least: int, most: int, names: Sequence[str]) -> tuple[int, ...]:
    """Return the sorted values of one field."""
    values: set[int] = set()
    for part in text.lower().split(","):
        span, has_step, step = part.partition("/")
        if span == "*":
            first, last = least, (6 if name == "weekday" else most)
        else:
            left, is_range, right = span.partition("-")
            first = _number(left, name, least, most, names)
            last = _number(right, name, least, most, names) if is_range else first
            if has_step and not is_range:
                last = most
            if name == "weekday" and is_range and last == 0:
                last = 7
        if first > last:
            raise ValueError(f"{name}: {span!r} runs backwards")
        stride = _number(step, f"step of {name}", 1, most, ()) if has_step else 1
        values.update(range(first, last + 1, stride))
    return tuple(sorted(values))


def _number(text: str, name: str, least: int, most: int, names: Sequence[str]) -> int:
    if text in names:
        return names.index(text) + least
    number = int(text) if text.isascii() and text.isdigit() and len(text) <= 3 else -1
    if not least <= number <= most:
        raise ValueError(f"{name} must be {least} to {most} or *, got {text[:20]!r}")
    return number


# -- due times ------------------------------------------------------------------------------------------------


def next_due(schedule: Crontab, after: datetime) -> datetime:
    """Return the first due time after a moment.

    Examples
    --------
    >>> next_due(parse_crontab("0 0 29 2 *"), datetime(2026, 1, 1, tzinfo=UTC)).isoformat()
    '2028-02-29T00:00:00+00:00'
    """
    return next(CronSim(schedule.line, _in_utc(after)))


def last_due(schedule: Crontab, at: datetime, since: datetime) -> datetime | None:
    """Return the newest due time that is after `since` and not after `at`; None if there is none.

    After a month's pause there is one due time, not all that were missed.

    Examples
    --------
    >>> monday = parse_crontab("30 2 * * mon")
    >>> last_due(monday, datetime(2026, 11, 21, tzinfo=UTC), datetime(2026, 10, 1, tzinfo=UTC)).isoformat()
    '2026-11-16T02:30:00+00:00'
    """
    # Backwards, the first time found is before the second it starts from: `at` itself may be due.
    second_after = _in_utc(at).replace(microsecond=0) + timedelta(seconds=1)
    newest = next(CronSim(schedule.line, second_after, reverse=True))
    return newest if newest > _in_utc(since) else None


def last_due_of_interval(every_seconds: int, starts_at: datetime, at: datetime) -> datetime | None:
    """Return the newest of the times starts_at + n every_seconds, n = 1, 2, ..., that is not after `at`, or None.

    Examples
    --------
    >>> last_due_of_interval(3600, datetime(2026, 11, 21, tzinfo=UTC), datetime(2026, 11, 21, 5, 59, tzinfo=UTC))
    datetime.datetime(2026, 11, 21, 5, 0, tzinfo=datetime.timezone.utc)
    """
    if every_seconds < 1:
        raise ValueError(f"every_seconds must be at least 1, got {every_seconds}")
    step, start = timedelta(seconds=every_seconds), _in_utc(starts_at)
    periods = (_in_utc(at) - start) // step
    return start + periods * step if periods >= 1 else None


def next_due_of_interval(every_seconds: int, starts_at: datetime, after: datetime) -> datetime:
    """Return the first of the times starts_at + n every_seconds, n = 1, 2, ..., after a moment."""
    newest = last_due_of_interval(every_seconds, starts_at, after)
    return (newest or _in_utc(starts_at)) + timedelta(seconds=every_seconds)


def _in_utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError(f"a moment needs a time zone, got {moment}")
    return moment.astimezone(UTC)


# -- in words -------------------------------------------------------------------------------------------------


def interval_words(every_seconds: int) -> str:
    """Return how often in words.

    Examples
    --------
    >>> [interval_words(seconds) for seconds in (1, 5400, 86400, 604800)]
    ['every second', 'every 90 minutes', 'every day', 'every 7 days']
    """
    for size, unit in UNITS:
        if every_seconds % size == 0:
            count = every_seconds // size
            return f"every {unit}" if count == 1 else f"every {count:,} {unit}s"
    raise ValueError(f"every_seconds must be a whole number, got {every_seconds}")


def crontab_words(schedule: Crontab) -> str:
    """Return the times in words; hours are UTC, which the page states.

    Examples
    --------
    >>> crontab_words(parse_crontab("30 2 * * mon,thu"))
    'every Monday and Thursday at 02:30'
    >>> crontab_words(parse_crontab("*/15 8-18 * * *"))
    'every day every 15 minutes from 08:00 to 18:45'
    """
    return f"{_day_words(schedule)} {_time_words(schedule)}"


def _day_words(schedule: Crontab) -> str:
    if len(schedule.weekdays) < 7:
        monday_first = sorted(schedule.weekdays, key=lambda day: (day - 1) % 7)
        if monday_first == [1, 2, 3, 4, 5]:
            days = "every weekday from Monday to Friday"
        else:
            days = "every " + word_list(WEEKDAYS[day] for day in monday_first)
    elif len(schedule.days) < 31:
        days = "on day " + word_list(map(str, schedule.days))
        days += " of every month" if len(schedule.months) == 12 else ""
    else:
        days = "every day"
    if len(schedule.months) < 12:
        link = " of " if len(schedule.days) < 31 else " in "
        days += link + word_list(MONTHS[month - 1] for month in schedule.months)
    return days


def _time_words(schedule: Crontab) -> str:
    minutes, hours = schedule.minutes, schedule.hours
    times = [f"{hour:02d}:{minute:02d}" for hour in hours for minute in minutes]
    if len(times) <= SPELLED_OUT_TIMES:
        return "at " + word_list(times)
    often = _minute_words(minutes)
    if len(hours) == 24:
        return often
    if len(hours) > 1 and hours == tuple(range(hours[0], hours[-1] + 1)):
        return f"{often} from {times[0]} to {times[-1]}"
    return f"{often} in the hours {word_list(f'{hour:02d}' for hour in hours)}"


def _minute_words(minutes: tuple[int, ...]) -> str:
    step = minutes[1] - minutes[0] if len(minutes) > 1 else 60
    if minutes == tuple(range(0, 60, step)) and 60 % step == 0:
        return {1: "every minute", 60: "every hour"}.get(step, f"every {step} minutes")
    return f"at minute {word_list(map(str, minutes))} of the hour"


def word_list(words: Iterable[str]) -> str:
    """Return words as a list in a sentence.

    >>> word_list(["a", "b", "c"])
    'a, b and c'
    """
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
