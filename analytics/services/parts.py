"""The recomputation of a large campaign by several jobs, on any workers: read once, estimate in parts, store.

`estimate` reads one moment of the campaign into files (analytics/frames/segments.py) and queues an `estimate-part` for
some measures of the same gains, which share what has to be fitted; whichever of them ends last queues `estimate-merge`,
which stores all tables. Nobody waits for anybody: a single worker does one after the other. A part that is killed is
done anew; if one fails, the others end too, nothing is stored, and the next tick begins again. Each measure is computed
by the same code from the same arrays, so that the numbers are those of one job, to the last digit.
"""

import contextlib
import errno
import json
import threading
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import connection, transaction
from django.utils import timezone

from analytics.frames import campaign_arrays, forget
from analytics.frames.moment import one_moment
from analytics.frames.segments import read_segments, write_segments
from analytics.models import Computation
from analytics.numbers.estimates import estimate_columns
from analytics.services.audit_forecast import store_forecasts
from analytics.services.basis import Basis
from analytics.services.recomputation import (
    MERGE,
    PART,
    Progress,
    basis_of,
    estimated_measures,
    is_in_parts,
    measures_of,
    store,
)
from analytics.services.table_files import packed_table, unpacked_table
from judging.models import Campaign, Judgment
from sampling.measures.families import grade_gains
from sampling.measures.registry import parse_measure
from touchstone import jobs, memory
from touchstone.files import MOMENTS, stream
from touchstone.models import Job

LARGE = 500_000  # judgments above which a campaign is computed so
JUDGMENTS_A_SEGMENT = 500_000
MEASURES_A_PART = 4  # at most: a part has to end within its lane's time
ASKED = "asked.json"


class PartsRefused(Exception):
    """The parts of this moment do not make a computation; the next one begins anew."""


@dataclass(frozen=True)
class Moment:
    """The files of one moment of a campaign."""

    campaign: Campaign
    key: str

    @property
    def folder(self) -> str:
        return f"{MOMENTS}/{self.campaign.pk}/{self.key}"

    def write(self, name: str, content: bytes) -> None:
        """Store a file, in place of what an attempt that was killed has left."""
        path = f"{self.folder}/{name}"
        default_storage.delete(path)
        default_storage.save(path, ContentFile(content))

    def read(self, name: str) -> bytes:
        with contextlib.closing(stream(f"{self.folder}/{name}")) as source:
            return source.read()

    def siblings(self, n: int) -> list[str]:
        """Return the keys that the jobs of so many parts have for ever."""
        return [f"{PART} {self.key} {number}" for number in range(n)]


def is_large(campaign: Campaign) -> bool:
    """Return whether the campaign is computed in parts; looks at no more judgments than that takes."""
    return Judgment.objects.filter(assessor__campaign=campaign).order_by()[: LARGE + 1].count() > LARGE


