from django.db import migrations, models

import judging.judging_orders


class Migration(migrations.Migration):
    """In which order items are judged: at random, as in all campaigns so far, or by what a judgment tells."""

    dependencies = [("judging", "0009_run_is_manual")]

    operations = [
        migrations.AddField(
            model_name="campaign",
            name="judging_order",
            field=models.CharField(
                choices=judging.judging_orders.judging_order_choices,
                db_default="random",
                default="random",
                max_length=12,
            ),
        ),
        migrations.AddConstraint(
            model_name="campaign",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("judging_order", "random"),
                    models.Q(("judging_order", "informative"), ("judgments_per_item", 1)),
                    _connector="OR",
                ),
                name="judging_campaign_order",
                violation_error_message="In the order “By what it tells” an item takes 1 judgment.",
            ),
        ),
    ]
