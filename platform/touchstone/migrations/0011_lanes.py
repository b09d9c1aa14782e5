"""Jobs have a lane and a turn. Rows that a version without lanes writes meanwhile get the lane with the most time."""

from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("touchstone", "0008_seals_append_only")]
    operations = [
        migrations.AddField(
            "job", "lane", models.CharField(db_default="heavy", default="heavy", max_length=10)
        ),
        migrations.AddField("job", "turn", models.IntegerField(db_default=0, default=0)),
        AddConstraintNotValid(
            "job",
            models.CheckConstraint(
                condition=Q(lane__in=["quick", "numbers", "heavy"], turn__gte=0), name="touchstone_job_lane"
            ),
        ),
    ]
