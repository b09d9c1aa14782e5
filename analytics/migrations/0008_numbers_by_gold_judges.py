from django.db import migrations, models


class Migration(migrations.Migration):
    """Whether a computation's corrected numbers rest on judgments that were all made by gold judges."""

    dependencies = [("analytics", "0007_declared_looks")]
    operations = [
        migrations.AddField(
            model_name="computation", name="is_by_gold_judges", field=models.BooleanField(default=False)
        ),
        migrations.AddConstraint(
            model_name="computation",
            constraint=models.CheckConstraint(
                name="analytics_computation_gold_judges",
                condition=models.Q(is_by_gold_judges=False) | models.Q(look=None, n_items__gt=0),
            ),
        ),
    ]
