"""What an assessor has given back is found at once, however much they have judged."""

from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models
from django.db.models import F, Q


class Migration(migrations.Migration):
    atomic = False  # an index is made beside what is judged meanwhile
    dependencies = [("judging", "0045_verdicts_checked")]
    operations = [
        AddIndexConcurrently(
            "judgment",
            models.Index(
                F("assessor"), F("id").desc(), name="judging_judgment_given_back", condition=Q(grade__isnull=True)
            ),
        ),
    ]
