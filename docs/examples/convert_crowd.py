"""Make files that Touchstone imports from three public crowd data sets. Python alone; nothing is downloaded.

    python convert_crowd.py vuurens  <folder of JeroenVuurens>   <new folder>
    python convert_crowd.py gal      <folder of AdultContent2>   <new folder>
    python convert_crowd.py uc3m     <folder of uc3m> <new folder> --gold <folder with gold_nist.tsv.gz>

Written are topics.tsv, documents.jsonl (ids alone: the pages are not in the data), labels.csv and gold.csv.

vuurens: relevance of web pages, TREC 2011; NIST's "partly" and "highly relevant" are both relevant.
gal: web pages G, P, R, X become grades 0 to 3, of one topic.
uc3m: accepted assignments; of the sliders from 0 to 100 a half or more is relevant, of the three grades 1 and 2 are.
Gold of documents that nobody labelled is left out, and counted.
"""

import argparse
import csv
import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

Label = tuple[str, str, str, int]  # topic, document, worker, grade
Gold = dict[tuple[str, str], int]
GAL_GRADES = {"G": 0, "P": 1, "R": 2, "X": 3}
DOCUMENTS = range(1, 6)  # of one task of uc3m


def fields(path: Path) -> Iterator[list[str]]:
    """Yield the columns of a file of tabs."""
    with gzip.open(path, "rt", encoding="utf-8", errors="replace", newline="") as stream:
        for line in stream:
            yield [part.strip() for part in line.rstrip("\r\n").split("\t")]


def rows(path: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of a file of tabs by the titles of its first line."""
    lines = fields(path)
    titles = next(lines)
    for line in lines:
        yield dict(zip(titles, line, strict=False))


def pair(text: str) -> tuple[str, str]:
    """Return topic and document of ``topic_document``."""
    topic, _, document = text.partition("_")
    return topic, document


def nist(folder: Path) -> Gold:
    """Return NIST's grades; one or two is relevant."""
    return {pair(name): int(int(grade) > 0) for name, grade in fields(folder / "gold_nist.tsv.gz")}


def vuurens(folder: Path, _: Path | None) -> tuple[list[Label], Gold]:
    labels = [
        (*pair(question), worker, int(grade))
        for _, question, worker, grade in fields(folder / "votes.tsv.gz")
        if grade in ("0", "1")
    ]
    return labels, nist(folder)


def gal(folder: Path, _: Path | None) -> tuple[list[Label], Gold]:
    labels = [("pages", url, who, GAL_GRADES[label]) for who, url, label in fields(folder / "labels.txt.gz")]
    return labels, {("pages", url): GAL_GRADES[label] for url, label in fields(folder / "gold.txt.gz")}


def uc3m(folder: Path, gold: Path | None) -> tuple[list[Label], Gold]:
    tasks = {row["set"]: row for row in rows(folder / "hits.txt.gz")}
    labels: list[Label] = []
    for row in rows(folder / "assignments.txt.gz"):
        task = tasks.get(row["set"])
        if row["status"] != "Accepted" or task is None:
            continue
        least = 1.0 if row["run"] == "1" else 50.0
        for place in DOCUMENTS:
            given = row.get(f"doc{place}rel", "NA")
            if given not in ("NA", ""):
                grade = int(float(given) >= least)
                labels.append((task["topic"], task[f"doc{place}"], row["worker"], grade))
    if gold is None:
        raise SystemExit("uc3m has no gold of its own: name the folder with gold_nist.tsv.gz by --gold")
    return labels, nist(gold)


SETS = {"vuurens": vuurens, "gal": gal, "uc3m": uc3m}


def write(folder: Path, labels: list[Label], gold: Gold) -> None:
    """Write the four files."""
    folder.mkdir(parents=True, exist_ok=True)
    known = dict.fromkeys((topic, document) for topic, document, _, _ in labels)
    topics, documents = (dict.fromkeys(part) for part in zip(*known, strict=True))
    (folder / "topics.tsv").write_text("".join(f"{topic}\tTopic {topic}\n" for topic in topics), "utf-8")
    lines = (json.dumps({"_id": name, "text": name}) + "\n" for name in documents)
    (folder / "documents.jsonl").write_text("".join(lines), "utf-8")
    write_csv(folder / "labels.csv", ("topic_id", "doc_id", "worker", "label"), labels)
    judged = {key: grade for key, grade in gold.items() if key in known}
    write_csv(
        folder / "gold.csv",
        ("topic_id", "doc_id", "grade"),
        [(topic, document, grade) for (topic, document), grade in judged.items()],
    )
    print(
        f"{len(labels):,} labels of {len(known):,} documents, {len(judged):,} of them with gold; gold of "
        f"{len(gold) - len(judged):,} other documents left out"
    )


def write_csv(path: Path, titles: Iterable[str], lines: Iterable[Iterable[object]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows([titles, *lines])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", choices=SETS)
    parser.add_argument("folder", type=Path)
    parser.add_argument("made", type=Path)
    parser.add_argument("--gold", type=Path)
    asked = parser.parse_args()
    write(asked.made, *SETS[asked.name](asked.folder, asked.gold))
