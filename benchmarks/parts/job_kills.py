"""Background jobs under kills, and an import behind another person's releases: on the whole product."""

import io
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count, cycle
from pathlib import Path
from typing import Any

import psutil
from parts.throwaway import kill_tree, make_campaign, set_up_django

from touchstone import embedded

N_RELEASES = 15
TOPICS = 30_000  # of an import under kills: some seconds of work
PATIENCE = 600.0
PAUSE = 1.0  # seconds between two kills, at least
LANE_OF = {"quick": "quick", "worker": "heavy"}


def _queue(name: str, n_topics: int, collection: Any, user: Any, lane: str = "") -> Any:
    """Queue an import of new topics, in another lane than its own if one is named."""
    from django.core.files.uploadedfile import InMemoryUploadedFile
    from django.db import transaction

    from judging.services.files import queue_import
    from touchstone.models import Job

    content = "".join(f"{name}-{n}\ta topic\n" for n in range(n_topics)).encode()
    file = InMemoryUploadedFile(io.BytesIO(content), None, f"{name}.tsv", None, len(content), None)
    with transaction.atomic():
        job = queue_import(kind="topics", files=[file], collection=collection, user=user)
        if lane:
            Job.objects.filter(pk=job.pk).update(lane=lane, turn=0)
    return job


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {PATIENCE:.0f} s")
        time.sleep(0.02)


def _unfinished() -> int:
    from touchstone.models import Job

    return int(Job.objects.filter(state__in=Job.ACTIVE).count())


# -- an import behind releases ----------------------------------------------------------------------------------


def measure_lanes(root: Path) -> dict[str, Any]:
    """Return the seconds of an import: alone, behind another person's releases, and behind them in their queue."""
    known = embedded.running_stack(root)
    set_up_django(known["database_url"], known["redis_url"])
    from judging.models import Collection
    from touchstone.models import User

    campaign = make_campaign(200, 4)
    people = [User.objects.create(username=name, role=User.Role.MANAGER) for name in ("rhea", "mara")]
    collection = Collection.objects.create(name="imports")
    names = count()

    def seconds_of_import(lane: str = "") -> float:
        began = time.monotonic()
        job = _queue(f"i{next(names)}", 100, collection, people[1], lane)

        def has_ended() -> bool:
            job.refresh_from_db()
            return not job.is_active

        _until(has_ended)
        assert job.state == job.State.DONE, job.error
        return round(time.monotonic() - began, 2)

    seconds_of_import()  # the worker has loaded what it needs
    found: dict[str, Any] = {"alone": seconds_of_import()}
    for run, (name, lane) in enumerate((("behind_releases", ""), ("control_one_queue", "heavy"))):
        _queue_releases(campaign, people[0], run, turns=not lane)
        began = time.monotonic()
        found[name] = seconds_of_import(lane)
        found[f"{name}_still_waiting"] = _unfinished()
        _until(lambda: _unfinished() == 0)
        found[f"{name}_releases_took"] = round(time.monotonic() - began, 2)
    return {"releases": N_RELEASES, **found}


def _queue_releases(campaign: Any, user: Any, run: int, *, turns: bool) -> None:
    from analytics.releases.services.releasing import make_release
    from touchstone.models import Job

    for number in range(N_RELEASES):
        make_release(campaign=campaign, version=f"{run}.{number}", actor=user)
    if not turns:  # as it was: who came first, comes first
        Job.objects.filter(kind="release").update(turn=0)


# -- each job once ----------------------------------------------------------------------------------------------


def measure_jobs(
    root: Path, seconds: float, n_kills: int, pids: Callable[[], dict[str, int]]
) -> dict[str, Any]:
    """Kill workers and servers while they import; return how often each import took effect."""
    known = embedded.running_stack(root)
    set_up_django(known["database_url"], known["redis_url"])
    from django.db import DatabaseError, InterfaceError, connection

    from judging.models import Collection

    collections = [Collection.objects.create(name=name) for name in ("quick", "heavy")]
    kills: Counter[str] = Counter()
    names, queued = count(), []
    turns = cycle(["quick", "worker", "quick", "redis", "worker", "postgres"])
    end = time.monotonic() + seconds
    while time.monotonic() < end and kills.total() < n_kills:
        try:
            for collection in collections:
                name = f"{collection.name}{next(names)}"
                _queue(name, TOPICS, collection, None, lane=collection.name)
                queued.append(name)
        except (DatabaseError, InterfaceError):  # killed in the middle: it may or may not be queued
            connection.close()
        time.sleep(PAUSE)
        kind = next(turns)
        _wait_for_work(kind, end)
        pid = pids().get(kind)
        if pid is not None and psutil.pid_exists(pid):
            kill_tree(pid)
            kills[kind] += 1
    return {"kills": dict(kills), "queued": len(queued), **_effects(queued)}


def _wait_for_work(kind: str, end: float) -> None:
    """Wait until the worker has an import in its hands that nobody has been killed over."""
    from django.db import DatabaseError, InterfaceError, connection

    from touchstone.models import Job

    while kind in LANE_OF and time.monotonic() < end:
        try:
            if Job.objects.filter(lane=LANE_OF[kind], state="running", attempts=1).exists():
                return
        except (DatabaseError, InterfaceError):
            connection.close()
        time.sleep(0.05)


def _effects(queued: list[str]) -> dict[str, Any]:
    from django.db import DatabaseError, InterfaceError, connection

    from judging.models import Topic
    from touchstone.models import Event, Job

    def has_ended() -> bool:
        try:
            return _unfinished() == 0
        except (DatabaseError, InterfaceError):
            connection.close()
            return False

    _until(has_ended)
    rows = list(Job.objects.values_list("payload", "state", "attempts", "error"))
    name_of = {payload["uploads"][0]["name"]: (state, attempts) for payload, state, attempts, _ in rows}
    lost_attempts = sum(attempts - 1 for _, attempts in name_of.values())
    effects = Counter(_imported_files(Event.objects.filter(verb="imported topics")))
    done = [name for name, (state, _) in name_of.items() if state == "done"]
    return {
        "states": dict(Counter(state for state, _ in name_of.values())),
        "errors": sorted({error for *_, error in rows if error}),
        "attempts_that_were_killed": lost_attempts,
        "forgotten": sum(f"{name}.tsv" not in name_of for name in queued),
        "lost": sum(effects[name] == 0 for name in done),
        "doubled": sum(n > 1 for n in effects.values()),
        "phantom": sum(name not in done for name in effects),
        "topics_missing": len(done) * TOPICS - Topic.objects.count(),
    }


def _imported_files(events: Any) -> Iterator[str]:
    for event in events:
        yield event.detail["file"]
