"""A refused file whose form is that of another kind: the refusal says which kind to import it as."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from judging.recognise import recognise_file
from judging.services.errors import ImportRefused
from judging.textfiles import Source


@contextmanager
def telling_other_kinds(files: Sequence[tuple[Source, str]], kind: str) -> Iterator[None]:
    """Let a refusal say, a line a file, what files are by their beginnings, where that is surely not of the kind."""
    try:
        yield
    except ImportRefused as refusal:
        words = [said for source, name in files if (said := _other_kind(source, name, kind))]
        if not words:
            raise
        raise ImportRefused("\n".join([str(refusal), *words])) from refusal


def _other_kind(source: Source, name: str, kind: str) -> str:
    """Return what a file is, in words; empty where it is of the kind, unclear, or a stream that was read."""
    if not isinstance(source, str | os.PathLike):
        return ""
    seen = recognise_file(source, name)
    if not seen.is_sure or seen.is_refused or seen.kind in ("", kind):
        return ""
    return f"{name} has the form of {seen.kind}: import it as {seen.kind}"
