"""Plans, draws and findings of topic checks stay as they were; a plan has no more checks than it says."""

from django.db import migrations

FORWARD = """
CREATE TRIGGER sampling_topiccheckplan_append_only BEFORE UPDATE OR DELETE ON sampling_topiccheckplan
  FOR EACH ROW EXECUTE FUNCTION touchstone_refuse_change();
CREATE TRIGGER sampling_topiccheck_append_only BEFORE UPDATE OR DELETE ON sampling_topiccheck
  FOR EACH ROW EXECUTE FUNCTION touchstone_refuse_change();
CREATE TRIGGER sampling_topicfinding_append_only BEFORE UPDATE OR DELETE ON sampling_topicfinding
  FOR EACH ROW EXECUTE FUNCTION touchstone_refuse_change();
CREATE FUNCTION sampling_topiccheck_of_plan() RETURNS trigger AS $$
BEGIN
  IF NOT EXISTS (SELECT FROM sampling_topiccheckplan p
                   JOIN judging_campaign c ON c.id = p.campaign_id
                   JOIN judging_topic t ON t.collection_id = c.collection_id
                  WHERE p.id = NEW.plan_id AND t.id = NEW.topic_id AND NEW.sequence <= p.n_checks) THEN
    RAISE EXCEPTION 'a plan of topic checks has no check % of topic %', NEW.sequence, NEW.topic_id
      USING ERRCODE = 'check_violation';
  END IF;
  RETURN NEW;
END $$ LANGUAGE plpgsql;
CREATE TRIGGER sampling_topiccheck_of_plan BEFORE INSERT ON sampling_topiccheck
  FOR EACH ROW EXECUTE FUNCTION sampling_topiccheck_of_plan();
"""
BACK = """
DROP TRIGGER sampling_topiccheck_of_plan ON sampling_topiccheck;
DROP FUNCTION sampling_topiccheck_of_plan();
DROP TRIGGER sampling_topicfinding_append_only ON sampling_topicfinding;
DROP TRIGGER sampling_topiccheck_append_only ON sampling_topiccheck;
DROP TRIGGER sampling_topiccheckplan_append_only ON sampling_topiccheckplan;
"""


class Migration(migrations.Migration):
    dependencies = [("sampling", "0006_topic_checks"), ("touchstone", "0002_append_only")]
    operations = [migrations.RunSQL(FORWARD, BACK)]
