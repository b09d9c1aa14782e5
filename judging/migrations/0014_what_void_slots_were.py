"""A slot that a manager set aside remembers what it was for: an answer on a check stays in force."""

from django.contrib.postgres.operations import AddConstraintNotValid
from django.db import migrations, models
from django.db.models import Q

TRIGGER = """
DROP TRIGGER judging_slot_done ON judging_slot;
-- Only its purpose may still change. To void: the judgment is set aside, another slot wants it again, and `was` may keep
-- the purpose. From check to judge, with a number among the k: a later batch drew the item.
CREATE TRIGGER judging_slot_done BEFORE UPDATE ON judging_slot
  FOR EACH ROW WHEN (OLD.state = 'done' AND NOT (
    (OLD.purpose <> 'void' AND NEW.purpose = 'void' AND NEW.number = OLD.number AND NEW.was IN ('', OLD.purpose)
     OR OLD.purpose = 'check' AND NEW.purpose = 'judge' AND NEW.was = OLD.was)
    AND (NEW.id, NEW.item_id, NEW.state, NEW.assessor_id, NEW.token)
        IS NOT DISTINCT FROM (OLD.id, OLD.item_id, OLD.state, OLD.assessor_id, OLD.token)))
  EXECUTE FUNCTION judging_keep_done_slot();
"""
BEFORE = """
DROP TRIGGER judging_slot_done ON judging_slot;
CREATE TRIGGER judging_slot_done BEFORE UPDATE ON judging_slot
  FOR EACH ROW WHEN (OLD.state = 'done' AND NOT (
    (OLD.purpose <> 'void' AND NEW.purpose = 'void' AND NEW.number = OLD.number
     OR OLD.purpose = 'check' AND NEW.purpose = 'judge')
    AND (NEW.id, NEW.item_id, NEW.state, NEW.assessor_id, NEW.token)
        IS NOT DISTINCT FROM (OLD.id, OLD.item_id, OLD.state, OLD.assessor_id, OLD.token)))
  EXECUTE FUNCTION judging_keep_done_slot();
"""


class Migration(migrations.Migration):
    dependencies = [("judging", "0013_run_group")]
    operations = [
        migrations.AddField(
            "slot", "was", models.CharField(blank=True, db_default="", default="", max_length=6)
        ),
        AddConstraintNotValid(
            "slot",
            models.CheckConstraint(
                condition=Q(was="") | Q(purpose="void", was__in=["judge", "check", "audit", "silver"]),
                name="judging_slot_was",
            ),
        ),
        migrations.RunSQL(TRIGGER, BEFORE),
    ]
