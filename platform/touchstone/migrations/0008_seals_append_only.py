"""Seals and erasures are kept like what they are about, whoever asks."""

from django.db import migrations

TABLES = ("touchstone_seal", "touchstone_erasure")
KEPT = """
CREATE TRIGGER {0}_append_only BEFORE UPDATE OR DELETE ON {0}
  FOR EACH ROW EXECUTE FUNCTION touchstone_refuse_change();
CREATE TRIGGER {0}_no_truncate BEFORE TRUNCATE ON {0}
  FOR EACH STATEMENT EXECUTE FUNCTION touchstone_refuse_change();
ALTER TABLE {0} ENABLE ALWAYS TRIGGER {0}_append_only;
ALTER TABLE {0} ENABLE ALWAYS TRIGGER {0}_no_truncate;
"""
BACK = """
DROP TRIGGER {0}_no_truncate ON {0};
DROP TRIGGER {0}_append_only ON {0};
"""


class Migration(migrations.Migration):
    dependencies = [("touchstone", "0007_seals")]
    operations = [migrations.RunSQL(KEPT.format(table), BACK.format(table)) for table in TABLES]
