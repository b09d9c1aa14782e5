"""Background work of judging: the import of uploaded files."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.files.storage import default_storage
from django.db import transaction

from judging.models import Campaign, Collection, Import
from judging.refusal import Refused
from judging.services.errors import ImportRefused
from judging.services.files import import_documents, import_judgments, import_runs, import_topics
from judging.services.imports import made_now
from judging.services.keeping import keep
from judging.services.looking import KEEP, LOOK, look
from judging.services.places_left import KIND, compute_places_left
from judging.services.scores import import_scores
from judging.services.sources import upload_path
from touchstone.jobs import Context, JobCancelled, JobRefused, handler

MOST_LINES = 200  # of a refusal


@handler("import")
def import_files(context: Context) -> None:
    """Import what `queue_import` kept. The uploads go when their fate is decided, and stay while it may be retried."""
    uploads = context.payload["uploads"]
    try:
        context.result = _import(context, uploads)
    except ImportRefused as refusal:
        _delete(uploads)
        raise JobRefused(str(refusal)) from refusal
    except JobCancelled:
        _delete(uploads)
        raise
    transaction.on_commit(lambda: _delete(uploads), robust=True)


def _import(context: Context, uploads: list[dict[str, str]]) -> dict[str, Any]:
    kind = context.payload["kind"]
    common = {
        **context.payload["options"],
        "collection": Collection.objects.get(pk=context.payload["collection"]),
        "progress": context.progress,
        "actor": context.job.requested_by,
    }
    if kind == "judgments" and context.payload["campaign"]:
        common["campaign"] = Campaign.objects.get(pk=context.payload["campaign"])
    common["made"] = made_now(
        None,
        collection=common["collection"],
        campaign=common.get("campaign"),
        kind="gold" if common.get("as_gold") else kind,
        actor=common["actor"],
    )
    # As long as this list lives, the files stay where they are.
    files = [(upload_path(upload), upload["name"]) for upload in uploads]
    if kind == "runs":
        runs = import_runs(files=files, **common)
        unknown = {topic_id for run in runs for topic_id in run.unknown_topics}
        context.note = f"{len(runs)} runs imported, {sum(run.n_lines for run in runs):,} lines"
        return {
            "n_runs": len(runs),
            "n_lines": sum(run.n_lines for run in runs),
            "n_unknown_topics": len(unknown),
        }
    if kind == "scores":
        lists = [import_scores(source=path, name=name, **common) for path, name in files]
        unknown = {topic_id for made in lists for topic_id in made.unknown_topics}
        n_scores = sum(made.n_lines for made in lists)
        context.note = f"{n_scores:,} scores imported as {', '.join(made.name for made in lists)}"[:200]
        return {"n_scores": n_scores, "n_unknown_topics": len(unknown)}
    notes: list[str] = []
    if kind in ("documents", "judgments"):
        common["warn"] = notes.append
    if kind == "judgments":
        common.setdefault("complete", None)
    service: Any = {"topics": import_topics, "documents": import_documents, "judgments": import_judgments}[
        kind
    ]
    count = _each_file(files, lambda path, name: service(source=path, name=name, **common))
    context.note = "; ".join([f"{count:,} {kind} imported", *notes])[:200]
    return {f"n_{kind}": count, **({"notes": notes} if notes else {})}


def _each_file(files: list[tuple[Path, str]], service: Callable[[Path, str], int]) -> int:
    """Return how many records the files have; if some are refused, all of them are named in one refusal."""
    count, refusals = 0, list[str]()
    for path, name in files:
        try:
            count += service(path, name)
        except ImportRefused as refusal:
            refusals += str(refusal).splitlines()
    if refusals:
        more = len(refusals) - MOST_LINES
        raise ImportRefused(
            "\n".join([*refusals[:MOST_LINES], *([f"and {more:,} more lines"] if more > 0 else [])])
        )
    return count


@handler(LOOK)
def look_at_files(context: Context) -> None:
    """Look at an upload. Only its import is written."""
    with _refusing():
        report = look(_import_of(context), context.progress)
    n = sum(card.get("n_rows") or 0 for card in report["files"])
    context.note = f"{len(report['files'])} files looked at, {n:,} rows"
    context.result = {"import": context.payload["import"], "n_obstacles": len(report["obstacles"])}


@handler(KEEP)
def keep_files(context: Context) -> None:
    """Import what was looked at: all of it, or nothing."""
    with _refusing():
        made = keep(_import_of(context), actor=context.job.requested_by, progress=context.progress)
    context.note = "imported"
    context.result = {"import": str(made.pk), "before": made.report["before"], "after": made.report["after"]}


def _import_of(context: Context) -> Import:
    return Import.objects.select_related("collection").get(pk=context.payload["import"])


@contextmanager
def _refusing() -> Iterator[None]:
    """Let a refusal be the job's end, in its words."""
    try:
        yield
    except Refused as refusal:
        raise JobRefused(str(refusal) or refusal.title) from refusal


def _delete(uploads: list[dict[str, str]]) -> None:
    for upload in uploads:
        default_storage.delete(upload["path"])


@handler(KIND)
def look_who_can_judge(context: Context) -> None:
    compute_places_left(campaign=Campaign.objects.get(pk=context.payload["campaign"]))
