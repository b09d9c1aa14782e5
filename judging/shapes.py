"""The form of a text: markup, JSON, a table with a header, or lines of columns; and what it therefore holds."""

import csv
import re
from collections.abc import Mapping, Sequence

from judging.column_names import (
    document_mapping,
    judgment_mapping,
    leaning,
    role_of,
    roles_of,
    topic_mapping,
    unambiguous,
)
from judging.json_shapes import json_shape
from judging.line_shapes import lines_kind
from judging.pages import has_html, is_page
from judging.recognised import KnownIds, Records, Shape, question, topics_or_documents
from judging.tables import parse_lines

SAMPLE = 200  # records
MOST_CELL = 1 << 18
MOST_LINES = 5_000
LONG_LINE = 300  # characters: no query
XML_TOPIC = re.compile(r"<(?:topic|top)\b", re.IGNORECASE)
MARKED_DOCUMENT = re.compile(r"^\.[TAB]\s*$", re.MULTILINE)
ID = re.compile(r"\S{1,512}")
DELIMITERS = ("\t", ";", "|", ",")
# The format of judgments with named fields: in a table or as JSON, and whether somebody is named who judged.
JUDGED = {
    (True, True): "crowd", (True, False): "gold", (False, True): "umbrela", (False, False): "mteb",
}  # fmt: skip


def shape_of(name: str, text: str, known: KnownIds, *, is_whole: bool) -> Shape:
    """Return what a text holds; `is_whole`: it is all of the file, not its beginning."""
    start = text.lstrip()
    if start.startswith("<"):
        shape = _markup(start)
        if shape is not None:
            return shape
    if start.lower().startswith(".i "):
        return _cranfield(name, start, known)
    if start.startswith(("{", "[")):
        found_json = json_shape(start)
        if isinstance(found_json, Shape):
            return found_json
        form, keys, rows = found_json
        return _records(name, keys, rows, known, form, {"topics": form, "documents": form})
    lines = [line for line in text.split("\n") if line.strip()]
    found = lines_kind(lines[:SAMPLE], known)
    if found is not None:
        return Shape(found.kind, found.file_format, found.is_sure, found.why, rivals=found.rivals)
    return _delimited_shape(name, text, lines, known)


def _markup(start: str) -> Shape | None:
    head = start[:200].lower()
    if re.match(r"<top\b", head):
        return Shape("topics", "sgml", True, "Topics: it has the markup <top> of TREC.")
    if re.match(r"<doc\b", head):
        inner = re.sub(
            r"</?(?:doc|docno|text|dochdr)\b[^<>]{0,100}>", "", start[:20_000], flags=re.IGNORECASE
        )
        return Shape(
            "documents",
            "trec",
            True,
            "Documents: it has the markup <DOC> of TREC.",
            is_html=is_page_inside(inner),
        )
    if "<svg" in head:
        return Shape("", "", True, "This is a drawing (SVG): save it as PNG.", is_refused=True)
    if is_page(start):
        return Shape("documents", "page", True, "A document: the file is an HTML page.", is_html=True)
    if XML_TOPIC.search(start[:20_000]) and re.match(r"<[?!a-z]", head):
        return Shape("topics", "xml", True, "Topics: it is XML with elements named topic.")
    if re.match(r"<(?:\?xml|[a-z][\w:.-]*[\s>])", head):
        return question("XML, but neither topics nor documents of TREC: save it as CSV or JSON lines.")
    return None


def is_page_inside(text: str) -> bool:
    """Return whether the text of the first documents is HTML, not only marked up by newspapers."""
    return bool(re.search(r"<(?:html|body|a\s+href|div|span)\b", text, re.IGNORECASE)) and has_html(text)


def _cranfield(name: str, start: str, known: KnownIds) -> Shape:
    if MARKED_DOCUMENT.search(start):
        return Shape(
            "documents", "cranfield", True, "Documents: it has titles and texts in the markup of Cranfield."
        )
    ids = re.findall(r"^\.I\s+(\S+)", start, re.MULTILINE)[:SAMPLE]
    of_topics, _ = known.shares([str(number) for number in range(1, len(ids) + 1)])
    _, of_documents = known.shares(ids)
    if of_documents and not of_topics:
        return Shape(
            "documents",
            "cranfield",
            known.has_topics,
            "Documents: their ids are known, in Cranfield's markup.",
        )
    is_named = re.search(r"qry|quer|topic", name, re.IGNORECASE)
    why = (
        "Topics or documents? It has Cranfield's markup without titles: so do its queries, numbered 1, 2, ..."
    )
    if is_named or (of_topics and not of_documents):
        why = "Topics: queries in the markup of Cranfield, numbered 1, 2, ... as in its qrels."
    return Shape("topics", "cranfield", bool(is_named) and not of_documents, why)


# -- tables ---------------------------------------------------------------------------------------------------


