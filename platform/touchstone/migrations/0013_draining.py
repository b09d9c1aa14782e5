"""A job knows its worker, and whether that was told to stop."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("touchstone", "0012_lanes_of_old_jobs")]
    operations = [
        migrations.AddField(
            "job", "worker", models.CharField(blank=True, db_default="", default="", max_length=200)
        ),
        migrations.AddField("job", "drain_token", models.UUIDField(null=True)),
    ]
