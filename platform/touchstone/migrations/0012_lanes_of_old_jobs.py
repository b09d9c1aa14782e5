"""Jobs from before get the lane of their kind, and the rows that were there before the rule are checked."""

from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations

LANES = """
UPDATE touchstone_job SET lane = CASE
  WHEN kind IN ('import', 'run-upload', 'forecast', 'reuse', 'audit', 'order') THEN 'quick' ELSE 'numbers' END
WHERE kind IN ('import', 'run-upload', 'forecast', 'reuse', 'audit', 'order',
               'estimate', 'analysis', 'rounds', 'screening', 'simulation', 'rejudging')
"""


class Migration(migrations.Migration):
    dependencies = [("touchstone", "0011_lanes")]
    operations = [
        migrations.RunSQL(LANES, migrations.RunSQL.noop),
        ValidateConstraint("job", "touchstone_job_lane"),
    ]
