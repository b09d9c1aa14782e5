"""Rules that no unique or check constraint can say, kept by triggers: what a judgment and a slot may refer to,
the grade's scale, k judgments an item; and judgments and leases that nobody can change or delete."""

from django.db import migrations

FORWARD = """
CREATE TRIGGER judging_judgment_append_only BEFORE UPDATE OR DELETE ON judging_judgment
  FOR EACH ROW EXECUTE FUNCTION touchstone_refuse_change();
CREATE TRIGGER judging_lease_append_only BEFORE UPDATE OR DELETE ON judging_lease
  FOR EACH ROW EXECUTE FUNCTION touchstone_refuse_change();

CREATE TRIGGER judging_machinecall_append_only BEFORE UPDATE OR DELETE ON judging_machinecall
  FOR EACH ROW EXECUTE FUNCTION touchstone_refuse_change();

CREATE TRIGGER judging_traininganswer_append_only BEFORE UPDATE OR DELETE ON judging_traininganswer
  FOR EACH ROW EXECUTE FUNCTION touchstone_refuse_change();

CREATE TRIGGER judging_adjudication_append_only BEFORE UPDATE OR DELETE ON judging_adjudication
  FOR EACH ROW EXECUTE FUNCTION touchstone_refuse_change();
CREATE FUNCTION judging_check_adjudication() RETURNS trigger LANGUAGE plpgsql AS $$
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
CREATE TRIGGER judging_adjudication_check BEFORE INSERT ON judging_adjudication
  FOR EACH ROW EXECUTE FUNCTION judging_check_adjudication();

CREATE FUNCTION judging_check_judgment() RETURNS trigger LANGUAGE plpgsql AS $$
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
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER judging_judgment_check BEFORE INSERT ON judging_judgment
  FOR EACH ROW EXECUTE FUNCTION judging_check_judgment();

CREATE FUNCTION judging_check_slot() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NOT EXISTS (
      SELECT 1 FROM judging_item i JOIN judging_campaign c ON c.id = i.campaign_id
       WHERE i.id = NEW.item_id AND i.campaign_id = NEW.campaign_id AND i.topic_id = NEW.topic_id
         AND (NEW.purpose <> 'judge' OR NEW.number BETWEEN 1 AND c.judgments_per_item)) THEN
    RAISE EXCEPTION 'slot: more than k, or not of its item''s campaign and topic'
      USING ERRCODE = 'check_violation', CONSTRAINT = 'judging_slot_k';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER judging_slot_check BEFORE INSERT OR UPDATE OF item_id, campaign_id, topic_id, purpose, number
  ON judging_slot FOR EACH ROW EXECUTE FUNCTION judging_check_slot();

CREATE FUNCTION judging_keep_done_slot() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'slot: done is done' USING ERRCODE = 'check_violation', CONSTRAINT = 'judging_slot_done';
END $$;
-- Only its purpose may still change. To void: the judgment is set aside, and another slot wants it again. From check to
-- judge, with a number among the k: a later batch drew the item.
CREATE TRIGGER judging_slot_done BEFORE UPDATE ON judging_slot
  FOR EACH ROW WHEN (OLD.state = 'done' AND NOT (
    (OLD.purpose <> 'void' AND NEW.purpose = 'void' AND NEW.number = OLD.number
     OR OLD.purpose = 'check' AND NEW.purpose = 'judge')
    AND (NEW.id, NEW.item_id, NEW.state, NEW.assessor_id, NEW.token)
        IS NOT DISTINCT FROM (OLD.id, OLD.item_id, OLD.state, OLD.assessor_id, OLD.token)))
  EXECUTE FUNCTION judging_keep_done_slot();

CREATE FUNCTION judging_keep_k() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF NEW.judgments_per_item < OLD.judgments_per_item
     AND EXISTS (SELECT 1 FROM judging_slot WHERE campaign_id = NEW.id AND purpose = 'judge'
                                              AND number > NEW.judgments_per_item) THEN
    RAISE EXCEPTION 'campaign: slots above the new k exist' USING ERRCODE = 'check_violation';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER judging_campaign_keep_k BEFORE UPDATE OF judgments_per_item ON judging_campaign
  FOR EACH ROW EXECUTE FUNCTION judging_keep_k();
"""
BACK = """
DROP TRIGGER judging_judgment_append_only ON judging_judgment;
DROP TRIGGER judging_lease_append_only ON judging_lease;
DROP TRIGGER judging_machinecall_append_only ON judging_machinecall;
DROP TRIGGER judging_traininganswer_append_only ON judging_traininganswer;
DROP TRIGGER judging_adjudication_append_only ON judging_adjudication;
DROP TRIGGER judging_adjudication_check ON judging_adjudication;
DROP FUNCTION judging_check_adjudication();
DROP TRIGGER judging_judgment_check ON judging_judgment;
DROP FUNCTION judging_check_judgment();
DROP TRIGGER judging_slot_check ON judging_slot;
DROP FUNCTION judging_check_slot();
DROP TRIGGER judging_slot_done ON judging_slot;
DROP FUNCTION judging_keep_done_slot();
DROP TRIGGER judging_campaign_keep_k ON judging_campaign;
DROP FUNCTION judging_keep_k();
"""


class Migration(migrations.Migration):
    dependencies = [("judging", "0001_initial"), ("touchstone", "0002_append_only")]
    operations = [migrations.RunSQL(FORWARD, BACK)]
