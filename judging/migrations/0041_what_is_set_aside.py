"""Runs may be set aside, gold answers be withdrawn, and a judgment names the version of its topic."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("judging", "0040_questions_are_found")]
    operations = [
        migrations.AddField("run", "set_aside_at", models.DateTimeField(editable=False, null=True)),
        migrations.AddField(
            "run",
            "set_aside_why",
            models.CharField(blank=True, db_default="", default="", editable=False, max_length=2000),
        ),
        migrations.AlterField("goldanswer", "grade", models.SmallIntegerField(null=True)),
        migrations.AlterField("goldversion", "grade", models.SmallIntegerField(null=True)),
        migrations.AddField("judgment", "topic_version", models.IntegerField(db_default=1, default=1)),
    ]
