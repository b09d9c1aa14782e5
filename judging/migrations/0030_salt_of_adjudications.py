"""Adjudications hold a salt that an erasure of the reason renews."""

from typing import Any

from django.contrib.postgres.functions import RandomUUID
from django.db import migrations, models

# In two statements: a column that comes with a volatile default would rewrite the table.
FORWARD: list[Any] = [
    "ALTER TABLE judging_adjudication ADD COLUMN salt uuid NULL",
    "ALTER TABLE judging_adjudication ALTER COLUMN salt SET DEFAULT gen_random_uuid()",
]
BACK: list[Any] = ["ALTER TABLE judging_adjudication DROP COLUMN salt"]


class Migration(migrations.Migration):
    dependencies = [("judging", "0027_imports_may_be_removed")]
    operations = [
        migrations.SeparateDatabaseAndState(
            [migrations.RunSQL(FORWARD, BACK)],
            [
                migrations.AddField(
                    "adjudication", "salt", models.UUIDField(db_default=RandomUUID(), editable=False, null=True)
                )
            ],
        ),
    ]
