"""The matrices of assessors so far hold their ids alone.

Some thousand a transaction, so that nobody who computes waits long. What was done stays done when it begins anew.
"""

from typing import Any

from django.db import migrations, transaction

AT_ONCE = 10_000
TABLE, TRIGGER = "analytics_confusionestimate", "analytics_confusionestimate_append_only"
STATE = "SELECT tgenabled FROM pg_trigger WHERE tgname = %s AND tgrelid = %s::regclass"
# In the order of their ids: each batch goes on where the one before ended.
CONVERT = f"""
WITH batch AS (
  SELECT id FROM {TABLE} WHERE id > %s AND scope = 'assessor' AND label <> '' ORDER BY id LIMIT %s),
done AS (UPDATE {TABLE} SET label = '' WHERE id IN (SELECT id FROM batch) RETURNING id)
SELECT count(*), max(id) FROM done
"""


def convert(apps: Any, editor: Any) -> None:
    last, n = 0, AT_ONCE
    while n == AT_ONCE:
        with transaction.atomic(using=editor.connection.alias), editor.connection.cursor() as cursor:
            n, last = _convert_batch(cursor, last)


def _convert_batch(cursor: Any, after: int) -> tuple[int, int]:
    """Take the names out of the next rows; return how many, and the last one's id."""
    # The trigger is the owner's to switch off, for this transaction; afterwards it is as it was.
    cursor.execute(STATE, [TRIGGER, TABLE])
    always = "ALWAYS " if cursor.fetchone()[0] == "A" else ""
    cursor.execute(f"ALTER TABLE {TABLE} DISABLE TRIGGER {TRIGGER}")
    cursor.execute(CONVERT, [after, AT_ONCE])
    n, last = cursor.fetchone()
    cursor.execute(f"ALTER TABLE {TABLE} ENABLE {always}TRIGGER {TRIGGER}")
    return n, last


class Migration(migrations.Migration):
    atomic = False

    dependencies = [("analytics", "0016_matrices_hold_no_names")]
    operations = [migrations.RunPython(convert, migrations.RunPython.noop)]
