"""The names of deleted collections and campaigns are free: a name is unique among those that are not deleted.

The new rule is there before the old one goes, so at no moment are there two of a name.
"""

from django.db import migrations, models
from django.db.models import Q

TABLES = {"judging_collection": "collection", "judging_campaign": "campaign"}
# What Django made beside a unique name, for LIKE.
PATTERNS = {
    "judging_collection": "judging_collection_name_f4557f7b_like",
    "judging_campaign": "judging_campaign_name_51b22e3d_like",
}


def _rule(table: str) -> models.UniqueConstraint:
    return models.UniqueConstraint(
        name=f"{table}_name",
        fields=["name"],
        condition=Q(deleted_at__isnull=True),
        violation_error_message="This name is already taken.",
    )


def _first(table: str) -> migrations.RunSQL:
    # One that an interrupted attempt left is of no use, and IF NOT EXISTS would keep it.
    return migrations.RunSQL(
        [
            f"DROP INDEX CONCURRENTLY IF EXISTS {table}_name",
            f"CREATE UNIQUE INDEX CONCURRENTLY {table}_name ON {table} (name) WHERE deleted_at IS NULL",
        ],
        [f"DROP INDEX CONCURRENTLY IF EXISTS {table}_name"],
        state_operations=[migrations.AddConstraint(TABLES[table], _rule(table))],
    )


def _then(table: str) -> migrations.RunSQL:
    return migrations.RunSQL(
        [
            f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {table}_name_key",
            f"DROP INDEX CONCURRENTLY IF EXISTS {PATTERNS[table]}",
        ],
        [
            f"ALTER TABLE {table} ADD CONSTRAINT {table}_name_key UNIQUE (name)",
            f"CREATE INDEX CONCURRENTLY {PATTERNS[table]} ON {table} (name varchar_pattern_ops)",
        ],
        state_operations=[migrations.AlterField(TABLES[table], "name", models.CharField(max_length=100))],
    )


class Migration(migrations.Migration):
    # An index is made beside what is done meanwhile. All can be done again, where a statement was refused its lock.
    atomic = False

    dependencies = [("judging", "0037_imports_are_taken_back")]
    operations = [*map(_first, TABLES), *map(_then, TABLES)]
