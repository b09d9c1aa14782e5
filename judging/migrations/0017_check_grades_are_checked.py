"""Check the rows that were there before the rule: this reads them without stopping anybody."""

from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("judging", "0016_check_grades")]
    operations = [ValidateConstraint("campaign", "judging_campaign_check_grades")]