def _split(text: str, delimiter: str) -> list[list[str]]:
    """Return the first records; none if the text is no CSV with this delimiter."""
    rows: list[list[str]] = []
    csv.field_size_limit(max(csv.field_size_limit(), MOST_CELL))
    try:
        lines = text.split("\n", MOST_LINES)[:MOST_LINES]
        for row in parse_lines((line + "\n" for line in lines), delimiter):
            rows += [row] if any(cell.strip() for cell in row) else []
            if len(rows) == SAMPLE:
                break
    except csv.Error:  # a quotation mark that the end of the beginning leaves open, or none at all
        rows = rows[:SAMPLE]
    return rows


def _fit(rows: Sequence[Sequence[str]]) -> tuple[bool, bool, int]:
    """Return how well a delimiter fits: the header has known names, rows are as wide as it, and how wide."""
    if not rows or len(rows[0]) < 2:
        return False, False, 0
    same = sum(len(row) == len(rows[0]) for row in rows) / len(rows)
    has_names = any(role_of(title.strip()) for title in rows[0])
    return has_names and same >= 0.5, same >= 0.8, len(rows[0])


def _delimited_shape(name: str, text: str, lines: list[str], known: KnownIds) -> Shape:
    tables = {delimiter: _split(text, delimiter) for delimiter in DELIMITERS}
    fits = {delimiter: _fit(rows) for delimiter, rows in tables.items()}
    delimiter = max(DELIMITERS, key=lambda one: fits[one])
    has_names, is_even, width = fits[delimiter]
    if not width or not (has_names or is_even):
        return _no_table(lines)
    rivals = [
        one for one in DELIMITERS if one != delimiter and fits[one][:2] == (has_names, True) and is_even
    ]
    shape = table_shape(name, tables[delimiter], known, delimiter=delimiter)
    if rivals:
        why = f"{shape.why} Two signs could part its columns: choose one."
        return Shape(**{**shape.__dict__, "is_sure": False, "why": why})
    return shape


def _no_table(lines: list[str]) -> Shape:
    title = lines[0].strip()
    if role_of(title) and len(lines) > 1:
        why = "A table of one column: without ids its rows can be numbered."
        return Shape("", "table", False, why, columns=(title,))
    why = "Text without columns: one document, or a list of texts without ids?"
    is_prose = len(lines) == 1 or max(map(len, lines)) > LONG_LINE
    return Shape("documents" if is_prose else "", "page", False, why)


def table_shape(
    name: str, rows: Sequence[Sequence[str]], known: KnownIds, *, delimiter: str = "", is_sheet: bool = False
) -> Shape:
    """Return what a table holds, by its header and its first rows."""
    rows = [row for row in rows if any(cell.strip() for cell in row)]
    if not rows:
        return Shape("", "", True, "The sheet is empty.", is_refused=True)
    titles = [title.strip() for title in rows[0]]
    if not _is_header(titles, rows[1:]):
        if delimiter == "\t" and not is_sheet:
            return _without_header(name, rows, known)
        return question("A table without a header: add a first line such as id,text.", delimiter=delimiter)
    if len(rows) == 1:
        return question("A header, and no row below it.", columns=tuple(titles), delimiter=delimiter)
    body = [list(row) + [""] * (len(titles) - len(row)) for row in rows[1:]]
    formats = {"topics": "table", "documents": "table"}
    shape = _records(name, titles, body, known, "table", formats)
    return Shape(**{**shape.__dict__, "delimiter": delimiter})


