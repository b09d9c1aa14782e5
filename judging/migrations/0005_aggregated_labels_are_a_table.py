from django.db import migrations, models

import judging.label_aggregation


class Migration(migrations.Migration):
    """The aggregated labels stand in `judging.label_aggregation`: a new one needs no migration."""

    dependencies = [("judging", "0004_runs_are_parquet")]

    operations = [
        migrations.RemoveConstraint(model_name="campaign", name="judging_campaign_bronze_score"),
        migrations.AlterField(
            model_name="campaign",
            name="bronze_score",
            field=models.CharField(
                choices=judging.label_aggregation.label_score_choices, default="vote-share", max_length=40
            ),
        ),
    ]
