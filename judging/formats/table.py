"""The table of the file formats that are read and written, and how one is found by its key."""

from collections.abc import Iterator
from functools import partial

from judging import json_tables, trec_tables
from judging.faults import Faults, Noting, NotingAll
from judging.file_options import PLAIN, FileOptions
from judging.formats.kinds import Format, JudgmentFormat, PlaceOf, RunFormat, TopicFormat
from judging.judgment_objects import read_mteb, read_umbrela
from judging.judgment_tables import read_crowd_labels, read_gold, read_pairs
from judging.places import place_of_cell, place_of_field, place_of_object, place_of_umbrela
from judging.run_columns import RunColumns
from judging.run_objects import object_rows
from judging.run_tables import RunFile, find_row_faults, msmarco_rows, read_msmarco, read_ranked, table_rows
from judging.runs import find_faults, read_columns, read_first
from judging.samples import PRELS, STRATA
from judging.textfiles import Source
from judging.trec import (
    QrelRecord,
    read_beir,
    read_fields,
    read_prels,
    read_qrels,
    read_qrels_jg,
    read_stratified,
)


def read_cranfield(
    source: Source,
    name: str,
    *,
    allows_repeats: bool = False,
    faults: Faults | None = None,
    options: FileOptions = PLAIN,
) -> Iterator[QrelRecord]:
    """Return the records of Cranfield's three columns ``query document code``; repeats that agree are allowed."""
    noting = Noting(faults)
    with NotingAll(faults):
        layout = "topic document grade"
        for fields in read_fields(source, name, 3, layout, faults=faults, encoding=options.encoding):
            with noting:
                yield QrelRecord(fields.id(0, "topic id"), fields.id(1, "document id"), fields.grade(2))


def _in_columns(*columns: str, n_headers: int = 0) -> PlaceOf:
    """Return the function that finds a place in lines of these columns, parted by blanks."""
    return lambda source, name, index, what, options: place_of_field(
        source, name, index + n_headers, len(columns), columns.index(what), options
    )


def _read_trec_run(file: RunFile, run_tag: str) -> RunColumns:
    return read_columns(file.source, file.name, file.limits, file.encoding, run_tag)


def _read_first_of_trec(file: RunFile, run_tag: str, depth: int) -> tuple[RunColumns, int]:
    return read_first(file.source, file.name, depth, file.limits, file.encoding, run_tag)


def _find_trec_faults(file: RunFile, run_tag: str) -> None:
    if file.faults is not None:
        find_faults(file.source, file.name, file.faults, file.limits, file.encoding, run_tag)


