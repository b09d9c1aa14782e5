"""Lists of judgments by time, and of one assessor's by seconds, cost the same in a large campaign as in a small one."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):
    atomic = False  # an index is made beside what is judged meanwhile
    dependencies = [("judging", "0032_places_left")]
    operations = [
        AddIndexConcurrently(
            "judgment", models.Index(fields=["created_at", "id"], name="judging_judgment_times")
        ),
        AddIndexConcurrently(
            "judgment",
            models.Index(fields=["assessor", "active_milliseconds", "id"], name="judging_judgment_pace"),
        ),
    ]
