"""How much of an interval stands for documents that could not be judged."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("analytics", "0010_shares"), ("judging", "0012_topic_weight")]

    operations = [
        migrations.AddField("estimate", "outside_high", models.FloatField(null=True)),
        migrations.AddField("estimate", "outside_low", models.FloatField(null=True)),
        migrations.AddConstraint(
            "estimate",
            models.CheckConstraint(
                name="analytics_estimate_outside",
                condition=models.Q(outside_low=None, outside_high=None)
                | models.Q(value__isnull=False, outside_low__isnull=False, outside_high__isnull=False)
                & models.Q(outside_low__gte=0, outside_high__gte=0)
                & models.Q(outside_low__lt=1e300, outside_high__lt=1e300),
            ),
        ),
    ]
