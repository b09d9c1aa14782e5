"""A tag is unique among the runs that were not set aside. The new rule is there before the old one goes."""

from django.db import migrations, models
from django.db.models import Q

RULE = models.UniqueConstraint(
    name="judging_run_tag", fields=["collection", "run_id"], condition=Q(set_aside_at__isnull=True)
)


class Migration(migrations.Migration):
    # An index is made beside what is done meanwhile. All can be done again, where a statement was refused its lock.
    atomic = False

    dependencies = [("judging", "0041_what_is_set_aside")]
    operations = [
        migrations.RunSQL(
            [
                "DROP INDEX CONCURRENTLY IF EXISTS judging_run_tag",
                "CREATE UNIQUE INDEX CONCURRENTLY judging_run_tag ON judging_run (collection_id, run_id)"
                " WHERE set_aside_at IS NULL",
            ],
            ["DROP INDEX CONCURRENTLY IF EXISTS judging_run_tag"],
            state_operations=[migrations.AddConstraint("run", RULE)],
        ),
        migrations.RunSQL(
            ["ALTER TABLE judging_run DROP CONSTRAINT IF EXISTS judging_run_unique"],
            ["ALTER TABLE judging_run ADD CONSTRAINT judging_run_unique UNIQUE (collection_id, run_id)"],
            state_operations=[migrations.RemoveConstraint("run", "judging_run_unique")],
        ),
    ]
