import django.db.models.deletion
from django.db import migrations, models

FORWARD = """
CREATE TRIGGER sampling_judginglook_append_only BEFORE UPDATE OR DELETE ON sampling_judginglook
  FOR EACH ROW EXECUTE FUNCTION touchstone_refuse_change();
"""
BACK = "DROP TRIGGER sampling_judginglook_append_only ON sampling_judginglook;"


class Migration(migrations.Migration):
    """What the model said at every look of a campaign that judges by what it tells."""

    dependencies = [
        ("judging", "0010_judging_order"),
        ("sampling", "0007_topic_checks_append_only"),
        ("touchstone", "0002_append_only"),
    ]

    operations = [
        migrations.CreateModel(
            name="JudgingLook",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("n_judged", models.PositiveIntegerField()),
                ("n_pooled", models.PositiveIntegerField()),
                ("n_work", models.PositiveIntegerField()),
                ("last_judgment_id", models.BigIntegerField()),
                ("n_batches", models.PositiveSmallIntegerField()),
                ("n_topics", models.PositiveIntegerField()),
                ("n_moved", models.PositiveIntegerField()),
                ("scores", models.JSONField()),
                ("pairs", models.JSONField()),
                ("may_stop", models.BooleanField()),
                ("seconds", models.FloatField()),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "campaign",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="judging_looks",
                        to="judging.campaign",
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "indexes": [
                    models.Index(
                        models.F("campaign"),
                        models.OrderBy(models.F("id"), descending=True),
                        name="sampling_judginglook_newest",
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("n_judged__lte", models.F("n_pooled"))),
                        name="sampling_judginglook_part",
                    )
                ],
            },
        ),
        migrations.RunSQL(FORWARD, BACK),
    ]
