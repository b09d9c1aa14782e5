"""Judgments of a grade that is rare, or wanted for a rare purpose, are found at once; a topic's places are counted fast.

What begins with the campaign serves all that the index of campaigns alone did, so a claim writes as many entries as before.
"""

import django.db.models.deletion
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False  # an index is made beside what is judged meanwhile
    dependencies = [("judging", "0046_given_back")]
    operations = [
        AddIndexConcurrently(
            "judgment", models.Index(fields=["assessor", "grade", "id"], name="judging_judgment_grades")
        ),
        AddIndexConcurrently(
            "slot",
            models.Index(fields=["campaign", "purpose", "topic", "state"], name="judging_slot_purposes"),
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    "DROP INDEX CONCURRENTLY IF EXISTS judging_slot_campaign_id_7893ada0",
                    "CREATE INDEX CONCURRENTLY judging_slot_campaign_id_7893ada0 ON judging_slot (campaign_id)",
                )
            ],
            state_operations=[
                migrations.AlterField(
                    "slot",
                    "campaign",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="slots",
                        to="judging.campaign",
                    ),
                )
            ],
        ),
    ]
