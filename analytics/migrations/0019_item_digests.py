"""What lists of items filter and order by, as computations find it: a row an item."""

import django.db.models.deletion
from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("analytics", "0018_pruning"), ("judging", "0033_judgments_by_time_and_seconds")]
    operations = [
        migrations.CreateModel(
            name="ItemDigest",
            fields=[
                (
                    "item",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="digest",
                        serialize=False,
                        to="judging.item",
                    ),
                ),
                ("spread", models.PositiveSmallIntegerField(null=True)),
                ("influence", models.FloatField(null=True)),
                ("milliseconds", models.PositiveIntegerField()),
                ("newest", models.BigIntegerField()),
                ("computation", models.BigIntegerField()),
                (
                    "campaign",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="judging.campaign",
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["campaign", name, "item"], name=f"analytics_digest_{key}")
                    for name, key in (
                        ("spread", "spread"),
                        ("influence", "influence"),
                        ("milliseconds", "seconds"),
                        ("newest", "newest"),
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=(Q(influence__isnull=True) | Q(influence__gte=0, influence__lt=1e300))
                        & (Q(spread__isnull=True) | Q(spread__lte=9)),
                        name="analytics_itemdigest_numbers",
                    )
                ],
            },
        ),
    ]
