"""A folder of somebody else's collection: which file is what (`make demo COLLECTION=folder`)."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from judging.textfiles import open_text
from judging.trec import QrelRecord, read_fields, read_qrels

# Cranfield's codes: 1 is best, 4 least, -1 and 5 not relevant.
CRANFIELD_GRADES = {1: 3, 2: 3, 3: 2, 4: 1, -1: 0, 5: 0}


@dataclass(frozen=True)
class Folder:
    """The files of a collection. `topic_format` and `is_cranfield` are set where the files alone do not tell."""

    documents: Path
    topics: Path
    qrels: Path | None
    runs: tuple[Path, ...]
    topic_format: str | None = None
    is_cranfield: bool = False


def read_folder(root: Path) -> Folder:
    """Return the files of a TREC- or BEIR-style folder, or of Cranfield; ValueError says what is missing.

    Documents: `corpus.jsonl` or `documents.*`, `docs.*`; topics: `queries.jsonl` or `topics.*`; qrels: `qrels/test.tsv`
    or `qrels*`; runs: every file in `runs/`.
    """
    if (root / "cran.all.1400").exists():
        return Folder(
            root / "cran.all.1400",
            root / "cran.qry",
            root / "cranqrel",
            (),
            topic_format="cranfield",
            is_cranfield=True,
        )
    documents = _first(root, "corpus.*", "documents.*", "docs.*")
    topics = _first(root, "queries.*", "topics.*")
    if documents is None or topics is None:
        missing = (
            "documents (corpus.jsonl, documents.*)"
            if documents is None
            else "topics (queries.jsonl, topics.*)"
        )
        raise ValueError(f"{root} has no {missing}")
    runs = tuple(sorted(path for path in (root / "runs").glob("*") if path.is_file()))
    return Folder(documents, topics, _first(root, "qrels/test.tsv", "qrels/*", "qrels*"), runs)


def _first(root: Path, *patterns: str) -> Path | None:
    for pattern in patterns:
        found = sorted(path for path in root.glob(pattern) if path.is_file())
        if found:
            return found[0]
    return None


def read_grades(folder: Folder) -> Iterator[QrelRecord]:
    """Return the folder's gold grades on the scale 0 to 3 of the demo: TREC qrels, BEIR's TSV, or Cranfield's codes."""
    path = folder.qrels
    if path is None:
        return
    if folder.is_cranfield:
        for fields in read_fields(path, path.name, 3, "topic document grade"):
            grade = CRANFIELD_GRADES.get(fields.grade(2))
            if grade is None:
                fields.fail(2, f"Cranfield's codes are {sorted(CRANFIELD_GRADES)}")
            yield QrelRecord(fields.id(0, "topic"), fields.id(1, "document"), grade)
    elif next(iter(open_text(path, path.name))).text.startswith("query-id\t"):
        for number, fields in enumerate(read_fields(path, path.name, 3, "query-id corpus-id score")):
            if number:  # the first line is BEIR's header
                yield QrelRecord(fields.id(0, "topic"), fields.id(1, "document"), _clip(fields.grade(2)))
    else:
        for record in read_qrels(path, path.name):
            yield QrelRecord(record.topic_id, record.doc_id, _clip(record.grade))


def _clip(grade: int) -> int:
    return min(3, max(0, grade))
