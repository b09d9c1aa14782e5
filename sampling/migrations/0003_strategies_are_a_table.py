from django.db import migrations, models

import sampling.strategies


class Migration(migrations.Migration):
    """The strategies are those of `sampling.strategies`: a new one needs no migration."""

    dependencies = [("sampling", "0002_append_only")]

    operations = [
        migrations.RemoveConstraint(model_name="audit", name="sampling_audit_strategy"),
        migrations.RemoveConstraint(model_name="auditschedule", name="sampling_auditschedule_strategy"),
        *(
            migrations.AlterField(
                model_name=model,
                name="strategy",
                field=models.CharField(
                    choices=sampling.strategies.strategy_choices, default="influence", max_length=40
                ),
            )
            for model in ("audit", "auditschedule")
        ),
    ]
