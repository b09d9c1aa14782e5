"""Findings hold a salt that an erasure of the reason renews."""

from typing import Any

from django.contrib.postgres.functions import RandomUUID
from django.db import migrations, models

# In two statements: a column that comes with a volatile default would rewrite the table.
FORWARD: list[Any] = [
    "ALTER TABLE sampling_topicfinding ADD COLUMN salt uuid NULL",
    "ALTER TABLE sampling_topicfinding ALTER COLUMN salt SET DEFAULT gen_random_uuid()",
]
BACK: list[Any] = ["ALTER TABLE sampling_topicfinding DROP COLUMN salt"]


class Migration(migrations.Migration):
    dependencies = [("sampling", "0016_kept_by_every_session")]
    operations = [
        migrations.SeparateDatabaseAndState(
            [migrations.RunSQL(FORWARD, BACK)],
            [
                migrations.AddField(
                    "topicfinding", "salt", models.UUIDField(db_default=RandomUUID(), editable=False, null=True)
                )
            ],
        ),
    ]
