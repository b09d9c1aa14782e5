"""What changed since the release before: its qrels, read from its file, against the new ones, line by line."""

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from analytics.models import Release
from analytics.releases.grade_changes import grade_changes
from touchstone.files import local

QRELS = "qrels.txt"


def changes_since(previous: Release | None, qrels: Path) -> dict[str, Any]:
    """Return how many grades were added, removed and changed; empty for a first release; `unknown` gives a reason."""
    if previous is None:
        return {}
    changes: dict[str, Any] = {"previous": previous.version}
    try:
        path = local(previous.file)
        with zipfile.ZipFile(path) as archive, qrels.open("rb") as after:
            name = next(
                name for name in archive.namelist() if name.count("/") == 1 and name.endswith(f"/{QRELS}")
            )
            with archive.open(name) as before:
                return changes | grade_changes(_lines(before), _lines(after))
    except (OSError, ValueError, StopIteration, zipfile.BadZipFile) as error:
        return changes | {"unknown": f"the file of that version cannot be read ({type(error).__name__})"}


def _lines(stream: Any) -> Iterator[bytes]:
    return (line.rstrip(b"\n") for line in stream)
