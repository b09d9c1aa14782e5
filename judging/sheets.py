"""Cells of a spreadsheet (xlsx), read in a child process whose time and memory are limited."""

import json
import re
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import IO, Any

from judging.sheet_child import NUMBER_BYTES
from judging.textfiles import MEGABYTE, Limits, Readable, TrecFormatError
from judging.zip_limits import checked_zip

CHILD = str(Path(__file__).with_name("sheet_child.py"))
MAX_SHEET = 200 * MEGABYTE  # bytes of the file
LIMITS = Limits(max_bytes=4 << 30)
CPU_SECONDS, WALL_SECONDS = 120, 300
MEMORY_BYTES = 3 << 30  # addresses, of which libraries reserve 1 GiB and more
LONGEST_PIECE = 512 * MEGABYTE
MOST_TEXT = 100  # characters of a sheet's name in a fault
ZIP_MAGIC = b"PK\x03\x04"
KILLED = "the spreadsheet could not be read within the limits of time and memory; save the sheet as CSV"
UNSHOWN = re.compile(r"[\0-\x1f\x7f:!]")


def is_sheet(head: bytes) -> bool:
    """Return whether a file that should hold a table is a spreadsheet: as text it cannot begin so."""
    return head.startswith(ZIP_MAGIC)


Cells = tuple[str, int, list[str]]  # the sheet, the row's number, its cells as texts


def open_sheet(stream: Readable, name: str) -> tuple[list[str], Generator[Cells, None, None]]:
    """Return the names of the sheets, and the rows of the first with anything in it, counted from the sheet's first.

    Raises TrecFormatError with one sentence where the child dies or the file is no spreadsheet.
    """
    pieces = _pieces(stream, name)
    return next(pieces)["sheets"], _cells(pieces)


def _cells(pieces: Generator[Any, None, None]) -> Generator[Cells, None, None]:
    sheet, number = "", 0
    for piece in pieces:
        if isinstance(piece, dict):
            sheet = UNSHOWN.sub("_", piece["sheet"])[:MOST_TEXT]
            continue
        for cells in piece:
            number += 1
            yield sheet, number, cells


def _pieces(stream: Readable, name: str) -> Generator[Any, None, None]:
    with tempfile.TemporaryFile(prefix="sheet-") as copy:
        left = MAX_SHEET + 1
        while left > 0 and (block := stream.read(min(left, 1 << 20))):
            copy.write(block)
            left -= len(block)
        if left <= 0:
            raise TrecFormatError(
                name, 1, 1, f"a spreadsheet of more than {MAX_SHEET // MEGABYTE} MB; save it as CSV"
            )
        archive = checked_zip(copy, name, LIMITS)
        if "xl/workbook.xml" not in archive.namelist():
            raise TrecFormatError(
                name, 1, 1, "a zip archive without a sheet in it, where a table was expected"
            )
        copy.seek(0)
        yield from _answers(copy, name)


def _answers(file: IO[bytes], name: str) -> Iterator[Any]:
    """Yield what the child says; it reads the file by itself, and is ended with the last answer wanted."""
    child = subprocess.Popen(
        [sys.executable, "-I", CHILD, str(CPU_SECONDS), str(MEMORY_BYTES)],
        stdin=file,
        stdout=subprocess.PIPE,
        bufsize=0,  # what is ready must be seen by select
        stderr=subprocess.DEVNULL,
        env={"POLARS_MAX_THREADS": "1"},  # no secret is near the parser
    )
    stream: IO[bytes] = child.stdout  # type: ignore[assignment]  # there is a pipe
    try:
        deadline = time.monotonic() + WALL_SECONDS
        while (answer := _answer(stream, deadline, name)) is not None:
            if isinstance(answer, dict) and "error" in answer:
                raise TrecFormatError(name, 1, 1, f"no spreadsheet that can be read ({answer['error']})")
            yield answer
    finally:
        child.kill()
        child.wait()
        stream.close()


def _answer(stream: IO[bytes], deadline: float, name: str) -> Any:
    """Return the next piece, None at the end."""
    size = int.from_bytes(_bytes(stream, NUMBER_BYTES, deadline, name), "little")
    if size > LONGEST_PIECE:
        raise TrecFormatError(name, 1, 1, KILLED)
    return json.loads(_bytes(stream, size, deadline, name)) if size else None


def _bytes(stream: IO[bytes], size: int, deadline: float, name: str) -> bytes:
    parts: list[bytes] = []
    while size > 0:
        ready, _, _ = select.select([stream], [], [], max(0.0, deadline - time.monotonic()))
        part = stream.read(size) if ready else b""
        if not part:
            raise TrecFormatError(name, 1, 1, KILLED)
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
