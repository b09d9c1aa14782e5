from django.db import migrations, models
from django.db.models import F, Q


class Migration(migrations.Migration):
    """The run or the pair that a census is of."""

    dependencies = [("sampling", "0013_measures_of_audits")]
    operations = [
        migrations.AddField(
            model_name="audit", name="run", field=models.CharField(blank=True, default="", max_length=200)
        ),
        migrations.AddField(
            model_name="audit", name="against", field=models.CharField(blank=True, default="", max_length=200)
        ),
        migrations.AddConstraint(
            model_name="audit",
            constraint=models.CheckConstraint(
                name="sampling_audit_runs",
                condition=Q(run="", against="") | Q(declaration="", look=None) & ~Q(run="") & ~Q(run=F("against")),
            ),
        ),
    ]
