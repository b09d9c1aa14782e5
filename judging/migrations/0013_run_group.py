"""Whose runs are alike: what only they return says what a run of another group may still find."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("judging", "0012_topic_weight")]

    operations = [
        migrations.AddField(
            "run", "group", models.CharField(blank=True, db_default="", default="", max_length=200)
        ),
    ]
