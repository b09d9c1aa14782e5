from django.db import migrations, models

FITS = [
    ("refit", "Refit: predictions learn from all complete audits"),
    ("exact", "Exact: predictions learn from the audits before the first that learned"),
]


class Migration(migrations.Migration):
    """Audits whose sizes learned from earlier ones, and what predictions of gold learn from then."""

    dependencies = [("sampling", "0010_declared_looks")]
    operations = [
        migrations.AddField(
            model_name="auditschedule",
            name="gold_fit",
            field=models.CharField(choices=FITS, default="refit", max_length=5),
        ),
        migrations.AddField(
            model_name="audit", name="gold_fit", field=models.CharField(blank=True, choices=FITS, default="", max_length=5)
        ),
        migrations.AddField(model_name="audit", name="learned_from", field=models.PositiveIntegerField(null=True)),
        migrations.AddConstraint(
            model_name="auditschedule",
            constraint=models.CheckConstraint(
                name="sampling_auditschedule_gold_fit", condition=models.Q(gold_fit__in=["refit", "exact"])
            ),
        ),
        migrations.AddConstraint(
            model_name="audit",
            constraint=models.CheckConstraint(
                name="sampling_audit_learned",
                condition=models.Q(gold_fit="", learned_from=None)
                | models.Q(
                    gold_fit__in=["refit", "exact"],
                    learned_from__isnull=False,
                    learned_from__gte=0,
                    learned_from__lt=models.F("sequence"),
                ),
            ),
        ),
    ]
