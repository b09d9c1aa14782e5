"""Small files of every kind, encoding and disguise, with what they really are."""

import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Container
from dataclasses import dataclass
from typing import Any

from small_sheets import workbook

QUERIES = ("black bear attacks", "steel production", "wild honey", "naïve Bayes", "café noir")
WORDS = "The bear came to the river and looked for fish, but the water had gone down since spring. "
TOPIC_IDS = frozenset({"301", "302", "303", "304", "305"})
DOC_IDS = frozenset(f"FT911-{number}" for number in range(1, 40))


@dataclass(frozen=True)
class Disguise:
    """A file: what it is, in `kind` and `file_format`; what is refused has the name of its container in `refused`."""

    name: str
    data: bytes
    kind: str
    file_format: str = ""
    topic_ids: Container[str] = frozenset()
    doc_ids: Container[str] = frozenset()
    refused: str = ""
    encoding: str = ""


def _lines(*lines: str) -> bytes:
    return ("\n".join(lines) + "\n").encode()


def _table(delimiter: str, *rows: tuple[str, ...]) -> bytes:
    return _lines(*(delimiter.join(row) for row in rows))


TOPIC_ROWS = [(str(301 + n), query) for n, query in enumerate(QUERIES)]
DOC_ROWS = [(f"FT911-{n}", f"Bears {n}", WORDS * 3) for n in range(1, 9)]
TOPIC_TABLE = [("query_id", "query"), *TOPIC_ROWS]
DOC_TABLE = [("docno", "title", "body"), *DOC_ROWS]
RUN = _lines(*(f"30{n} Q0 FT911-{rank} {rank} {10 / rank:.4f} bm25" for n in (1, 2) for rank in range(1, 9)))
QRELS = _lines(*(f"30{n} 0 FT911-{rank} {rank % 3}" for n in (1, 2) for rank in range(1, 9)))
DOCS_JSONL = _lines(
    *(json.dumps({"_id": one, "title": title, "text": text}) for one, title, text in DOC_ROWS)
)
TOPICS_JSONL = _lines(*(json.dumps({"_id": one, "text": text}) for one, text in TOPIC_ROWS))
SGML = _lines(
    "<top>", "<num> Number: 301", "<title> bears", "<desc> Description:", "What bears eat.", "</top>"
)
XML = _lines("<topics>", '<topic number="301"><query>bears</query></topic>', "</topics>")
TREC = _lines("<DOC>", "<DOCNO> FT911-1 </DOCNO>", "<TEXT>", WORDS, "</TEXT>", "</DOC>")
HTML = _lines(
    "<!DOCTYPE html>", "<html><head><title>Bears</title></head>", f"<body><p>{WORDS}</p></body></html>"
)
GERMAN = [
    ("id", "frage"),
    ("301", "Bären im Grünen – Fluß"),
    ("302", "Käse „öffnen“"),
    ("303", "Übermäßig süß"),
]
GERMAN_TABLE = "\n".join(";".join(row) for row in [("qid", "query"), *GERMAN[1:]])
RUSSIAN = "\n".join(
    ["qid\tquery", "1\tнападения чёрных медведей", "2\tпроизводство стали", "3\tдикий мёд в лесу"]
)


def _zip(**members: bytes) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return target.getvalue()


def _tar() -> bytes:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w") as archive:
        member = tarfile.TarInfo("queries.tsv")
        member.size = len(TOPICS_JSONL)
        archive.addfile(member, io.BytesIO(TOPICS_JSONL))
    return target.getvalue()


