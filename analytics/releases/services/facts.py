"""The facts that judgments rest on, into files: topics, documents, runs, draws and audits."""

from collections.abc import Callable, Iterator
from datetime import UTC
from typing import Any

import polars as pl
from django.db.models import CharField, Exists, F, Func, OuterRef, Q, QuerySet
from django.db.models.functions import Collate

from analytics.releases.folder import Folder, json_line
from analytics.releases.services.published_runs import PublishedRuns
from analytics.releases.tables import to_parquet
from judging.models import Campaign, DocumentVersion, GoldVersion, Run, Slot, TopicVersion
from judging.rankings import rankings_frame, read_rankings
from judging.trec_tables import write_run
from sampling.frames import FrameRefused, load_frame
from touchstone.files import local

TOPICS: dict[str, Any] = dict.fromkeys(("topic_id", "title", "description", "narrative"), pl.String)
DOCUMENTS: dict[str, Any] = dict.fromkeys(("doc_id", "sha256"), pl.String)
TEXTS: dict[str, Any] = dict.fromkeys(("title", "text"), pl.String)
# What is written here.
FILES = (
    *("topics.*", "documents.*", "corrections.jsonl", "beir/*.jsonl"),
    *("runs.json", "runs/*", "draws/*", "audits.json"),
)
ROWS_AT_ONCE = 5000
Progress = Callable[[int], None]


class TextHash(Func):
    """The SHA-256 of a text's UTF-8, made by the server: texts that stay out are not even read."""

    template = "encode(sha256(convert_to(%(expressions)s, 'UTF8')), 'hex')"
    output_field = CharField()


def write_topics(campaign: Campaign, folder: Folder) -> int:
    """Write topics.jsonl with its twin, and the queries of BEIR; return how many."""
    order = Collate("topic_id", "C")
    rows = list(campaign.collection.topics.order_by(order).values_list(*TOPICS))
    folder.write_lines("topics.jsonl", (dict(zip(TOPICS, row, strict=True)) for row in rows))
    to_parquet(folder.path("topics.jsonl"), folder.path("topics.parquet"), TOPICS)
    folder.write_lines(
        "beir/queries.jsonl",
        (
            {"_id": topic, "text": title, "metadata": {"description": description, "narrative": narrative}}
            for topic, title, description, narrative in rows
        ),
    )
    return len(rows)


def write_documents(
    campaign: Campaign, folder: Folder, *, with_texts: bool, has_corpus: bool, progress: Progress
) -> int:
    """Write documents.jsonl with its twin, and the corpus of BEIR, whose texts may be empty; return how many."""
    columns = {**DOCUMENTS, **TEXTS} if with_texts else DOCUMENTS
    n = 0
    with folder.open("documents.jsonl") as stream:
        corpus = folder.path("beir/corpus.jsonl").open("wb") if has_corpus else None
        try:
            for row in _documents(campaign, columns):
                stream.write(json_line(row))
                if corpus is not None:
                    texts = {name: row.get(name, "") for name in TEXTS}
                    corpus.write(json_line({"_id": row["doc_id"], **texts}))
                n += 1
                if n % ROWS_AT_ONCE == 0:
                    progress(n)
        finally:
            if corpus is not None:
                corpus.close()
    to_parquet(folder.path("documents.jsonl"), folder.path("documents.parquet"), columns)
    return n


def _documents(campaign: Campaign, columns: dict[str, Any]) -> Iterator[dict[str, Any]]:
    hashed = campaign.collection.documents.annotate(sha256=TextHash(F("text")))
    rows = hashed.order_by(Collate("doc_id", "C")).values_list(*columns)
    for row in rows.iterator(chunk_size=ROWS_AT_ONCE):
        yield dict(zip(columns, row, strict=True))


def write_corrections(campaign: Campaign, folder: Folder) -> None:
    """Write corrections.jsonl: what of the collection was corrected, on which day and why, but not by whom.

    Of gold answers only those are told that the campaign has used: others may be checks of a campaign to come.
    """
    collection = campaign.collection
    kinds: dict[str, tuple[QuerySet[Any], dict[str, str]]] = {
        "document": (
            DocumentVersion.objects.filter(document__collection=collection),
            {"doc_id": "document__doc_id"},
        ),
        "topic": (TopicVersion.objects.filter(topic__collection=collection), {"topic_id": "topic__topic_id"}),
        "gold answer": (
            GoldVersion.objects.filter(answer__topic__collection=collection).filter(
                Exists(_used_in(campaign))
            ),
            {"topic_id": "answer__topic__topic_id", "doc_id": "answer__document__doc_id", "grade": "grade"},
        ),
    }
    rows = []
    for what, (versions, columns) in kinds.items():
        found = versions.order_by(*(name for name in columns.values() if name != "grade"), "number")
        for number, at, why, *values in found.values_list("number", "created_at", "why", *columns.values()):
            said = {"what": what, "version": number, "day": at.astimezone(UTC).date().isoformat(), "why": why}
            rows.append(said | dict(zip(columns, values, strict=True)))
    folder.write_lines("corrections.jsonl", rows)


