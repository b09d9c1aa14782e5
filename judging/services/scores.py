"""Imported scores in: what a program says of documents beforehand. They shape draws, and are never grades."""

import io
from pathlib import Path

import polars as pl
from django.core.files.base import ContentFile
from django.db import transaction

from judging.faults import Faults
from judging.models import Collection, Import, ScoreList
from judging.rankings import write_rankings
from judging.scores import read_scores
from judging.services.imports import add_file, made_now, rows_of
from judging.services.sources import (
    MeteredSource,
    Progress,
    begin_import,
    longest,
    open_source,
    refuse,
    refuse_faults,
)
from judging.textfiles import BLOCK_SIZE, Source
from touchstone.files import store
from touchstone.models import User, record


def import_scores(
    *,
    collection: Collection,
    source: Source,
    name: str,
    list_name: str = "",
    encoding: str = "",
    progress: Progress | None = None,
    actor: User | None = None,
    made: Import | None = None,
) -> ScoreList:
    """Keep a file's scores in the collection under a name, which is taken once; unnamed, under the file's.

    Topics the collection lacks are no error: the returned list carries them as `unknown_topics`. Documents it lacks
    are none either: a draw looks scores up by the documents it pools.
    """
    wanted = list_name.strip() or name_of_scores(name)
    with transaction.atomic(), open_source(source, name) as stream:
        begin_import(collection)
        fault = _name_fault(wanted, collection)
        if fault:
            refuse(name, (1, 1), fault)
        while stream.read(BLOCK_SIZE):
            pass  # the whole file is counted and hashed before it is read for what it says
        if progress:
            progress(0, stream.total, "reading scores")
        faults = Faults()
        found = read_scores(stream.from_start(), name, faults=faults, encoding=encoding)
        refuse_faults(faults)
        if progress:
            progress(stream.total, stream.total, f"{found.height:,} scores read")
        kept = made_now(made, collection=collection, kind="scores", actor=actor)
        scores = ScoreList.objects.create(
            collection=collection,
            name=wanted,
            scores=store("scores", ContentFile(_as_parquet(found)), ".rankings"),
            n_lines=found.height,
            imported_by=kept,
        )
        known = set(collection.topics.values_list("topic_id", flat=True))
        scores.unknown_topics = sorted(set(found["topic_id"].unique()) - known)
        facts = {"file": name, "sha256": stream.digest.hexdigest(), "n_bytes": stream.done}
        facts |= {"scores": wanted, "n_lines": found.height, "n_unknown_topics": len(scores.unknown_topics)}
        record("imported scores", collection, actor=actor, **facts, **{"import": str(kept.pk)})
        _add_file(kept, scores, name, stream)
    return scores


def _add_file(made: Import, scores: ScoreList, name: str, stream: MeteredSource) -> None:
    add_file(
        made,
        name=name,
        n_bytes=stream.done,
        sha256=stream.digest.hexdigest(),
        kind="scores",
        counts={"scores": scores.n_lines},
        rows=rows_of(ScoreList, scores.pk, scores.pk),
    )


def _as_parquet(scores: pl.DataFrame) -> bytes:
    target = io.BytesIO()
    write_rankings(scores.with_columns(run_tag=pl.lit("scores")), target)
    return target.getvalue()


def name_of_scores(name: str) -> str:
    """Return what a file is called without its folder and endings.

    >>> name_of_scores("judges/llama.tsv.gz")
    'llama'
    """
    return Path(name.removesuffix(".gz")).stem


def _name_fault(name: str, collection: Collection) -> str:
    limit = longest(ScoreList, "name")
    if len(name) > limit:
        return f"a name for scores has at most {limit} characters, not {len(name)}"
    if not name or not name.isprintable():
        return f"a name for scores is a line of visible characters, not {name!r}"
    if collection.score_lists.filter(name=name).exists():
        return f"the collection already has scores named {name}; each name can be used once"
    return ""
