"""Lanes: long work never holds up short work. One table names the lane of each kind of job.

A lane is a queue of Celery and a time limit; at least one worker process serves `quick` alone. A job that takes longer
than its lane allows goes on in `heavy`, from its beginning; there it is ended. The lane `mail` has no queue: a thread
of each worker serves it beside the others, so that a mail server that hangs holds up nothing.
"""

from dataclasses import dataclass

QUICK, NUMBERS, HEAVY, MAIL = "quick", "numbers", "heavy", "mail"
QUEUES = (QUICK, NUMBERS, HEAVY)
TICK = "tick"  # no lane: the clock's queue, which every worker serves
SECONDS = {QUICK: 60, NUMBERS: 600, HEAVY: 3000, MAIL: 300}  # that a job of the lane may take
MOST_WAITING = 20  # jobs of a person and lane


@dataclass(frozen=True)
class Kind:
    """A kind of job: its lane, and from how many uploaded bytes on it belongs to `heavy`.

    Without `is_counted` its jobs are parts of something that was asked for once, and no limit of a person's.
    """

    key: str
    lane: str
    heavy_from: float = float("inf")
    is_counted: bool = True


KINDS: tuple[Kind, ...] = (
    Kind("import", QUICK, heavy_from=10_000_000),
    Kind("look", QUICK, heavy_from=10_000_000),
    Kind("keep", QUICK, heavy_from=10_000_000),
    Kind("replace", QUICK, heavy_from=10_000_000),
    Kind("run-upload", QUICK),
    Kind("forecast", QUICK),
    Kind("reuse", QUICK),
    Kind("audit", QUICK),
    Kind("order", QUICK),
    Kind("seal", QUICK),
    Kind("forgotten", QUICK, is_counted=False),
    Kind("estimate", NUMBERS),
    Kind("estimate-part", NUMBERS, is_counted=False),
    Kind("estimate-merge", NUMBERS, is_counted=False),
    Kind("analysis", NUMBERS),
    Kind("rounds", NUMBERS),
    Kind("screening", NUMBERS),
    Kind("feasibility", NUMBERS, is_counted=False),
    Kind("simulation", NUMBERS),
    Kind("rejudging", NUMBERS),
    Kind("retention", NUMBERS),
    Kind("draw", HEAVY),
    Kind("layout", HEAVY, is_counted=False),
    Kind("release", HEAVY),
    Kind("erase-judges", HEAVY),
    Kind("letters", MAIL, is_counted=False),
    Kind("notices", NUMBERS),
)
PARTS = [kind.key for kind in KINDS if not kind.is_counted]
_by_key = {kind.key: kind for kind in KINDS}


def lane_of(key: str, n_bytes: int = 0) -> str:
    """Return the lane of a job of this kind with so many uploaded bytes.

    >>> lane_of("import", 9_999_999), lane_of("import", 10_000_000), lane_of("of another version")
    ('quick', 'heavy', 'heavy')
    """
    kind = _by_key.get(key, Kind(key, HEAVY))
    return HEAVY if n_bytes >= kind.heavy_from else kind.lane