def _used_in(campaign: Campaign) -> QuerySet[Slot]:
    """Return where the campaign has shown the answer's document as a check."""
    pair = {"item__topic": OuterRef("answer__topic"), "item__document": OuterRef("answer__document")}
    purpose = Slot.Purpose.CHECK
    return Slot.objects.filter(Q(purpose=purpose) | Q(was=purpose), campaign=campaign, **pair)


def write_runs(
    published: PublishedRuns, folder: Folder, *, with_rankings: bool, progress: Progress
) -> dict[str, int]:
    """Write runs.json and the rankings that may be published; return the counts."""
    records, n_files = [], 0
    for number, run in enumerate(published.runs, start=1):
        file = f"runs/{number:04d}.run.gz" if with_rankings and run.may_publish else None
        if file is not None:
            _write_run(run, folder, file)
            n_files += 1
        records.append({"run_id": run.run_id, "file": file, "description": run.description if file else ""})
        progress(number)
    folder.write_json("runs.json", records)
    counts = {"runs": len(records) + published.n_unpublished, "runs with rankings": n_files}
    return counts if published.names_all else counts | {"runs not published": published.n_unpublished}


def _write_run(run: Run, folder: Folder, name: str) -> None:
    ranking = rankings_frame(read_rankings(local(run.rankings)))
    with folder.open_gzip(name) as stream:
        write_run(ranking, stream)


def write_draws(campaign: Campaign, published: PublishedRuns, folder: Folder) -> list[str]:
    """Write every batch with its recorded frame, and the audits; return the batches in words."""
    words = []
    for draw in campaign.draws.order_by("batch"):
        load_frame(draw)  # refused where it is not the file that was drawn from
        try:
            frame = local(draw.frame).read_bytes()
        except OSError as error:
            raise FrameRefused(
                f"the frame file of batch {draw.batch} cannot be read: {error.strerror}"
            ) from error
        folder.write(f"draws/frame-{draw.batch}.parquet", frame)
        design = published.in_design(draw.parameters)
        choices = ("batch", "question", "method", "selection", "parameters", "learned_from", "seed")
        sizes = ("n_frame", "n_drawn", "frame_sha256")
        folder.write_json(
            f"draws/draw-{draw.batch}.json",
            {name: getattr(draw, name) for name in (*choices, *sizes)}
            | {"parameters": design}
            | {"judging_order": campaign.judging_order},
        )
        if draw.selection_kind.is_foreign:
            words.append(
                f"A sample drawn elsewhere, imported with its probabilities from {design['source']}: "
                f"{draw.n_drawn:,} of {draw.n_frame:,} pairs; taken as drawn independently"
            )
            continue
        if draw.selection_kind.is_complete:
            words.append(
                f"Nothing was drawn: all {draw.n_frame:,} documents of {design['source']} were imported, with "
                f"{design['judgments']:,} judgments"
            )
            continue
        whole = "whole topics; " if draw.has_whole_topics else ""
        if calibration := design.get("calibration"):
            whole += f"scores calibrated on {calibration['n_gold']:,} gold labels elsewhere; "
        words.append(
            f"Batch {draw.batch}: {draw.n_drawn:,} items drawn of {draw.n_frame:,} pairs "
            f"({whole}{draw.get_selection_display()}; {draw.get_question_display()}; seed {draw.seed})"
        )
    return words


def write_audits(campaign: Campaign, published: PublishedRuns, folder: Folder) -> list[str]:
    """Write audits.json; return the audits in words."""
    sizes = ("expected_in_total", "n_eligible", "n_selected")
    names = ("sequence", "strategy", "tier", "seed", *sizes, "gold_fit", "measure", "learned_from")
    declared = ("run", "against", "declaration", "choice_p_value")
    audits = list(campaign.audits.order_by("sequence").values(*names, *declared))
    told = [audit | {name: published.name(audit[name]) for name in ("run", "against")} for audit in audits]
    folder.write_json("audits.json", told)
    assumed = {audit.sequence: audit.declaration_said for audit in campaign.audits.exclude(declaration="")}
    return [
        f"Audit {audit['sequence']}: imported gold. {assumed[audit['sequence']]}"
        if audit["sequence"] in assumed
        else f"Audit {audit['sequence']} by the {audit['tier']} tier: {audit['n_selected']:,} of "
        f"{audit['n_eligible']:,} judged items ({audit['strategy']}; seed {audit['seed']})"
        for audit in audits
    ]
