from django.db import migrations, models


class Migration(migrations.Migration):
    """Which declared look a computation is: its always-valid limits are bounds for these looks."""

    dependencies = [("analytics", "0006_flags_by_kind")]
    operations = [
        migrations.AddField(
            model_name="computation", name="look", field=models.PositiveSmallIntegerField(null=True)
        ),
        migrations.AddField(
            model_name="computation", name="n_looks", field=models.PositiveSmallIntegerField(null=True)
        ),
        migrations.AddConstraint(
            model_name="computation",
            constraint=models.CheckConstraint(
                name="analytics_computation_look",
                condition=models.Q(look=None, n_looks=None)
                | models.Q(look__gte=1, look__lte=models.F("n_looks"), n_looks__gte=2, n_looks__lte=50),
            ),
        ),
    ]