def begin(campaign: Campaign, progress: Progress = lambda *_: None) -> dict[str, Any]:
    """Read the campaign's moment into files, and queue the parts; return what the job's result says of it."""
    if is_in_parts(campaign):
        return {"moment": None}
    memory.return_large()
    forget_moments(campaign)
    forget(campaign)  # what a screening has kept is not needed beside the moment
    started = timezone.now()
    moment = Moment(campaign, str(uuid.uuid4()))
    progress(0, 2, "reading judgments")
    with one_moment(campaign) as now, now.reading():
        arrays = campaign_arrays(campaign)
    progress(1, 2, f"writing {arrays.n_judgments:,} judgments in segments")
    write_segments(arrays, -(-arrays.n_judgments // JUDGMENTS_A_SEGMENT), moment.write)
    measures = estimated_measures(arrays, measures_of(campaign))
    del arrays
    memory.give_back()
    shared = measures_of_parts(campaign, measures)
    asked = {
        "started": started.isoformat(),
        "measures": measures,
        "parts": shared,
        "settings": _settings(campaign),
    }
    moment.write(ASKED, json.dumps(asked).encode())
    for number, sibling in enumerate(moment.siblings(len(shared))):
        payload = {"campaign": str(campaign.pk), "moment": moment.key, "part": number}
        jobs.enqueue(kind=PART, payload=payload, period_key=sibling)
    if not measures:
        _queue_merge(moment)
    return {"moment": moment.key, "parts": len(shared)}


def measures_of_parts(campaign: Campaign, measures: Sequence[str]) -> list[list[int]]:
    """Return the measures of every part by their places: all of a part have the same gains, so they share the fits."""
    scale = campaign.scale
    alike: dict[tuple[float, ...], list[int]] = {}
    for place, name in enumerate(measures):
        measure = parse_measure(name)
        gains = grade_gains(measure, scale.gains(), measure.relevant_grade or scale.relevant_grade)
        alike.setdefault(tuple(gains.tolist()), []).append(place)
    return [
        places[start : start + MEASURES_A_PART]
        for places in alike.values()
        for start in range(0, len(places), MEASURES_A_PART)
    ]


def do_part(campaign: Campaign, key: str, part: int, progress: Progress = lambda *_: None) -> dict[str, Any]:
    """Estimate the measures of a part, and keep their tables for the merge."""
    moment = Moment(campaign, key)
    asked = _questions(moment)
    n_parts, places = len(asked["parts"]), asked["parts"][part]
    siblings = Job.objects.filter(period_key__in=moment.siblings(n_parts))
    if siblings.filter(state__in=[Job.State.FAILED, Job.State.CANCELLED]).exists():
        raise PartsRefused("another part of the same numbers failed: they begin anew")
    n_steps = len(places) + 1
    memory.return_large()
    progress(0, n_steps, "reading segments")
    basis = _open(moment)
    tables: dict[str, list[str]] = {}
    for step, place in enumerate(places, start=1):
        measure = asked["measures"][place]
        progress(step, n_steps, f"estimating {measure}")
        tables[str(place)] = []
        for table in estimate_columns(basis, measure):
            name = f"table-{place:04d}-{table.method}.parquet"
            moment.write(name, packed_table(table))
            tables[str(place)].append(name)
        memory.give_back()
    progress(n_steps, n_steps, "estimated")
    with connection.cursor() as cursor:  # held to the end of the job: the last one sees all others done
        cursor.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", [moment.folder])
    if siblings.filter(state=Job.State.DONE).count() == n_parts - 1:
        _queue_merge(moment)
    if not siblings.filter(state=Job.State.QUEUED).exists():
        del basis
        _close()  # nothing is left for this process but, at most, the merge
    return {"measures": [asked["measures"][place] for place in places], "tables": tables}


def merge(campaign: Campaign, key: str, progress: Progress = lambda *_: None) -> Computation:
    """Store the tables of all parts as one new computation."""
    moment = Moment(campaign, key)
    asked = _questions(moment)
    done = Job.objects.filter(period_key__in=moment.siblings(len(asked["parts"])))
    kept: dict[str, list[str]] = {}
    for result in done.values_list("result", flat=True):
        kept |= result["tables"]
    memory.return_large()
    progress(0, 3, "reading segments")
    basis = _open(moment)
    progress(1, 3, "storing")
    names = [name for place in range(len(asked["measures"])) for name in kept[str(place)]]
    tables = [unpacked_table(moment.read(name)) for name in names]
    began = datetime.fromisoformat(asked["started"])
    computation = store(basis, tables, lambda: (timezone.now() - began).total_seconds())
    progress(2, 3, "forecasting the next audit")
    store_forecasts(computation, basis.arrays, campaign, basis.predictions)
    progress(3, 3, "done")
    del basis
    _close()
    transaction.on_commit(lambda: _forget(moment), robust=True)
    return computation


def forget_moments(campaign: Campaign) -> None:
    """Delete the files of the campaign's moments, and what this process has read of them."""
    _close()
    with contextlib.suppress(FileNotFoundError):  # there were none
        for key in default_storage.listdir(f"{MOMENTS}/{campaign.pk}")[0]:
            _forget(Moment(campaign, key))


def _forget(moment: Moment) -> None:
    """Delete the files of a moment; the folder stays if an attempt that was given up still writes into it."""
    for name in default_storage.listdir(moment.folder)[1]:
        default_storage.delete(f"{moment.folder}/{name}")
    try:
        default_storage.delete(moment.folder)
    except OSError as error:
        if error.errno != errno.ENOTEMPTY:
            raise


def _queue_merge(moment: Moment) -> None:
    payload = {"campaign": str(moment.campaign.pk), "moment": moment.key}
    jobs.enqueue(kind=MERGE, payload=payload, period_key=f"{MERGE} {moment.key}")


def _settings(campaign: Campaign) -> dict[str, Any]:
    """Return what numbers depend on and is no part of the arrays: all parts must find the same."""
    scale = campaign.scale
    return {
        "bronze_score": campaign.bronze_score,
        "gains": list(scale.gains()),
        "relevant": scale.relevant_grade,
    }


def _questions(moment: Moment) -> dict[str, Any]:
    try:
        asked: dict[str, Any] = json.loads(moment.read(ASKED))
    except FileNotFoundError as error:
        raise PartsRefused("the files of this moment are gone: the numbers begin anew") from error
    if "parts" not in asked:
        raise PartsRefused("another version of the program has read this moment: the numbers begin anew")
    if asked["settings"] != _settings(moment.campaign):
        raise PartsRefused("the campaign was changed meanwhile: the numbers begin anew")
    return asked


# -- what a process has read of a moment: its next part needs it too --------------------------------------------

_basis: dict[str, Basis] = {}
_lock = threading.Lock()


def _open(moment: Moment) -> Basis:
    with _lock:
        basis = _basis.get(moment.key)
    if basis is None:
        forget(moment.campaign)
        _close()
        basis = basis_of(moment.campaign, read_segments(moment.read))
        with _lock:
            _basis[moment.key] = basis
    return basis


def _close() -> None:
    with _lock:
        _basis.clear()
    memory.give_back()
