"""What `manage.py metrics` tells Prometheus, one process a host. No label names a person, an item or its purpose.

Most of it is read at each scrape: from the database, the disks, and the counters that all processes of the host leave
in files. Where the database does not answer, its numbers are absent, and `touchstone_check{check="database"}` is 0.
"""

import http.client
import logging
import math
import threading
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection, transaction
from django.db.models import Count, DurationField, ExpressionWrapper, Max, Min, Q, Sum
from django.db.models.functions import Now
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric, SummaryMetricFamily
from prometheus_client.registry import Collector

from touchstone import counters, disks, health, lanes, replica, signs
from touchstone.models import Job, Seal, WorkerHeartbeat, ledger_head

logger = logging.getLogger(__name__)
LONGEST_STATEMENT = 3000  # milliseconds
SITE_SECONDS = 3.0
RECENT = timedelta(days=1)


def _gauge(name: str, help_text: str, value: float | None) -> Iterator[Metric]:
    """One number, or nothing where there is none."""
    if value is not None:
        yield GaugeMetricFamily(f"touchstone_{name}", help_text, value=value)


def _gauges(name: str, help_text: str, label: str, values: dict[str, float]) -> Metric:
    family = GaugeMetricFamily(f"touchstone_{name}", help_text, labels=[label])
    for value_of, value in values.items():
        family.add_metric([value_of], value)
    return family


# -- without the database -------------------------------------------------------------------------------------------


def checks() -> Iterator[Metric]:
    """The answers of /readyz, as this process finds them."""
    found = health.watch.health().checks
    values = {name: float(words == health.OK) for name, words in found.items()}
    yield _gauges("check", "1 where the check of /readyz is ok", "check", values)


def site() -> Iterator[Metric]:
    yield from _gauge("site_up", "1 where the web pages answer /livez", float(_site_answers()))


def _site_answers() -> bool:
    """Ask as the proxy does: for an allowed host, over TLS."""
    host = settings.ALLOWED_HOSTS[0].lstrip("*.") or "localhost"
    headers = {"Host": host, "X-Forwarded-Proto": "https"}
    asked = urllib.request.Request(f"{settings.METRICS_SITE.rstrip('/')}/livez", headers=headers)  # noqa: S310
    try:
        with urllib.request.urlopen(asked, timeout=SITE_SECONDS) as answer:  # noqa: S310 (the operator's own address)
            return bool(answer.status == 200)
    except (
        OSError,
        http.client.HTTPException,
    ):
        return False  # refused, too slow, or no 200: it is down, which is what was asked


def free_space() -> Iterator[Metric]:
    values = {name: float(n) for name, n in disks.free_bytes().items()}
    yield _gauges("disk_free_bytes", "Free on the disk of each folder", "folder", values)
    yield from _gauge("disk_floor_bytes", "Below it jobs wait (DISK_FLOOR)", settings.DISK_FLOOR)


def counts() -> Iterator[Metric]:
    """What the processes of this host have counted since their first start."""
    requests = CounterMetricFamily("touchstone_requests", "Answers, by view", labels=["view", "status"])
    seconds = SummaryMetricFamily("touchstone_job_seconds", "Attempts and their duration", labels=["kind"])
    reads = CounterMetricFamily("touchstone_replica_requests", "Pages for the replica", labels=["outcome"])
    totals = counters.totals()
    for labels, n in sorted(totals.items()):
        if labels[0] == "requests" and len(labels) == 3:
            requests.add_metric(labels[1:], n)
        elif labels[0] == "replica requests":
            reads.add_metric(labels[1:], n)
        elif labels[0] == "job runs":
            milliseconds = totals["job milliseconds", labels[1]]
            seconds.add_metric([labels[1]], count_value=n, sum_value=milliseconds / 1000)
    yield from (requests, seconds, reads)
    simple = {
        "job_faults": ("job faults", "Attempts of jobs that ended in a fault, without refusals"),
        "log_lines_suppressed": ("suppressed log lines", "Repeated errors that were only counted"),
    }
    for name, (key, help_text) in simple.items():
        yield CounterMetricFamily(f"touchstone_{name}", help_text, value=totals[(key,)])


# -- with the database ----------------------------------------------------------------------------------------------


def job_states() -> Iterator[Metric]:
    """Jobs that wait or run now; of those that ended, the ones asked for in the last 24 hours."""
    recent = Q(state__in=Job.ACTIVE) | Q(created_at__gt=Now() - RECENT)
    found = Job.objects.order_by().filter(recent).values_list("lane", "state").annotate(n=Count("pk"))
    numbers = {(lane, state): n for lane, state, n in found}
    family = GaugeMetricFamily(
        "touchstone_jobs", "Jobs: active ones, and ended ones of 24 hours", labels=["lane", "state"]
    )
    for lane in lanes.SECONDS:
        for state in Job.State.values:
            family.add_metric([lane, state], numbers.get((lane, state), 0))
    yield family


