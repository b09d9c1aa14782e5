"""Open questions, the questions about an item and the answers of a thread are found by indexes."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    atomic = False  # an index is made beside what is written meanwhile
    dependencies = [("judging", "0039_questions")]
    operations = [
        AddIndexConcurrently(
            "message",
            models.Index(
                condition=Q(is_from_assessor=True, read_at=None),
                fields=["assessor"],
                name="judging_message_open",
            ),
        ),
        AddIndexConcurrently(
            "message",
            models.Index(condition=Q(item__isnull=False), fields=["item"], name="judging_message_item"),
        ),
        AddIndexConcurrently(
            "message",
            models.Index(condition=Q(thread__isnull=False), fields=["thread"], name="judging_message_thread"),
        ),
    ]
