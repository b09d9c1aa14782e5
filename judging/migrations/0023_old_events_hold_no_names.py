"""The events so far hold ids of people instead of names: from here on each is sealed as it is."""

from django.db import migrations

# The trigger is the owner's to switch off, for this transaction; afterwards it is as it was.
CONVERT = """
DO $$
DECLARE
  kept "char" := (SELECT tgenabled FROM pg_trigger
                   WHERE tgname = 'touchstone_event_append_only' AND tgrelid = 'touchstone_event'::regclass);
BEGIN
  ALTER TABLE touchstone_event DISABLE TRIGGER touchstone_event_append_only;
  UPDATE touchstone_event SET detail = judging_detail_without_names(subject, at, detail)
   WHERE detail ?| ARRAY['assessor', 'members', 'assessors', 'note'];
  IF kept = 'A' THEN
    ALTER TABLE touchstone_event ENABLE ALWAYS TRIGGER touchstone_event_append_only;
  ELSE
    ALTER TABLE touchstone_event ENABLE TRIGGER touchstone_event_append_only;
  END IF;
END $$;
"""


class Migration(migrations.Migration):
    dependencies = [("judging", "0022_events_hold_no_names")]
    operations = [migrations.RunSQL(CONVERT, migrations.RunSQL.noop)]
