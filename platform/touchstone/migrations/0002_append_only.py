"""The log of events cannot be rewritten: PostgreSQL itself refuses UPDATE and DELETE."""

from django.db import migrations

FUNCTION = """
CREATE FUNCTION touchstone_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'check_violation';
END $$;
CREATE TRIGGER touchstone_event_append_only BEFORE UPDATE OR DELETE ON touchstone_event
  FOR EACH ROW EXECUTE FUNCTION touchstone_refuse_change();
"""
BACK = """
DROP TRIGGER touchstone_event_append_only ON touchstone_event;
DROP FUNCTION touchstone_refuse_change();
"""


class Migration(migrations.Migration):
    dependencies = [("touchstone", "0001_initial")]
    operations = [migrations.RunSQL(FUNCTION, BACK)]
