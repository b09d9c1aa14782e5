"""Batches as files: pairs with an empty grade that go out, and the same pairs with grades that come back."""

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from judging.faults import TrecFormatError
from judging.records import read_documents
from judging.tables import Row, open_rows
from judging.trec import INTEGER, MAX_GRADE
from touchstone_ir.columns import InputRefused
from touchstone_ir.gate_items import Pair, words_of

HEADER = ("topic", "doc", "grade")
TEXT = "text"


def batch_content(
    pairs: Sequence[Pair], grades: Mapping[Pair, int] | None = None, texts: Mapping[str, str] | None = None
) -> bytes:
    """Return the bytes of a batch; with texts as a last column, by document.

    >>> batch_content([("1", "a")]), batch_content([("1", "a")], {("1", "a"): 2})
    (b'topic,doc,grade\\n1,a,\\n', b'topic,doc,grade\\n1,a,2\\n')
    """
    content = io.StringIO()
    writer = csv.writer(content, lineterminator="\n")
    writer.writerow(HEADER if texts is None else (*HEADER, TEXT))
    for pair in pairs:
        grade = "" if grades is None else grades[pair]
        writer.writerow((*pair, grade) if texts is None else (*pair, grade, texts[pair[1]]))
    return content.getvalue().encode()


def read_grades(path: Path) -> dict[Pair, tuple[int, Row]]:
    """Return the grade of every pair of a filled batch, with its row; columns beside topic, doc and grade may be there.

    Raises
    ------
    TrecFormatError
        A column is missing, a pair is there twice, or a grade is missing or no whole number from 0.
    """
    found: dict[Pair, tuple[int, Row]] = {}
    for row in open_rows(path, path.name):
        for column in HEADER:
            if column not in row.cells:
                raise TrecFormatError(row.name, 1, 1, f"no column named {column}", row.sheet)
        pair, grade = (row.cells["topic"], row.cells["doc"]), row.cells["grade"].strip()
        if pair in found:
            before = found[pair][1].line
            row.fail("doc", f"{words_of(pair)} occurs twice (first on line {before})")
        if not grade:
            row.fail("grade", f"no grade of {words_of(pair)}: a batch is answered as a whole")
        if not INTEGER.fullmatch(grade) or not 0 <= int(grade) <= MAX_GRADE:
            row.fail("grade", f"grade must be a whole number in 0..{MAX_GRADE}, not {grade[:40]!r}")
        found[pair] = int(grade), row
    return found


def require_pairs(
    path: Path, found: Mapping[Pair, tuple[int, Row]], batch: Sequence[Pair], name: str
) -> None:
    """Refuse a file with a pair that the batch does not ask for, or without one that it does."""
    wanted = set(batch)
    for pair, (_, row) in found.items():
        if pair not in wanted:
            row.fail("topic", f"{words_of(pair)} is not asked for in {name}")
    missing = [pair for pair in batch if pair not in found]
    if missing:
        line = max((row.line for _, row in found.values()), default=1) + 1
        more = f", and {len(missing) - 1} more lines" if missing[1:] else ""
        raise TrecFormatError(path.name, line, 1, f"{words_of(missing[0])} of {name} is missing{more}")


def read_texts(corpus: Path, pairs: Sequence[Pair]) -> dict[str, str]:
    """Return title and text of the documents of a batch, by id; refused where the corpus lacks one."""
    wanted = {doc for _, doc in pairs}
    texts = {
        record.doc_id: "\n\n".join(filter(None, (record.title, record.text)))
        for record in read_documents(corpus, corpus.name)
        if record.doc_id in wanted
    }
    missing = [pair for pair in pairs if pair[1] not in texts]
    if missing:
        more = f", nor {len(missing) - 1} more" if missing[1:] else ""
        raise InputRefused(f"{corpus}: {words_of(missing[0])} is not there{more}")
    return texts
