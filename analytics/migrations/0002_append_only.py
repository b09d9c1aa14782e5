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
"""
BACK = """
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
