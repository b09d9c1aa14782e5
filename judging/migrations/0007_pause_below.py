from django.db import migrations, models


class Migration(migrations.Migration):
    """Below which adjusted p a flag pauses its assessor: off, unless a manager says so."""

    dependencies = [("judging", "0006_campaigns_have_a_kind")]

    operations = [
        migrations.AddField(
            model_name="campaign", name="pause_below", field=models.FloatField(blank=True, null=True)
        ),
        migrations.AddConstraint(
            model_name="campaign",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("pause_below__isnull", True),
                    models.Q(("pause_below__gt", 0), ("pause_below__lte", 0.1)),
                    _connector="OR",
                ),
                name="judging_campaign_pause",
                violation_error_message="The adjusted p is above 0 and at most 0.1: above it there is no flag.",
            ),
        ),
    ]
