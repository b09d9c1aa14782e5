"""The demo's systems search: a file a run, as users upload them."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from judging.trec_tables import write_run

if TYPE_CHECKING:  # whoever only writes files has no database
    from judging.models import Collection

RUN_COLUMNS = {"topic_id": pl.String, "doc_id": pl.String, "rank": pl.Int64, "score": pl.Float64}
Records = Sequence[Mapping[str, Any]]
RunFiles = list[tuple[Path, str]]
Retrieval = Callable[[Records, Records], dict[str, Any]]


def run_files(documents: Records, topics: Records, folder: Path, retrieve: Retrieval) -> RunFiles:
    """Let the systems search, and return their run files with the names of these."""
    files: RunFiles = []
    for tag, rows in retrieve(documents, topics).items():
        path = folder / f"{tag}.run"
        write_run_file(pl.DataFrame(rows, schema=RUN_COLUMNS, orient="row"), tag, path)
        files.append((path, path.name))
    return files


def stored_records(made: "Collection") -> tuple[Records, Records]:
    """Return the documents and topics of a collection, as systems search them."""
    documents = list(made.documents.order_by("doc_id").values("doc_id", "title", "text"))
    topics = list(made.topics.order_by("topic_id").values("topic_id", "title", "description"))
    return documents, topics


def write_run_file(ranking: pl.DataFrame, run_tag: str, path: Path) -> None:
    """Write the rankings of one run."""
    with path.open("wb") as stream:
        write_run(ranking.with_columns(run_tag=pl.lit(run_tag)), stream)
