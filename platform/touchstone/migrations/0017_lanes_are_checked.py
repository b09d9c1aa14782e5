"""Check the jobs that were there before the lane of letters: this reads them without stopping anybody."""

from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("touchstone", "0016_letters")]
    operations = [ValidateConstraint("job", "touchstone_job_lane")]
