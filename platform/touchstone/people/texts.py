"""Where people write about people: every column of free text in which a name may stand, in one table.

What is judged (documents, topics, runs) is content, no word of anybody's here; releases stay as they were published.
The name of a file of gold is sealed with its grades and cannot be changed: in `judging_goldanswer.source` it stays.
`manage.py person` says where a word still stands in any column of any table.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db import connection

from touchstone.people.words import Words


@dataclass(frozen=True)
class Text:
    """A column, whether it is JSON, and whether only the owner's function may change it."""

    table: str
    column: str
    is_json: bool = False
    by_function: bool = False
    is_sealed: bool = False
    unless: str = "false"  # rows that stay as they are


TEXTS = (
    Text("touchstone_event", "detail", is_json=True, by_function=True, is_sealed=True),
    Text("judging_judgment", "comment", by_function=True, is_sealed=True),
    Text("judging_adjudication", "reason", by_function=True, is_sealed=True),
    Text("sampling_topicfinding", "reason", by_function=True, is_sealed=True),
    Text("judging_scale", "name", by_function=True),
    Text("judging_message", "text", by_function=True),
    Text("judging_invitation", "note", by_function=True),
    Text("touchstone_apitoken", "name", by_function=True),
    Text("touchstone_job", "payload", is_json=True),
    Text("touchstone_job", "result", is_json=True),
    Text("touchstone_job", "note"),
    Text("touchstone_job", "error"),
    Text("touchstone_letter", "title"),
    Text("touchstone_letter", "text"),
    Text("touchstone_letter", "answer"),
    Text("touchstone_webhook", "url"),
    Text("touchstone_webhookdelivery", "answer"),
    Text("judging_assessor", "team"),
    Text("judging_campaigntopic", "team"),
    *(
        Text("judging_campaign", name)
        for name in (
            "name",
            "guidelines",
            "consent",
            "machine_prompt",
            "market_origin",
            "completion_code",
            "completion_url",
        )
    ),
    *(Text("judging_collection", name) for name in ("name", "description", "source", "licence")),
    *(Text("judging_import", name, is_json=True) for name in ("files", "options", "report")),
    Text("judging_run", "description"),
    Text("judging_run", "group"),
    Text("judging_trainingitem", "explanation"),
    *(
        Text("analytics_release", name, unless="state = 'ready'")
        for name in ("title", "authors", "notes", "licence")
    ),
)
ALL_TEXT = """
SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
  JOIN pg_type t ON t.oid = a.atttypid
 WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p') AND attnum > 0
   AND NOT attisdropped AND t.typname IN ('text', 'varchar', 'jsonb', '_text', '_varchar') ORDER BY 1, 2
"""


def changes(text: Text, words: Words) -> Iterator[tuple[int, str]]:
    """Yield id and new value, as text, of each row in which a word of the person stands."""
    sql = f"""SELECT id, "{text.column}"::text FROM "{text.table}"
               WHERE "{text.column}"::text ILIKE ANY (%s) AND NOT ({text.unless}) ORDER BY id"""  # noqa: S608
    with connection.cursor() as cursor:
        cursor.execute(sql, [words.patterns()])
        for key, old in cursor.fetchall():
            new = _renamed_value(text, old, words)
            if new != old:
                yield key, new


def _renamed_value(text: Text, old: str, words: Words) -> str:
    if not text.is_json:
        return words.rename(old)
    before = json.loads(old)
    after = words.rename_in(before)
    return old if after == before else json.dumps(after, ensure_ascii=False)


def write(text: Text, key: Any, value: str) -> None:
    """Write the value into the row, by the owner's function where nobody else may.

    The function waits for whoever is sealing, however long that takes: a role's `lock_timeout` is for requests.
    """
    with connection.cursor() as cursor:
        if text.by_function:
            cursor.execute(
                "SELECT set_config('lock_timeout', '0', true), touchstone_erase(%s, %s, %s)",
                [text.table, key, value],
            )
        else:
            kind = "jsonb" if text.is_json else "text"
            cursor.execute(
                f'UPDATE "{text.table}" SET "{text.column}" = %s::{kind} WHERE id = %s',  # noqa: S608
                [value, key],
            )


def places(words: Words) -> Iterator[tuple[str, str, int]]:
    """Yield every table and column in which a word still stands, with the number of its rows; it reads everything."""
    with connection.cursor() as cursor:
        cursor.execute(ALL_TEXT)
        for table, column in cursor.fetchall():
            cursor.execute(
                f'SELECT count(*) FROM "{table}" WHERE "{column}"::text ILIKE ANY (%s)',  # noqa: S608
                [words.patterns()],
            )
            n = cursor.fetchone()[0]
            if n:
                yield table, column, n