RUN_FORMATS = (
    RunFormat(
        key="run",
        label="TREC run",
        help="A line: topic Q0 document rank score tag. The score ranks, never the rank.",
        tool="trec_eval and all its relatives",
        recognised="six columns, the fourth and fifth numbers",
        extensions=(".run", ".trec", ".res"),
        read=_read_trec_run,
        find_faults=_find_trec_faults,
        read_first=_read_first_of_trec,
        write=trec_tables.write_run,
        names_run=True,
    ),
    RunFormat(
        key="msmarco",
        label="MS MARCO run",
        help="A line: topic document rank. The run is named like its file.",
        tool="MS MARCO, PyTerrier (minimal), Anserini",
        recognised="three columns, the third counting up within each topic",
        extensions=(".tsv",),
        read=read_msmarco,
        find_faults=partial(find_row_faults, msmarco_rows),
        write=trec_tables.write_msmarco,
    ),
    RunFormat(
        key="json_run",
        label="JSON run",
        help='An object: {"topic": {"document": score}}; as MTEB writes it, below subset and split. The run is named '
        "like its file.",
        tool="ranx, BEIR, MTEB, pytrec_eval",
        recognised="one JSON object whose values are objects of numbers",
        extensions=(".json",),
        read=partial(read_ranked, object_rows),
        find_faults=partial(find_row_faults, object_rows),
        write=json_tables.write_run_object,
    ),
    RunFormat(
        key="pyterrier",
        label="PyTerrier run (CSV)",
        help="CSV with a header: qid,docno,rank,score, and name where it is there; else the run is named like its "
        "file.",
        tool="PyTerrier",
        recognised="a header with a topic, a document, and a score with a rank",
        extensions=(".csv",),
        read=partial(read_ranked, table_rows),
        find_faults=partial(find_row_faults, table_rows),
        write=trec_tables.write_pyterrier,
        names_run=True,
    ),
)
JUDGMENT_FORMATS = (
    JudgmentFormat(
        key="qrels",
        label="qrels",
        help="A line: topic 0 document grade. No assessors: gold answers only.",
        tool="TREC, trec_eval and all its relatives",
        recognised="four columns, the last a whole number",
        extensions=(".qrels", ".qrel"),
        read=read_qrels,
        place=_in_columns("topic", "iteration", "document", "grade"),
        write=trec_tables.write_qrels,
    ),
    JudgmentFormat(
        key="qrels_jg",
        label="qrels_jg",
        help="A line: topic assessor document grade.",
        tool="Touchstone; TREC's crowdsourcing tracks",
        recognised="four columns, the second no number and not the same everywhere",
        extensions=(".qrels_jg",),
        read=read_qrels_jg,
        place=_in_columns("topic", "assessor", "document", "grade"),
        names_assessors=True,
        write=trec_tables.write_qrels_jg,
    ),
    JudgmentFormat(
        key="crowd",
        label="Crowd labels",
        help="CSV with a header: task,worker,label, the task being topic and document; or Input.topic_id, "
        "Input.doc_id, WorkerId, Answer.grade as from Mechanical Turk.",
        tool="crowd-kit, Mechanical Turk",
        recognised="a header with a pair (or a task), somebody who judged, and a grade",
        extensions=(".csv",),
        read=read_crowd_labels,
        place=place_of_cell,
        names_assessors=True,
        write=trec_tables.write_crowd_file,
    ),
    JudgmentFormat(
        key="gold",
        label="Gold grades (CSV)",
        help="CSV with a header: topic_id,doc_id,grade; with probability where documents were chosen by it. An empty "
        "grade: not chosen. Gold answers only.",
        tool="Touchstone, spreadsheets",
        recognised="a header with a pair and a grade, and nobody who judged",
        extensions=(".csv",),
        read=read_gold,
        place=place_of_cell,
        has_probabilities=True,
        write=trec_tables.write_gold,
    ),
    JudgmentFormat(
        key="beir",
        label="BEIR qrels",
        help="A header: query-id corpus-id score, then a line: topic document grade. No assessors: gold answers only.",
        tool="BEIR",
        recognised="its header",
        extensions=(".tsv",),
        read=read_beir,
        place=_in_columns("topic", "document", "grade", n_headers=1),
        write=trec_tables.write_beir_qrels,
    ),
    JudgmentFormat(
        key="cranfield",
        label="Cranfield",
        help="A line: topic document code. No assessors: gold answers only, with a grade map.",
        tool="the Cranfield collection",
        recognised="three columns of known topics, known documents and whole numbers",
        read=read_cranfield,
        place=_in_columns("topic", "document", "grade"),
        usual_map="1=3,2=3,3=2,4=1,5=0,-1=0",  # 1 is best, 4 least; -1 and 5 are not relevant
    ),
    JudgmentFormat(
        key="prels",
        label="prels",
        help="A line: topic document grade method probability. A sample drawn elsewhere, for a campaign without a "
        "draw.",
        tool="TREC's Million Query track, Touchstone",
        recognised="five columns, the last a probability",
        extensions=(".prels",),
        read=read_prels,
        place=_in_columns("topic", "document", "grade", "method", "probability"),
        sample=PRELS,
        has_probabilities=True,
        write=trec_tables.write_prels,
    ),
    JudgmentFormat(
        key="stratified",
        label="Stratified qrels",
        help="A line: topic 0 document stratum grade, -1 where not sampled: for a campaign without a draw.",
        tool="TREC (sample_eval)",
        recognised="five columns, the last two whole numbers",
        extensions=(".strata",),
        read=read_stratified,
        place=_in_columns("topic", "iteration", "document", "stratum", "grade"),
        sample=STRATA,
        write=trec_tables.write_stratified,
    ),
    JudgmentFormat(
        key="mteb",
        label="MTEB qrels (JSONL)",
        help='A line: {"query-id": topic, "corpus-id": document, "score": grade}. No assessors: gold answers only.',
        tool="MTEB, and BEIR's sets on the Hugging Face Hub",
        recognised="JSON with its keys",
        extensions=(".jsonl",),
        read=read_mteb,
        place=place_of_object,
        write=json_tables.write_mteb,
    ),
    JudgmentFormat(
        key="umbrela",
        label="umbrela's judgments (JSONL)",
        help='A line: {"qid": topic, "docid": document, "model": assessor, "judgment": grade}, as umbrela writes it '
        "with qid and docid added. Result status 0 is left out.",
        tool="umbrela",
        recognised="JSON with the keys query, passage and judgment",
        extensions=(".umbrela.jsonl",),
        read=read_umbrela,
        place=place_of_umbrela,
        names_assessors=True,
        write=json_tables.write_umbrela,
    ),
    JudgmentFormat(
        key="pairs",
        label="Labels beside truth (CSV)",
        help="CSV with a header: topic,doc,judge,truth; the truth is empty where nobody looked. Converted, it is two "
        "files: labels and gold.",
        tool="truescore, ppi-python",
        recognised="its header",
        extensions=(".pairs.csv",),
        read=read_pairs,
        place=place_of_cell,
        imported_as="gold",  # its truth: the recognition names the column
        write=trec_tables.write_pairs,
    ),
)
TOPIC_FORMATS = (
    TopicFormat(
        key="topics_sgml",
        label="TREC topics",
        help="Markup: <top> with <num>, <title>, <desc>, <narr>.",
        tool="TREC",
        recognised="it begins with <top>",
        reader="sgml",
    ),
    TopicFormat(
        key="topics_xml",
        label="XML topics",
        help="XML with elements named topic.",
        tool="TREC",
        recognised="it is XML with elements named topic",
        reader="xml",
    ),
    TopicFormat(
        key="topics_jsonl",
        label="JSON topics",
        help="A line: {_id, text} or {query_id, title, description, narrative}; or an array of these.",
        tool="BEIR, MTEB, ir_datasets",
        recognised="JSON with an id and a text",
        reader="jsonl",
    ),
    TopicFormat(
        key="topics_tsv",
        label="TSV topics",
        help="A line: topic, a tab, its words.",
        tool="MS MARCO",
        recognised="lines of an id, a tab and a text",
        reader="tsv",
    ),
    TopicFormat(
        key="topics_table",
        label="Table of topics",
        help="CSV or TSV with a header: topic_id or query_id, title or query, description, narrative.",
        tool="spreadsheets, PyTerrier",
        recognised="a header that names a topic and a text",
        reader="table",
    ),
    TopicFormat(
        key="topics_cranfield",
        label="Cranfield's queries",
        help="Markup: .I and .W; numbered 1, 2, ... in the order of the file.",
        tool="the Cranfield collection",
        reader="cranfield",
    ),
)
FORMATS: tuple[Format, ...] = (*RUN_FORMATS, *JUDGMENT_FORMATS, *TOPIC_FORMATS)


def format_of(key: str, holds: str = "") -> Format:
    """Return the format of that key, of those that hold runs, judgments or topics; ValueError for any other.

    >>> format_of("qrels").holds
    'judgments'
    """
    among = [one for one in FORMATS if not holds or one.holds == holds]
    found = next((one for one in among if one.key == key), None)
    if found is None:
        raise ValueError(f"format must be one of {', '.join(one.key for one in among)}, not {key[:40]!r}")
    return found
