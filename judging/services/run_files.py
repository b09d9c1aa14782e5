"""Run files in: each becomes a run of the collection, under its tag."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from django.core.files.base import ContentFile
from django.db import transaction

from judging.faults import Faults
from judging.file_options import FileOptions
from judging.formats.kinds import RunFormat
from judging.formats.run_names import DEFAULT, read_named_run, run_format_keys, run_format_of
from judging.models import Collection, Import, Run
from judging.places import place_of_field
from judging.rankings import RunSummary, convert_runs
from judging.run_columns import RunColumns
from judging.run_tables import RunFile
from judging.services.errors import ImportRefused
from judging.services.imports import add_file, made_now, rows_of
from judging.services.other_kinds import telling_other_kinds
from judging.services.sources import Progress, begin_import, longest, refuse, refuse_faults
from judging.textfiles import Source, TrecFormatError
from touchstone.files import store
from touchstone.models import User, record


@dataclass(frozen=True)
class _RunFile:
    path: str
    name: str
    n_bytes: int
    sha256: str
    form: RunFormat
    encoding: str
    run_name: str

    def read(self) -> RunColumns:
        return read_named_run(self.form, RunFile(self.path, self.name, encoding=self.encoding), self.run_name)

    def find_faults(self, faults: Faults) -> None:
        file = RunFile(self.path, self.name, encoding=self.encoding, faults=faults)
        self.form.find_faults(file, self.run_name)


def import_runs(
    *,
    collection: Collection,
    files: Sequence[tuple[Source, str]],
    description: str = "",
    is_manual: bool = False,
    group: str = "",
    encoding: str = "",
    file_format: str = "",
    run_name: str = "",
    progress: Progress | None = None,
    actor: User | None = None,
    made: Import | None = None,
) -> list[Run]:
    """Add run files, each given with its name for messages; return the runs.

    The files are UTF-8, or all of them in that `encoding`, and have that `file_format` of `judging.formats`, or the one
    that their beginnings tell. The run tag is the run's id: one the collection has already is an error. Where a file
    names no run, that is the file's name; a `run_name` is for one file, and needed where it names several. Topics the
    collection lacks are none: every returned run carries them as `unknown_topics`.
    """
    with telling_other_kinds(files, "runs"), ExitStack() as stack, transaction.atomic():
        begin_import(collection)
        kept = made_now(made, collection=collection, kind="runs", actor=actor)
        _refuse_name(run_name, len(files))
        if file_format and file_format not in run_format_keys():
            words = ", ".join(run_format_keys())
            raise ImportRefused(f"file_format must be one of {words}, not {file_format!r}")
        asked = {"encoding": encoding, "run_name": run_name}
        found = [_run_file(source, name, stack, file_format, asked) for source, name in files]
        topics = set(collection.topics.values_list("topic_id", flat=True))
        taken = set(collection.runs.values_list("run_id", flat=True))
        runs: list[Run] = []
        total = sum(file.n_bytes for file in found)

        def write(index: int, summary: RunSummary, payload: bytes) -> None:
            _refuse_run(found[index], summary.run_tag, taken)
            taken.add(summary.run_tag)
            run = Run.objects.create(
                collection=collection,
                run_id=summary.run_tag,
                description=description,
                is_manual=is_manual,
                group=group,
                rankings=store("rankings", ContentFile(payload), ".rankings"),
                n_topics=len(summary.topic_ids),
                n_lines=summary.n_rows,
                imported_by=kept,
            )
            run.unknown_topics = [topic_id for topic_id in summary.topic_ids if topic_id not in topics]
            runs.append(run)
            if progress:
                done = sum(file.n_bytes for file in found[: index + 1])
                progress(done, total, f"{len(runs)} of {len(found)} runs")

        try:
            convert_runs([file.path for file in found], write, read=lambda index: found[index].read())
        except TrecFormatError as error:
            # Files are handed over in order, so those before the bad one are good.
            faults = Faults()
            for file in found[len(runs) :]:
                file.find_faults(faults)
            refuse_faults(faults)
            # The name is that of the next file: the path in the error may be that of an upload.
            refuse(found[len(runs)].name, (error.line, error.column), error.reason)
        _record_runs(kept, runs, found, actor)
    return runs


def _refuse_name(run_name: str, n_files: int) -> None:
    if run_name and n_files > 1:
        raise ImportRefused("run_name names one run: leave it out where there are several files")
    if len(run_name.split()) > 1 or run_name != run_name.strip():
        raise ImportRefused(f"run_name must be one word, not {run_name[:80]!r}")


def _run_file(
    source: Source, name: str, stack: ExitStack, file_format: str, asked: dict[str, str]
) -> _RunFile:
    """Return the run as a path: a stream is copied to a temporary file."""
    if not isinstance(source, str | os.PathLike):
        copy = stack.enter_context(tempfile.NamedTemporaryFile(prefix="run-"))  # noqa: SIM115 (the stack closes it)
        shutil.copyfileobj(source, copy)
        copy.flush()
        source = copy.name
    with open(source, "rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
        n_bytes = stream.tell()
    return _RunFile(
        str(source), name, n_bytes, digest, run_format_of(file_format or None, source, name), **asked
    )


def _refuse_run(file: _RunFile, run_id: str, taken: set[str]) -> None:
    limit = longest(Run, "run_id")
    reason = ""
    if len(run_id) > limit:
        reason = f"run tag longer than {limit} characters"
    elif run_id in taken:
        reason = f"the collection already has run {run_id}"
    if reason:
        options = FileOptions(encoding=file.encoding)
        is_trec = file.form is DEFAULT
        place = place_of_field(file.path, file.name, 0, 6, 5, options) if is_trec else (1, 1)
        refuse(file.name, place, reason)


def _record_runs(made: Import, runs: list[Run], found: list[_RunFile], actor: User | None) -> None:
    for run, file in zip(runs, found, strict=True):
        add_file(
            made,
            name=file.name,
            n_bytes=file.n_bytes,
            sha256=file.sha256,
            kind="runs",
            counts={"runs": 1, "lines": run.n_lines},
            rows=rows_of(Run, run.pk, run.pk),
        )
    record(
        "imported runs",
        made.collection,
        actor=actor,
        n_runs=len(runs),
        n_lines=sum(run.n_lines for run in runs),
        files=[
            {
                "run": run.run_id,
                "file": file.name,
                "sha256": file.sha256,
                "n_unknown_topics": len(run.unknown_topics),
            }
            for run, file in zip(runs, found, strict=True)
        ],
        **{"import": str(made.pk)},
    )
