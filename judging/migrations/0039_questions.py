"""Messages go both ways: an assessor asks, about a document or in general, and gets an answer."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("judging", "0038_deleted_names_are_free")]
    operations = [
        migrations.AddField(
            "message", "is_from_assessor", models.BooleanField(db_default=False, default=False)
        ),
        migrations.AddField(
            "message",
            "item",
            models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="judging.item",
            ),
        ),
        migrations.AddField(
            "message",
            "thread",
            models.ForeignKey(
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="answers",
                to="judging.message",
            ),
        ),
    ]
