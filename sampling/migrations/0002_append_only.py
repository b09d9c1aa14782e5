"""What was drawn, audited and computed stays as it was: a correction is a new row."""

from django.db import migrations

FORWARD = """
CREATE TRIGGER sampling_draw_append_only BEFORE UPDATE OR DELETE ON sampling_draw
  FOR EACH ROW EXECUTE FUNCTION touchstone_refuse_change();
CREATE TRIGGER sampling_drawentry_append_only BEFORE UPDATE OR DELETE ON sampling_drawentry
  FOR EACH ROW EXECUTE FUNCTION touchstone_refuse_change();
CREATE TRIGGER sampling_audit_append_only BEFORE UPDATE OR DELETE ON sampling_audit
  FOR EACH ROW EXECUTE FUNCTION touchstone_refuse_change();
CREATE TRIGGER sampling_auditentry_append_only BEFORE UPDATE OR DELETE ON sampling_auditentry
  FOR EACH ROW EXECUTE FUNCTION touchstone_refuse_change();
"""
BACK = """
DROP TRIGGER sampling_draw_append_only ON sampling_draw;
DROP TRIGGER sampling_drawentry_append_only ON sampling_drawentry;
DROP TRIGGER sampling_audit_append_only ON sampling_audit;
DROP TRIGGER sampling_auditentry_append_only ON sampling_auditentry;
"""


class Migration(migrations.Migration):
    dependencies = [("sampling", "0001_initial"), ("touchstone", "0002_append_only")]
    operations = [migrations.RunSQL(FORWARD, BACK)]
