from django.db import migrations, models

import judging.kinds


class Migration(migrations.Migration):
    """What assessors are shown, and asked for: the kinds stand in `judging.kinds`."""

    dependencies = [("judging", "0005_aggregated_labels_are_a_table")]

    operations = [
        migrations.AddField(
            model_name="campaign",
            name="kind",
            field=models.CharField(choices=judging.kinds.kind_choices, default="graded", max_length=40),
        ),
    ]
