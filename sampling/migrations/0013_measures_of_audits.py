from django.db import migrations, models


class Migration(migrations.Migration):
    """The measure that an audit goes by, where it is not that of the newest draw."""

    dependencies = [("sampling", "0012_complete_files")]
    operations = [
        migrations.AddField(
            model_name="auditschedule", name="measure", field=models.CharField(blank=True, default="", max_length=40)
        ),
        migrations.AddField(
            model_name="audit", name="measure", field=models.CharField(blank=True, default="", max_length=40)
        ),
        migrations.AddConstraint(
            model_name="audit",
            constraint=models.CheckConstraint(
                name="sampling_audit_measure", condition=models.Q(declaration="") | models.Q(measure="")
            ),
        ),
    ]
