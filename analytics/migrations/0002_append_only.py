"""What was drawn, audited and computed stays as it was: a correction is a new row."""

from django.db import migrations

FORWARD = """
CREATE TRIGGER analytics_computation_append_only BEFORE UPDATE OR DELETE ON analytics_computation
  FOR EACH ROW EXECUTE FUNCTION touchstone_refuse_change();
CREATE TRIGGER analytics_confusionestimate_append_only BEFORE UPDATE OR DELETE ON analytics_confusionestimate
  FOR EACH ROW EXECUTE FUNCTION touchstone_refuse_change();
CREATE TRIGGER analytics_estimate_append_only BEFORE UPDATE OR DELETE ON analytics_estimate
  FOR EACH ROW EXECUTE FUNCTION touchstone_refuse_change();
CREATE TRIGGER analytics_flag_append_only BEFORE UPDATE OR DELETE ON analytics_flag
  FOR EACH ROW EXECUTE FUNCTION touchstone_refuse_change();
CREATE TRIGGER analytics_auditforecast_append_only BEFORE UPDATE OR DELETE ON analytics_auditforecast
  FOR EACH ROW EXECUTE FUNCTION touchstone_refuse_change();
CREATE TRIGGER analytics_judgingconditions_append_only BEFORE UPDATE OR DELETE ON analytics_judgingconditions
  FOR EACH ROW EXECUTE FUNCTION touchstone_refuse_change();
CREATE TRIGGER analytics_disputeditem_append_only BEFORE UPDATE OR DELETE ON analytics_disputeditem
  FOR EACH ROW EXECUTE FUNCTION touchstone_refuse_change();

-- A release that is ready stays as it is; only its withdrawal and the forgetting of its key may still be written.
CREATE FUNCTION analytics_keep_release() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  may_change text[] := ARRAY['withdrawn_at', 'withdrawn_reason'];
BEGIN
  IF TG_OP = 'DELETE' THEN
    RAISE EXCEPTION 'release: nothing is deleted' USING ERRCODE = 'check_violation', CONSTRAINT = 'analytics_release_kept';
  END IF;
  IF NEW.pseudonym_key = '' THEN
    may_change := may_change || ARRAY['pseudonym_key'];
  END IF;
  IF (to_jsonb(NEW) - may_change) IS DISTINCT FROM (to_jsonb(OLD) - may_change) THEN
    RAISE EXCEPTION 'release: ready is ready' USING ERRCODE = 'check_violation', CONSTRAINT = 'analytics_release_kept';
  END IF;
  RETURN NEW;
END $$;
CREATE TRIGGER analytics_release_kept BEFORE UPDATE OR DELETE ON analytics_release
  FOR EACH ROW WHEN (OLD.state = 'ready') EXECUTE FUNCTION analytics_keep_release();
"""
BACK = """
DROP TRIGGER analytics_disputeditem_append_only ON analytics_disputeditem;
DROP TRIGGER analytics_release_kept ON analytics_release;
DROP FUNCTION analytics_keep_release();
DROP TRIGGER analytics_computation_append_only ON analytics_computation;
DROP TRIGGER analytics_confusionestimate_append_only ON analytics_confusionestimate;
DROP TRIGGER analytics_estimate_append_only ON analytics_estimate;
DROP TRIGGER analytics_flag_append_only ON analytics_flag;
DROP TRIGGER analytics_auditforecast_append_only ON analytics_auditforecast;
DROP TRIGGER analytics_judgingconditions_append_only ON analytics_judgingconditions;
"""


class Migration(migrations.Migration):
    dependencies = [("analytics", "0001_initial"), ("touchstone", "0002_append_only")]
    operations = [migrations.RunSQL(FORWARD, BACK)]
