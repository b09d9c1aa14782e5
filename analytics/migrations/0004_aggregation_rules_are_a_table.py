from django.db import migrations, models

import analytics.aggregation.rules


class Migration(migrations.Migration):
    """The rules of aggregation stand in `analytics.aggregation.rules`: a new one needs no migration."""

    dependencies = [("analytics", "0003_longer_keys_of_strategies")]

    operations = [
        migrations.RemoveConstraint(model_name="release", name="analytics_release_aggregation"),
        migrations.AlterField(
            model_name="release",
            name="aggregation",
            field=models.CharField(
                choices=analytics.aggregation.rules.aggregation_choices, default="median", max_length=40
            ),
        ),
        migrations.AlterField(
            model_name="computation",
            name="bronze_score",
            field=models.CharField(default="vote-share", max_length=40),
        ),
    ]
