import django.db.models.deletion
from django.db import migrations, models

import analytics.screening.kinds

# A flag said both rules in one row: it keeps its words. No row trigger sees a column that is written anew.
KINDS = """
ALTER TABLE analytics_flag ALTER COLUMN kind TYPE varchar(40)
  USING CASE WHEN evidence LIKE 'the answers on gold checks change%' THEN 'change' ELSE kind END;
"""
APPEND_ONLY = """
CREATE TRIGGER analytics_screening_append_only BEFORE UPDATE OR DELETE ON analytics_screening
  FOR EACH ROW EXECUTE FUNCTION touchstone_refuse_change();
CREATE TRIGGER analytics_assessorscreening_append_only BEFORE UPDATE OR DELETE ON analytics_assessorscreening
  FOR EACH ROW EXECUTE FUNCTION touchstone_refuse_change();
"""
BACK = """
DROP TRIGGER analytics_assessorscreening_append_only ON analytics_assessorscreening;
DROP TRIGGER analytics_screening_append_only ON analytics_screening;
"""


class Migration(migrations.Migration):
    """A flag for each kind of evidence, and what a screening of the log showed."""

    dependencies = [
        ("analytics", "0005_methods_from_the_registry"),
        ("judging", "0006_campaigns_have_a_kind"),
    ]

    operations = [
        migrations.AddField(
            model_name="flag",
            name="kind",
            field=models.CharField(
                choices=analytics.screening.kinds.flag_choices, default="accuracy", max_length=40
            ),
        ),
        migrations.AddField(model_name="flag", name="p_adjusted", field=models.FloatField(null=True)),
        migrations.AddField(model_name="flag", name="effect", field=models.FloatField(null=True)),
        migrations.AddField(model_name="flag", name="topics", field=models.JSONField(default=list)),
        migrations.RunSQL(KINDS, migrations.RunSQL.noop),
        migrations.RemoveConstraint(model_name="flag", name="analytics_flag_unique"),
        migrations.AddConstraint(
            model_name="flag",
            constraint=models.UniqueConstraint(
                fields=("assessor", "computation", "kind"), name="analytics_flag_unique"
            ),
        ),
        migrations.AddConstraint(
            model_name="flag",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("effect__isnull", True),
                        models.Q(("effect__gt", -1e300), ("effect__lt", 1e300)),
                        _connector="OR",
                    ),
                    models.Q(
                        ("p_adjusted__isnull", True),
                        models.Q(("p_adjusted__gte", 0), ("p_adjusted__lte", 1)),
                        _connector="OR",
                    ),
                ),
                name="analytics_flag_numbers",
            ),
        ),
        migrations.CreateModel(
            name="Screening",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("n_judgments", models.PositiveIntegerField()),
                ("overview", models.JSONField(default=dict)),
                ("seconds", models.FloatField()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "computation",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="screening",
                        to="analytics.computation",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="AssessorScreening",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("tests", models.JSONField(default=dict)),
                ("profile", models.JSONField(default=dict)),
                (
                    "assessor",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="screenings",
                        to="judging.assessor",
                    ),
                ),
                (
                    "screening",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="assessors",
                        to="analytics.screening",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("assessor", "screening"), name="analytics_assessorscreening_unique"
                    )
                ],
            },
        ),
        migrations.RunSQL(APPEND_ONLY, BACK),
    ]
