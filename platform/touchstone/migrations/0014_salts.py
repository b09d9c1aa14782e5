"""Sessions are checked against a salt too; events hold one that an erasure renews."""

from typing import Any

from django.contrib.postgres.functions import RandomUUID
from django.db import migrations, models

# In two statements: a column that comes with a volatile default would rewrite the table.
FORWARD: list[Any] = [
    "ALTER TABLE touchstone_event ADD COLUMN salt uuid NULL",
    "ALTER TABLE touchstone_event ALTER COLUMN salt SET DEFAULT gen_random_uuid()",
]
BACK: list[Any] = ["ALTER TABLE touchstone_event DROP COLUMN salt"]


class Migration(migrations.Migration):
    dependencies = [("touchstone", "0013_draining")]
    operations = [
        migrations.AddField(
            "user",
            "session_salt",
            models.CharField(blank=True, db_default="", default="", editable=False, max_length=32),
        ),
        migrations.SeparateDatabaseAndState(
            [migrations.RunSQL(FORWARD, BACK)],
            [
                migrations.AddField(
                    "event", "salt", models.UUIDField(db_default=RandomUUID(), editable=False, null=True)
                )
            ],
        ),
    ]
