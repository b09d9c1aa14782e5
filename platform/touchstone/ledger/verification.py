"""What the ledger says against what is there: the chains, the counters, the files, and a release's head."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC
from heapq import merge
from itertools import chain, islice
from pathlib import Path

from django.db import connection
from django.db.models.fields.files import FieldFile

from analytics.models import Release
from analytics.releases.reading import ReleaseUnreadable, open_release
from sampling.models import Draw
from touchstone.chain import BEGINNING, digest, extend_by_digests
from touchstone.files import BLOCK, stream
from touchstone.ledger.rows import AT_ONCE, TABLES, VERSIONED, lines
from touchstone.models import Erasure, Seal
from touchstone.watermark import last_id

BEYOND = """
SELECT id FROM "{table}" WHERE id < 1 UNION ALL
SELECT id FROM "{table}" WHERE id > (SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM "{table}_id_seq")
 ORDER BY 1 LIMIT {most}
"""
# Rows that do not say what their newest version says; without versions they must be the first.
NOT_IN_FORCE = """
SELECT r.id FROM {table} r LEFT JOIN (
  SELECT DISTINCT ON ({key}) {key}, number, {content} FROM {versions} ORDER BY {key}, number DESC) v ON v.{key} = r.id
 WHERE r.version <> coalesce(v.number, 1)
    OR v.number IS NOT NULL AND ({own}) IS DISTINCT FROM ({newest})
 ORDER BY 1 LIMIT {most}
"""
Say = Callable[[str], None]
MOST_NAMED = 20  # rows of a table with ids that PostgreSQL never gave out
# Judgments of an assessor count once, however often they are revised.
COUNTERS = """
SELECT a.id, a.n_judged, count(j.id) FROM judging_assessor a
  LEFT JOIN judging_judgment j ON j.assessor_id = a.id AND j.sequence = 1
 GROUP BY a.id HAVING a.n_judged <> count(j.id) ORDER BY a.id
"""


def chain_faults(say: Say = lambda words: None) -> Iterator[str]:
    """Yield, in words, each seal whose rows are not what was sealed; all of one moment, if the caller's reading is."""
    sealed = Seal.objects.values_list("table", flat=True).distinct().order_by("table")
    for table in sorted({*TABLES, Seal.OF_SEALS, *sealed}):
        yield from table_faults(table, say)


def table_faults(table: str, say: Say = lambda words: None) -> Iterator[str]:
    """Yield, in words, each seal of a table whose rows are not what was sealed, and what no seal will ever hold."""
    erasures = _Erasures.of(table)
    seals = list(Seal.objects.filter(table=table).order_by("up_to_id"))
    n_rows = after = 0
    heads = [BEGINNING]
    for seal in seals:
        reading = _read(seal, after, heads, erasures)
        for fault in reading.faults:
            yield f"{_name(seal, after)}: {fault}"
        # What comes next may follow what was sealed, or what is there: so it is not named for what is before it.
        heads = [bytes.fromhex(seal.head)] + (reading.heads[:1] if reading.faults else [])
        n_rows, after = n_rows + reading.n_rows, seal.up_to_id
    yield from (f"{table}: {words}" for words in erasures.without_seal())
    if table in {*TABLES, Seal.OF_SEALS}:
        yield from (f"{table}: {words}" for words in _faults_beyond(table, after))
    if table in VERSIONED:
        yield from (f"{table}: {words}" for words in _not_in_force(table))
    if seals:
        say(
            f"{table}: {n_rows:,} rows in {len(seals):,} seals, {len(erasures.sealed):,} of them erased since"
        )


def _faults_beyond(table: str, up_to_id: int) -> Iterator[str]:
    """Yield, in words, rows outside the ids that PostgreSQL has given out, which no seal holds, and a seal beyond them.

    What was given out is read in the statement that reads the rows: each that is in sight had its id before.
    """
    with connection.cursor() as cursor:
        cursor.execute(BEYOND.format(table=table, most=MOST_NAMED + 1))
        found = [key for (key,) in cursor.fetchall()]
    last = last_id(table)
    for key in found[:MOST_NAMED]:
        yield f"row {key} is in no seal: its id is none of 1 to {last}, which were given out"
    if len(found) > MOST_NAMED:
        yield f"more than {MOST_NAMED} rows have ids that were not given out"
    if up_to_id > last:
        yield f"its seals reach up to id {up_to_id}, of which only {last} were given out: nothing more is sealed"


def _not_in_force(table: str) -> Iterator[str]:
    """Yield, in words, rows that do not follow their versions: what is in force is not what was sealed."""
    known = VERSIONED[table]
    own, newest = (", ".join(f"{row}.{name}" for name in known.content) for row in "rv")
    with connection.cursor() as cursor:
        cursor.execute(
            NOT_IN_FORCE.format(
                table=table,
                versions=known.versions,
                key=known.key,
                content=", ".join(known.content),
                own=f"ROW({own})",
                newest=f"ROW({newest})",
                most=MOST_NAMED + 1,
            )
        )
        found = [key for (key,) in cursor.fetchall()]
    for key in found[:MOST_NAMED]:
        yield f"row {key} does not say what its newest version in {known.versions} says"
    if len(found) > MOST_NAMED:
        yield f"more than {MOST_NAMED} rows do not say what their newest versions say"


def _name(seal: Seal, after: int) -> str:
    at = seal.at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return f"{seal.table}: the seal of ids {after + 1} to {seal.up_to_id} of {at} differs"


