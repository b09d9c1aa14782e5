"""A manager may also let a grade stand, or take the last word back; who looks at an item in question reserves it; and
a machine's requests, their cost and its failures are counted where they are stored."""

import django.db.models.deletion
from django.conf import settings
from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models
from django.db.models import Q

TRIGGERS = """
CREATE OR REPLACE FUNCTION judging_check_adjudication() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.grade IS NOT NULL AND NOT EXISTS (
      SELECT 1 FROM judging_item i JOIN judging_campaign c ON c.id = i.campaign_id
        JOIN judging_grade g ON g.scale_id = c.scale_id AND g.value = NEW.grade
       WHERE i.id = NEW.item_id) THEN
    RAISE EXCEPTION 'adjudication: grade % is off the scale', NEW.grade
      USING ERRCODE = 'check_violation', CONSTRAINT = 'judging_adjudication_on_scale';
  END IF;
  RETURN NEW;
END $$;
CREATE FUNCTION judging_count_request() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE judging_assessor SET n_requests = n_requests + 1, requests_cost = requests_cost + NEW.cost
   WHERE id = NEW.assessor_id;
  RETURN NULL;
END $$;
CREATE TRIGGER judging_machinecall_count AFTER INSERT ON judging_machinecall
  FOR EACH ROW EXECUTE FUNCTION judging_count_request();
CREATE FUNCTION judging_count_failure() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  UPDATE judging_assessor SET n_failed = n_failed + 1 WHERE id = NEW.assessor_id;
  RETURN NULL;
END $$;
CREATE TRIGGER judging_judgment_failed AFTER INSERT ON judging_judgment
  FOR EACH ROW WHEN (NEW.obstacle = 'failed' AND NEW.sequence = 1) EXECUTE FUNCTION judging_count_failure();
"""
BEFORE = """
DROP TRIGGER judging_judgment_failed ON judging_judgment;
DROP FUNCTION judging_count_failure();
DROP TRIGGER judging_machinecall_count ON judging_machinecall;
DROP FUNCTION judging_count_request();
CREATE OR REPLACE FUNCTION judging_check_adjudication() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (
      SELECT 1 FROM judging_item i JOIN judging_campaign c ON c.id = i.campaign_id
        JOIN judging_grade g ON g.scale_id = c.scale_id AND g.value = NEW.grade
       WHERE i.id = NEW.item_id) THEN
    RAISE EXCEPTION 'adjudication: grade % is off the scale', NEW.grade
      USING ERRCODE = 'check_violation', CONSTRAINT = 'judging_adjudication_on_scale';
  END IF;
  RETURN NEW;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("judging", "0043_words_of_titles"), migrations.swappable_dependency(settings.AUTH_USER_MODEL)]
    operations = [
        migrations.AddField(
            "adjudication",
            "verdict",
            models.CharField(
                choices=[("decided", "Decided"), ("stands", "let stand"), ("withdrawn", "Withdrawn")],
                db_default="decided",
                default="decided",
                max_length=9,
            ),
        ),
        migrations.AlterField("adjudication", "grade", models.SmallIntegerField(null=True)),
        AddConstraintNotValid(
            "adjudication",
            models.CheckConstraint(
                condition=Q(verdict="decided", grade__isnull=False)
                | Q(verdict__in=["stands", "withdrawn"], grade__isnull=True),
                name="judging_adjudication_verdict",
            ),
        ),
        migrations.AddField("assessor", "n_failed", models.PositiveIntegerField(db_default=0, default=0)),
        migrations.AddField("assessor", "n_requests", models.PositiveIntegerField(db_default=0, default=0)),
        migrations.AddField(
            "assessor",
            "requests_cost",
            models.DecimalField(db_default=0, decimal_places=8, default=0, max_digits=16),
        ),
        migrations.RunSQL(TRIGGERS, BEFORE),
        migrations.CreateModel(
            name="Reservation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("until", models.DateTimeField()),
                (
                    "item",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="reservation",
                        to="judging.item",
                    ),
                ),
                (
                    "manager",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
    ]
