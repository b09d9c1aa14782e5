"""Check the adjudications that were there before, and count what machines have done until now."""

from typing import Any

from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations

# The rows are locked in a statement of their own: what is counted next has all that triggers have counted, once.
COUNT: list[Any] = [
    "SELECT id FROM judging_assessor WHERE kind = 'machine' ORDER BY id FOR NO KEY UPDATE",
    """UPDATE judging_assessor a SET
         n_failed = (SELECT count(*) FROM judging_judgment j
                      WHERE j.assessor_id = a.id AND j.sequence = 1 AND j.obstacle = 'failed'),
         n_requests = (SELECT count(*) FROM judging_machinecall c WHERE c.assessor_id = a.id),
         requests_cost = (SELECT coalesce(sum(c.cost), 0) FROM judging_machinecall c WHERE c.assessor_id = a.id)
       WHERE kind = 'machine'""",
]


class Migration(migrations.Migration):
    dependencies = [("judging", "0044_verdicts")]
    operations = [
        ValidateConstraint("adjudication", "judging_adjudication_verdict"),
        migrations.RunSQL(COUNT, migrations.RunSQL.noop),
    ]