@dataclass
class _Erasures:
    """What was erased in a table: the SHA-256 of the line that was sealed, and of the one that must be there now.

    Of a row that was removed there must be none: `Erasure.REMOVED`.
    """

    sealed: dict[int, bytes] = field(default_factory=dict)
    now: dict[int, bytes] = field(default_factory=dict)
    broken: set[int] = field(default_factory=set)
    seen: set[int] = field(default_factory=set)

    @classmethod
    def of(cls, table: str) -> "_Erasures":
        made = cls()
        for one in Erasure.objects.filter(table=table).order_by("pk"):
            if one.row in made.now and made.now[one.row] != bytes.fromhex(one.old):
                made.broken.add(one.row)
            made.sealed.setdefault(one.row, bytes.fromhex(one.old))
            made.now[one.row] = bytes.fromhex(one.new)
        return made

    def removed_rows(self, after: int, until: int) -> list[int]:
        """Return the rows of these ids that must be gone, in order."""
        gone = bytes.fromhex(Erasure.REMOVED)
        return sorted(row for row, new in self.now.items() if new == gone and after < row <= until)

    def without_seal(self) -> list[str]:
        """Return erasures of rows that no seal holds."""
        return [
            f"an erasure names row {row}, which no seal holds"
            for row in sorted(self.sealed.keys() - self.seen)
        ]


@dataclass
class _Reading:
    """The rows of one seal as they are: how many, the heads after them, and in words how they differ."""

    heads: list[bytes]
    n_rows: int = 0
    faults: list[str] = field(default_factory=list)


def _read(seal: Seal, after: int, heads: list[bytes], erasures: _Erasures) -> _Reading:
    """Read the rows of a seal, after each of the heads that may have been there before."""
    reading = _Reading(list(heads))
    try:
        found = _with_removed(
            lines(seal.table, seal.columns, after, seal.up_to_id), erasures.removed_rows(after, seal.up_to_id)
        )
        sealed = _sealed_digests(found, erasures, reading)
        while part := list(islice(sealed, AT_ONCE)):
            reading.heads = [extend_by_digests(head, part) for head in reading.heads]
    except (KeyError, TypeError) as error:
        reading.faults.append(f"its columns are not those of the table ({error})")
        return reading
    if reading.n_rows != seal.n_rows:
        reading.faults.append(f"{reading.n_rows:,} rows in place of {seal.n_rows:,}")
    elif bytes.fromhex(seal.head) not in reading.heads and not reading.faults:
        reading.faults.append("a value was changed")
    return reading


def _with_removed(found: Iterator[tuple[int, str]], removed: list[int]) -> Iterator[tuple[int, str | None]]:
    """Yield the rows and, in their places, those that were removed: without a line."""
    return merge(found, ((key, None) for key in removed), key=lambda row: row[0])


def _sealed_digests(
    found: Iterator[tuple[int, str | None]], erasures: _Erasures, reading: _Reading
) -> Iterator[bytes]:
    """Yield the SHA-256 of each line as it was sealed: of what was erased since, the one before."""
    for key, line in found:
        one = bytes.fromhex(Erasure.REMOVED) if line is None else digest(line)
        reading.n_rows += 1
        if key not in erasures.sealed:
            yield one
            continue
        erasures.seen.add(key)
        if one != erasures.now[key] or key in erasures.broken:
            reading.faults.append(f"row {key} is not what its erasure left")
        yield erasures.sealed[key]


def counter_faults() -> Iterator[str]:
    """Yield, in words, each assessor whose counter is not the number of their judgments."""
    with connection.cursor() as cursor:
        cursor.execute(COUNTERS)
        for key, counter, n in cursor.fetchall():
            yield f"judging_assessor: the counter of {key} says {counter}, there are {n} judgments"


def file_faults() -> Iterator[str]:
    """Yield, in words, each file that is missing or whose SHA-256 is not that in the database."""
    draws = ((one.frame, one.frame_sha256) for one in Draw.objects.order_by("created_at", "pk"))
    ready = Release.objects.filter(state=Release.State.READY).order_by("created_at", "pk")
    for file, sha256 in chain(draws, ((one.file, one.sha256) for one in ready)):
        try:
            is_same = _sha256_of(file) == sha256
        except FileNotFoundError:
            yield f"{file.name}: the file is missing"
            continue
        if not is_same:
            yield f"{file.name}: the file is not the one whose SHA-256 is stored"


def _sha256_of(file: FieldFile) -> str:
    """Return what the store has, not a copy of it."""
    found = hashlib.sha256()
    with closing(stream(file)) as source:
        while part := source.read(BLOCK):
            found.update(part)
    return found.hexdigest()


def release_faults(path: Path, say: Say = lambda words: None) -> Iterator[str]:
    """Yield, in words, what of a release's file is not as its manifest says, and a head that is no seal's."""
    try:
        with open_release(path) as release:
            head = release.manifest.get("ledger", "")
            yield from (f"{path.name}: {words}" for words in release.differences())
    except ReleaseUnreadable as error:
        yield f"{path.name}: {error}"
        return
    if not head:
        say(
            f"{path.name}: names no head of the ledger; it is of an older version, or nothing was sealed before it"
        )
    elif not Seal.objects.filter(table=Seal.OF_SEALS, head=head).exists():
        yield f"{path.name}: its head of the ledger, {head}, is that of no seal"
    else:
        say(f"{path.name}: its head is that of a seal")
