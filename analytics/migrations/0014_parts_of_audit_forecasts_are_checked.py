from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):
    """Check the rows that were there before the rules: this reads them without stopping anybody."""

    dependencies = [("analytics", "0013_parts_of_audit_forecasts")]
    operations = [
        ValidateConstraint("auditforecast", "analytics_auditforecast_middle"),
        ValidateConstraint("auditforecast", "analytics_auditforecast_topics"),
    ]
