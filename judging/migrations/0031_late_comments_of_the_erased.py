"""Who was erased while a request was under way leaves no comment: the judgment is kept without it."""

from django.db import migrations

CHECK = """
CREATE OR REPLACE FUNCTION judging_check_judgment() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (
      SELECT 1 FROM judging_item i
        JOIN judging_campaign c ON c.id = i.campaign_id
        JOIN judging_assessor a ON a.campaign_id = c.id AND a.id = NEW.assessor_id
       WHERE i.id = NEW.item_id AND (NEW.grade IS NULL OR EXISTS (
             SELECT 1 FROM judging_grade g WHERE g.scale_id = c.scale_id AND g.value = NEW.grade))) THEN
    RAISE EXCEPTION 'judgment: grade % is off the scale, or the assessor is not of the item''s campaign', NEW.grade
      USING ERRCODE = 'check_violation', CONSTRAINT = 'judging_judgment_on_scale';
  END IF;
  IF NEW.slot_id IS NOT NULL AND NOT EXISTS (
      SELECT 1 FROM judging_slot s WHERE s.id = NEW.slot_id AND s.item_id = NEW.item_id
         AND s.assessor_id = NEW.assessor_id AND s.state = 'done') THEN
    RAISE EXCEPTION 'judgment: the slot is not this assessor''s and item''s'
      USING ERRCODE = 'check_violation', CONSTRAINT = 'judging_judgment_own_slot';
  END IF;{more}
  RETURN NEW;
END $$
"""
WITHOUT_COMMENT = """
  IF NEW.comment <> '' AND EXISTS (
      SELECT 1 FROM judging_assessor a JOIN touchstone_user u ON u.id = a.user_id
       WHERE a.id = NEW.assessor_id AND NOT u.is_active AND u.username = 'erased-' || u.id) THEN
    NEW.comment := '';
  END IF;"""


class Migration(migrations.Migration):
    dependencies = [("judging", "0030_salt_of_adjudications"), ("touchstone", "0015_erasing")]
    operations = [
        migrations.RunSQL(CHECK.format(more=WITHOUT_COMMENT), CHECK.format(more="")),
    ]
