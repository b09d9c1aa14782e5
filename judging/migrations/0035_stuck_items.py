"""Which items the people of a campaign cannot finish: a row an item, so that lists find all of them."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("judging", "0034_imports")]
    operations = [
        migrations.CreateModel(
            name="StuckItem",
            fields=[
                (
                    "item",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        primary_key=True,
                        related_name="stuck",
                        serialize=False,
                        to="judging.item",
                    ),
                ),
                (
                    "campaign",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="judging.campaign"
                    ),
                ),
            ],
        ),
    ]
