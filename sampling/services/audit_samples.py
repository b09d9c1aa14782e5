"""The sample of an audit, line by line, so that anyone can draw it again from its seed."""

import io
import uuid
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from django.db import connection

from judging.spreadsheets import SheetWriter
from sampling.audit_plan import middle_grades
from sampling.draws import permanent_random_numbers
from sampling.models import Audit, AuditEntry
from sampling.strategies import strategy_of
from sampling.whole_topics import topic_numbers

AT_ONCE = 2000
COLUMNS = ("topic", "document", "bronze_grade", "inclusion_probability", "random_number", "selected", "seed")
GRADES = """
SELECT DISTINCT ON (j.item_id, j.assessor_id) j.item_id, j.grade
  FROM judging_judgment j JOIN judging_slot s ON s.id = j.slot_id
 WHERE j.item_id = ANY(%s) AND s.purpose IN ('judge', 'check')
 ORDER BY j.item_id, j.assessor_id, j.sequence DESC
"""


def sample_lines(audit: Audit) -> Iterator[str]:
    """Yield the CSV of all items the audit could select, read in parts: memory does not grow with the audit.

    `selected` is 1 where random_number < inclusion_probability; the random number follows from topic, document and seed
    (`sampling.draws.permanent_random_numbers`), or where whole topics are audited from topic and seed
    (`sampling.whole_topics.topic_numbers`). The bronze grade is today's median of the ordinary grades, between two
    the lower one, and empty where none is left.
    """
    yield _lines([COLUMNS])
    rows = (
        AuditEntry.objects.filter(audit=audit)
        .order_by("pk")
        .values_list(
            "item_id", "item__topic__topic_id", "item__document__doc_id", "inclusion_probability", "selected"
        )
        .iterator(chunk_size=AT_ONCE)
    )
    while part := list(islice(rows, AT_ONCE)):
        yield _lines(_part(part, audit))


def _part(rows: Sequence[tuple[Any, ...]], audit: Audit) -> list[Sequence[Any]]:
    """Return the lines; gold that was chosen elsewhere has neither random numbers nor a seed."""
    is_drawn, seed = not audit.declaration, audit.seed
    items, topics, documents, probabilities, selected = zip(*rows, strict=True)
    grades = _bronze_grades(items)
    numbers: Sequence[Sequence[str]] = [("",)] * len(rows)
    if is_drawn:
        by_topic = strategy_of(audit.strategy).takes_topics
        found = topic_numbers(topics, seed) if by_topic else permanent_random_numbers(topics, documents, seed)
        numbers = [(repr(number),) for number in found.tolist()]
    return [
        (topic, document, grades.get(item, ""), repr(pi), *shown, int(taken), seed if is_drawn else "")
        for item, topic, document, pi, shown, taken in zip(
            items, topics, documents, probabilities, numbers, selected, strict=True
        )
    ]


def _bronze_grades(items: Sequence[uuid.UUID]) -> dict[uuid.UUID, int]:
    with connection.cursor() as cursor:
        cursor.execute(GRADES, [list(items)])
        labels = [row for row in cursor.fetchall() if row[1] is not None]
    place = {item: index for index, item in enumerate(dict.fromkeys(item for item, _ in labels))}
    grades = middle_grades([place[item] for item, _ in labels], [grade for _, grade in labels], len(place))
    return dict(zip(place, grades.tolist(), strict=True))


def _lines(rows: Sequence[Sequence[Any]]) -> str:
    target = io.StringIO()
    writer = SheetWriter(target)
    for row in rows:
        writer.writerow(row)
    return target.getvalue()