def oldest_jobs() -> Iterator[Metric]:
    waiting = Job.objects.order_by().filter(state=Job.State.QUEUED).values_list("lane")
    age = ExpressionWrapper(Now() - Min("created_at"), output_field=DurationField())
    found = {lane: since.total_seconds() for lane, since in waiting.annotate(age=age) if since is not None}
    values = {lane: found.get(lane, 0.0) for lane in lanes.SECONDS}
    yield _gauges("job_oldest_seconds", "Age of the oldest waiting job; 0: none waits", "lane", values)


_known_seals: dict[
    str, tuple[int, int]
] = {}  # of each table the newest seal that was counted, and the rows so far


def ledger() -> Iterator[Metric]:
    """Rows that are sealed, table by table, and the ledger's head. A scrape reads the seals since the last one."""
    newest = max((key for key, _ in _known_seals.values()), default=0)
    if newest and not Seal.objects.filter(pk=newest).exists():  # a backup was restored
        _known_seals.clear()
        newest = 0
    found = Seal.objects.order_by().filter(pk__gt=newest).values_list("table")
    for table, key, n in found.annotate(key=Max("pk"), n=Sum("n_rows")):
        _known_seals[table] = (key, _known_seals.get(table, (0, 0))[1] + n)
    rows = {table: float(n) for table, (_, n) in _known_seals.items()}
    yield _gauges("chain_rows", "Rows of the table that are sealed", "table", rows)
    head = ledger_head()
    yield _gauges("chain_head", "The ledger's newest head", "head", {head: 1.0} if head else {})


def ages() -> Iterator[Metric]:
    """Seconds since each of `signs.SIGNS` was last heard of; of lanes infinite where there was none, of others absent.

    Whoever has this process know the folder of backups wants some: that they are wanted is written down once.
    """
    if settings.BACKUP:
        signs.sign_once(signs.BACKUPS_WANTED)
    age = ExpressionWrapper(Now() - Max("seen_at"), output_field=DurationField())
    known = WorkerHeartbeat.objects.order_by().filter(name__in=signs.SIGNS)
    found = {name: since.total_seconds() for name, since in known.values_list("name").annotate(age=age)}
    of_lanes = {lane: found.pop(key, math.inf) for key, lane in signs.LANE_SIGNS.items()}
    yield _gauges("worker_age_seconds", "Since the last sign of a worker of the lane", "lane", of_lanes)
    wanted = found.pop(signs.BACKUPS_WANTED, None)
    yield from _gauge("backup_wanted_seconds", "Since it is known that backups are to be made", wanted)
    for name, seconds in found.items():
        yield from _gauge(f"{name.replace(' ', '_')}_age_seconds", f"Since the last sign of: {name}", seconds)


def connections() -> Iterator[Metric]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'), "
            "current_setting('max_connections')::int"
        )
        n, most = cursor.fetchone()
    yield from _gauge("connections", "Connections to PostgreSQL, of everybody", n)
    yield from _gauge("connections_limit", "PostgreSQL's max_connections", most)


def replica_lag() -> Iterator[Metric]:
    behind = replica.watch.behind() if replica.is_there() else None
    yield from _gauge("replica_behind_seconds", "What was written so long ago at most may be missing", behind)


def clock() -> Iterator[Metric]:
    seconds = health.clock_difference().total_seconds()
    yield from _gauge("clock_difference_seconds", "This host's clock against the database's", seconds)


Source = Callable[[], Iterable[Metric]]
LOCAL: tuple[Source, ...] = (checks, site, free_space, counts)
STORED: tuple[Source, ...] = (job_states, oldest_jobs, ages, ledger, connections, clock, replica_lag)


class Product(Collector):
    """Everything, looked at anew at every scrape; one scrape at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    def collect(self) -> Iterator[Metric]:
        with self._lock:
            try:
                for source in LOCAL:
                    yield from source()
                yield from _numbers_of_database()
            finally:
                replica.close()
                connection.close()  # the thread ends with its scrape


def _in_time(source: Source) -> list[Metric]:
    """Return what a source says, within a limit that is its transaction's: a pooler lends the session to others."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT set_config('statement_timeout', %s, TRUE)", [str(LONGEST_STATEMENT)])
        return list(source())


def _numbers_of_database() -> Iterator[Metric]:
    """What can be had of the database: one that is away is asked once; without a table its numbers lack."""
    try:
        connection.ensure_connection()
    except (DatabaseError, InterfaceError):
        logger.warning("metrics: no numbers of the database", exc_info=True)
        return
    for source in STORED:
        try:
            yield from _in_time(source)
        except (DatabaseError, InterfaceError):
            logger.warning("metrics: %s is absent", source.__name__, exc_info=True)
