"""Each item in question says by which rules it is."""

from django.db import migrations, models
from django.db.models import Value


class Migration(migrations.Migration):
    dependencies = [("analytics", "0019_item_digests")]
    operations = [
        migrations.AddField(
            "disputeditem",
            "reasons",
            models.JSONField(db_default=Value([], models.JSONField()), default=list),
        ),
    ]
