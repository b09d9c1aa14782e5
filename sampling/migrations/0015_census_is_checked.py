from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):
    """Check the rows that were there before the rule: this reads them without stopping anybody."""

    dependencies = [("sampling", "0014_census")]
    operations = [ValidateConstraint("audit", "sampling_audit_runs")]
