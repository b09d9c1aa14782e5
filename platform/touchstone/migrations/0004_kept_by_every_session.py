"""The log of events is neither truncated nor, by a superuser's session that plays a replica, rewritten."""

from typing import Any

from django.db import migrations

FORWARD: list[Any] = [
    "ALTER TABLE touchstone_event ENABLE ALWAYS TRIGGER touchstone_event_append_only",
    "CREATE OR REPLACE TRIGGER touchstone_event_no_truncate BEFORE TRUNCATE ON touchstone_event"
    " FOR EACH STATEMENT EXECUTE FUNCTION touchstone_refuse_change()",
    "ALTER TABLE touchstone_event ENABLE ALWAYS TRIGGER touchstone_event_no_truncate",
]
BACK: list[Any] = [
    "DROP TRIGGER IF EXISTS touchstone_event_no_truncate ON touchstone_event",
    "ALTER TABLE touchstone_event ENABLE TRIGGER touchstone_event_append_only",
]


class Migration(migrations.Migration):
    atomic = False  # each statement by itself: nobody waits for more than one table

    dependencies = [("touchstone", "0003_user_language")]
    operations = [migrations.RunSQL(FORWARD, BACK)]
