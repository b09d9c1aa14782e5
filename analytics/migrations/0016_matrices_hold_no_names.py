"""The matrices of assessors hold their ids alone, also those that processes of an older version still write."""

from django.db import migrations

TRIGGER = """
CREATE FUNCTION analytics_confusion_without_name() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.label := '';
  RETURN NEW;
END $$;
CREATE TRIGGER analytics_confusion_without_name BEFORE INSERT ON analytics_confusionestimate
  FOR EACH ROW WHEN (NEW.scope = 'assessor') EXECUTE FUNCTION analytics_confusion_without_name();
"""
BACK = """
DROP TRIGGER analytics_confusion_without_name ON analytics_confusionestimate;
DROP FUNCTION analytics_confusion_without_name();
"""


class Migration(migrations.Migration):
    dependencies = [("analytics", "0015_kept_by_every_session")]
    operations = [migrations.RunSQL(TRIGGER, BACK)]