def _is_header(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row names columns: one name is known, or all are short words unlike what is below."""
    if any(role_of(title) for title in titles) and all(len(title) <= 80 for title in titles):
        return True
    are_words = all(re.fullmatch(r"[^\W\d][\w .:/()#-]{0,40}", title) for title in titles)
    if not are_words or len(set(titles)) < len(titles) or not rows:
        return False
    longest = max(len(title) for title in titles)
    below = [max((len(cell) for cell in row), default=0) for row in rows]
    return sum(below) / len(below) > 2 * longest


def _without_header(name: str, rows: Sequence[Sequence[str]], known: KnownIds) -> Shape:
    """Return what lines of ``id<TAB>text`` hold."""
    widths = {len(row) for row in rows}
    ids = [row[0].strip() for row in rows]
    if not widths <= {2, 3} or sum(bool(ID.fullmatch(one)) for one in ids) < 0.9 * len(ids):
        return question(
            "A table without a header, and not of ids and texts: add a header such as id, a tab, text.",
            delimiter="\t",
        )
    texts = [row[-1] if len(row) == 2 else " ".join(row[1:]) for row in rows]
    records = Records(ids, texts, "", 0, "")
    guess = topics_or_documents(name, records, known)
    return Shape(
        guess.kind,
        "tsv",
        guess.is_sure,
        f"{guess.why} Its lines are an id, a tab and a text.",
        is_html=guess.kind == "documents" and _are_html(texts),
    )


def _are_html(texts: Sequence[str]) -> bool:
    return sum(map(has_html, texts[:20])) * 2 > len(texts[:20])


def _records(
    name: str,
    titles: list[str],
    rows: list[list[str]],
    known: KnownIds,
    form: str,
    formats: Mapping[str, str],
) -> Shape:
    """Return what records with named fields hold: judgments, topics or documents."""
    roles = roles_of(titles)
    columns = tuple(titles)
    if {"judge", "truth", "topic_id", "doc_id"} <= {*titles, *roles}:
        why = "Judgments: a judge's labels beside the truth. An import takes the truth, for gold answers."
        truth = judgment_mapping({**roles, "grade": "truth"})
        truth.pop("assessor", None)
        return Shape(
            "judgments", "pairs", form == "table", why, columns=columns, mapping=unambiguous(truth, titles)
        )
    if {"rank", "topic_id", "doc_id"} <= set(roles):
        why = f"A run: it has the columns {', '.join(titles[:6])}."
        return Shape("runs", "pyterrier", form == "table", why, columns=columns)
    judged = judgment_mapping(roles)
    if judged:
        return _judgments(judged, titles, rows, known, form, columns)
    _add_id_by_ids(roles, titles, rows, known)
    mappings = {"topics": topic_mapping(roles), "documents": document_mapping(roles)}
    cells = {title: [row[index].strip() for row in rows] for index, title in enumerate(titles)}
    texts = _join_cells(cells, mappings["documents"].get("text", ()), len(rows))
    (id_column,) = mappings["documents"].get("id") or mappings["topics"].get("id") or ("",)
    ids = [one for one in cells.get(id_column, []) if one]
    leans, strength = leaning(roles)
    reason = f"it has the {'columns' if form == 'table' else 'fields'} {', '.join(titles[:6])}"
    guess = topics_or_documents(name, Records(ids, texts, leans, strength, reason), known)
    kind, is_sure, why = guess.kind, guess.is_sure, guess.why
    text_field = "title" if kind == "topics" else "text"
    mapping = mappings.get(kind, {})
    if kind and not mapping.get(text_field):
        is_sure, why = False, f"{why} Which column is the {text_field}?"
    if not id_column:
        is_sure, why = False, f"{why} No column is named like ids: choose one, or number the rows."
    elif not all(ID.fullmatch(one) for one in cells[id_column]):
        is_sure, why = False, f"{why} Some ids in {id_column} are empty or hold white space."
    is_html = kind == "documents" and _are_html(texts)
    return Shape(
        kind, formats.get(kind, form), is_sure, why, columns=columns, mapping=mapping, is_html=is_html
    )


def _join_cells(cells: Mapping[str, list[str]], columns: Sequence[str], n: int) -> list[str]:
    if not columns:
        return [max((column[index] for column in cells.values()), key=len, default="") for index in range(n)]
    return [" ".join(cells[title][index] for title in columns) for index in range(n)]


def _add_id_by_ids(roles: dict[str, str], titles: list[str], rows: list[list[str]], known: KnownIds) -> None:
    """Let ids that are known name the column of ids where no title does."""
    if {"id", "topic_id", "doc_id"} & set(roles):
        return
    for index, title in enumerate(titles):
        values = [row[index].strip() for row in rows]
        if max(known.shares(values)) >= 0.5:
            roles["id"] = title
            return


def _judgments(
    judged: dict[str, tuple[str, ...]],
    titles: list[str],
    rows: list[list[str]],
    known: KnownIds,
    form: str,
    columns: tuple[str, ...],
) -> Shape:
    grades = [row[titles.index(judged["grade"][0])].strip() for row in rows]
    is_whole = all(re.fullmatch(r"[+-]?\d{1,3}|", one) for one in grades)
    file_format = JUDGED[form == "table", "assessor" in judged]
    said = f"it has the columns {', '.join(title for (title,) in judged.values())}"
    is_sure, why = True, f"Judgments: {said}."
    if not is_whole:
        is_sure, why = (
            False,
            f"Judgments? {said[:1].upper()}{said[1:]}, but some grades are no whole numbers.",
        )
    for one, ids, other in (
        ("topic", known.topic_ids, known.doc_ids),
        ("document", known.doc_ids, known.topic_ids),
    ):
        if one in judged:
            values = [row[titles.index(judged[one][0])].strip() for row in rows]
            if not any(value in ids for value in values) and any(value in other for value in values):
                is_sure, why = (
                    False,
                    f"Judgments? The column {judged[one][0]} holds no ids of {one}s that are known.",
                )
    rivals = ("pyterrier",) if file_format == "gold" and not is_whole else ()
    mapping = unambiguous(judged, titles)
    return Shape("judgments", file_format, is_sure, why, columns=columns, mapping=mapping, rivals=rivals)
