from django.db import migrations, models


class Migration(migrations.Migration):
    """How much of the traffic a topic stands for: whole topics are drawn, and averaged, by it."""

    dependencies = [("judging", "0011_judgments_wanted")]

    operations = [
        migrations.AddField(
            model_name="topic", name="weight", field=models.FloatField(blank=True, null=True)
        ),
        migrations.AddConstraint(
            model_name="topic",
            constraint=models.CheckConstraint(
                condition=models.Q(weight__isnull=True) | models.Q(weight__gt=0, weight__lte=1e100),
                name="judging_topic_weight",
            ),
        ),
    ]
