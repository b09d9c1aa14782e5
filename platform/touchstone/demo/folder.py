"""A folder of somebody else's collection: which file is what (`make demo COLLECTION=folder`)."""

from dataclasses import dataclass
from pathlib import Path

# Cranfield's codes: 1 is best, 4 least, -1 and 5 not relevant.
CRANFIELD_GRADES = {1: 3, 2: 3, 3: 2, 4: 1, -1: 0, 5: 0}


@dataclass(frozen=True)
class Folder:
    """The files of a collection. `topic_format` and `grade_map` are set where the files alone do not tell."""

    documents: Path
    topics: Path
    qrels: Path | None
    runs: tuple[Path, ...]
    topic_format: str | None = None
    grade_map: dict[int, int] | None = None


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
            grade_map=CRANFIELD_GRADES,
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
