from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models
from django.db.models import F, Q


class Migration(migrations.Migration):
    """The run or the pair that a census is of."""

    dependencies = [("sampling", "0013_measures_of_audits")]
    operations = [
        migrations.AddField(
            "audit", "run", models.CharField(blank=True, db_default="", default="", max_length=200)
        ),
        migrations.AddField(
            "audit", "against", models.CharField(blank=True, db_default="", default="", max_length=200)
        ),
        AddConstraintNotValid(
            "audit",
            models.CheckConstraint(
                name="sampling_audit_runs",
                condition=Q(run="", against="") | Q(declaration="", look=None) & ~Q(run="") & ~Q(run=F("against")),
            ),
        ),
    ]