SHEET = _table(
    ";",
    ("url", "headline", "article", "weight"),
    ("http://a/1", "Bears", "They eat", "0,5"),
    ("http://a/2", "Honey", "It is sweet, they say", "1,25"),
)
KNOWN: dict[str, Any] = {"topic_ids": TOPIC_IDS, "doc_ids": DOC_IDS}
PLAIN = (
    Disguise("queries.tsv", _table("\t", *TOPIC_TABLE), "topics", "table"),
    Disguise("queries.csv", _table(",", *TOPIC_TABLE), "topics", "table"),
    Disguise("queries.csv", _table(";", *TOPIC_TABLE), "topics", "table"),
    Disguise("queries.txt", _table("|", *TOPIC_TABLE), "topics", "table"),
    Disguise("topics.tsv", _table("\t", *TOPIC_ROWS), "topics", "tsv"),
    Disguise("documents.tsv", _table("\t", *TOPIC_ROWS), "topics", "tsv", **KNOWN),
    Disguise("documents.sgml", SGML, "topics", "sgml"),
    Disguise("data.xml", XML, "topics", "xml"),
    Disguise("data.xml", b'<?xml version="1.0"?>\n' + XML, "topics", "xml"),
    Disguise("queries.jsonl", TOPICS_JSONL, "topics", "jsonl"),
    Disguise("corpus.jsonl", TOPICS_JSONL, "topics", "jsonl", **KNOWN),
    Disguise("queries.json", json.dumps([{"qid": "1", "query": "bear"}]).encode(), "topics", "json"),
    Disguise("a.json", json.dumps([{"docno": "1", "body": WORDS}], indent=2).encode(), "documents", "json"),
    Disguise("corpus.jsonl", DOCS_JSONL, "documents", "jsonl"),
    Disguise("topics.jsonl", DOCS_JSONL, "documents", "jsonl", **KNOWN),
    Disguise("a.csv", _table(",", ("docno", "title", "body"), ("d1", "a", '"He said ""no"";\nthen; left"'),
                             ("d2", "b", '"x, y"')), "documents", "table"),
    Disguise("sheet.csv", SHEET, "documents", "table"),
    Disguise("a.dat", TREC, "documents", "trec"),
    Disguise("topics.txt", TREC, "documents", "trec"),
    Disguise("cran.all.1400", _lines(".I 1", ".T", "wings", ".A", "x", ".W", "text"), "documents", "cranfield"),
    Disguise("cran.qry", _lines(".I 001", ".W", "what wings", ".I 002", ".W", "what"), "topics", "cranfield"),
    Disguise("page.html", HTML, "documents", "page"),
    Disguise("topics.txt", HTML, "documents", "page"),
    Disguise("mine.run", RUN, "runs", "run"),
    Disguise("qrels.txt", RUN, "runs", "run"),
    Disguise("mine.run", RUN.replace(b" ", b"\t"), "runs", "run"),
    Disguise("qrels.run", QRELS, "judgments", "qrels"),
    Disguise("topics.tsv", QRELS.replace(b" ", b"\t"), "judgments", "qrels"),
    Disguise("test.tsv", _table("\t", ("query-id", "corpus-id", "score"), ("q1", "d1", "1")), "judgments", "beir"),
    Disguise("j.txt", _lines("301 ann d1 1", "301 ben d1 0", "301 ann d2 2"), "judgments", "qrels_jg"),
    Disguise("mq.prels", _lines("1 d1 0 1 0.125", "1 d2 2 1 1.0", "2 d1 1 0 0.5"), "judgments", "prels"),
    Disguise("s.txt", _lines("1 0 d1 1 2", "1 0 d2 2 -1"), "judgments", "stratified"),
    Disguise("j.tsv", _lines("1\td1\t0.25", "1\td2\t0.99"), "scores"),
    Disguise("crowd.csv", _lines("task,worker,label", "301 d1,w1,1"), "judgments", "crowd"),
    Disguise("mturk.csv", _lines('"HITId","WorkerId","Input.topic_id","Input.doc_id","Answer.grade"',
                                 '"h","w","301","d1","2"'), "judgments", "crowd"),
    Disguise("ratings.csv", _lines("Query;Doc ID;Rating", "301;d1;-2", "302;d2;3"), "judgments", "gold"),
    Disguise("cranqrel", _lines("301 FT911-1 4", "302 FT911-2 -1", "302 FT911-3 2"), "judgments", "cranfield", **KNOWN),
    Disguise("q.csv", b"\xef\xbb\xbf" + _table(",", *TOPIC_TABLE).replace(b"\n", b"\r\n"), "topics", "table"),
    Disguise("q.csv", GERMAN_TABLE.encode("utf-16"), "topics", "table", encoding="utf-16-le"),
    Disguise("q.csv", GERMAN_TABLE.encode("utf-16-le"), "topics", "table", encoding="utf-16-le"),
    Disguise("q.csv", GERMAN_TABLE.encode("utf-16-be"), "topics", "table", encoding="utf-16-be"),
    Disguise("q.csv", b"\xfe\xff" + RUSSIAN.encode("utf-16-be"), "topics", "table", encoding="utf-16-be"),
    Disguise("r.run", RUN.decode().encode("utf-16"), "runs", "run", encoding="utf-16-le"),
    Disguise("figure.txt", b"\x89PNG\r\n\x1a\n" + bytes(20), "images", "png"),
    Disguise("figure.png", b"\xff\xd8\xff\xe0" + bytes(20), "images", "jpeg"),
)  # fmt: skip
UNSURE = (
    Disguise("q.csv", GERMAN_TABLE.encode("cp1252"), "topics", "table", encoding="cp1252"),
    Disguise("q.tsv", RUSSIAN.encode("cp1251"), "topics", "table", encoding="cp1251"),
    Disguise("data.tsv", _table("\t", *TOPIC_ROWS), "topics", "tsv"),
    Disguise("queries.jsonl", DOCS_JSONL, "documents", "jsonl"),
    Disguise("topics.csv", _table(",", ("id", "title", "text"), *DOC_ROWS).replace(b"fish, but", b"fish but"),
             "documents", "table"),
    Disguise("a.csv", _table(",", ("name", "note"), ("a", "b c")), "documents", "table"),
    Disguise("topics.csv", _table(",", ("docno", "text"), ("d1", "x")), "documents", "table"),
    Disguise("a.jsonl", _lines('{"foo": "1", "bar": "x"}'), "documents", "jsonl"),
    Disguise("a.json", _lines("{", '"a": "b"', "}"), ""),
    Disguise("five.run", RUN.replace(b" Q0", b""), "runs"),
    Disguise("gold.txt", _lines("d1 0 301 1", "d2 0 302 0"), "judgments", topic_ids=TOPIC_IDS,
             doc_ids=frozenset({"d1", "d2"})),
    Disguise("weights.tsv", _lines("1\tbears\t3", "2\thoney\t1"), "topics", "tsv"),
    Disguise("graded.csv", _lines("topic_id,doc_id,grade", "1,d1,high"), "judgments", "gold"),
    Disguise("q.csv", _table(",", ("query", "question"), ("bears", "what do they eat")), "topics", "table"),
    Disguise("q.csv", _table(",", *TOPIC_ROWS), "topics", "table"),
    Disguise("header.csv", b"id,title,text\n", "documents", "table"),
    Disguise("queries.txt", _lines(*QUERIES), "topics", "tsv"),
    Disguise("prose.txt", (WORDS * 20).encode(), "documents", "page"),
    Disguise("topics.csv", _table(",", ("id", "text"), *[(str(301 + n), WORDS * 9) for n in range(4)])
             .replace(b"fish, but", b"fish but"), "documents", "table"),
    Disguise("cran", _lines(".I 1", ".W", "wings"), "topics", "cranfield"),
    Disguise("bundle.zip", _zip(**{"queries.tsv": TOPICS_JSONL}), ""),
    Disguise("queries.xlsx", workbook(TOPIC_TABLE), ""),
)  # fmt: skip
REFUSED = (
    Disguise("topics.tsv", b"", "", refused="empty"),
    Disguise("topics.tsv", b" \r\n\n", "", refused="empty"),
    Disguise("topics.tsv", b"%PDF-1.7\n%\xe2\xe3", "", refused="pdf"),
    Disguise("corpus.jsonl", b"PAR1\x15\x04", "", refused="parquet"),
    Disguise("corpus", _tar(), "", refused="tar"),
    Disguise("corpus.gz", gzip.compress(_tar()), "", refused="tar"),
    Disguise("sheet.csv", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600), "", refused="xls"),
    Disguise(
        "a.txt", _zip(**{"[Content_Types].xml": b"<x/>", "word/document.xml": b"<x/>"}), "", refused="docx"
    ),
    Disguise("a.tsv", bytes(range(256)) * 8, "", refused="binary"),
    Disguise("a.tsv", gzip.compress(gzip.compress(RUN)), "", refused="gzip"),
    Disguise("a.tsv", b"\x1f\x8b\x08\x00garbage of gzip", "", refused="gzip"),
    Disguise("a.tsv", b"\xfd7zXZ\x00\x00", "", refused="xz"),
    Disguise("a.gz", gzip.compress(b""), "", refused="empty"),
)
