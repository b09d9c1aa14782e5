"""Who may add rows to a table that an import fills may have its statistics refreshed, as only its owner can."""

from django.db import migrations

# It runs as the owner, whoever calls it, so it looks names up in no schema of the caller's: the table comes as its id,
# and is written with its schema. A temporary table may have the same name. Nobody waits for a lock.
FORWARD = """
CREATE FUNCTION judging_tell_planner(filled regclass) RETURNS void LANGUAGE plpgsql SECURITY DEFINER
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  place text;
BEGIN
  SELECT format('%I.%I', n.nspname, c.relname) INTO place
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE c.oid = filled AND c.relkind = 'r' AND c.relpersistence <> 't'
     AND c.relname IN ('judging_document', 'judging_goldanswer', 'judging_item', 'judging_judgment', 'judging_lease',
                       'judging_slot', 'judging_topic', 'sampling_drawentry')
     AND has_table_privilege(session_user, c.oid, 'INSERT');
  IF place IS NULL THEN
    RAISE insufficient_privilege USING MESSAGE = format('the statistics of %s are not refreshed', filled);
  END IF;
  EXECUTE 'ANALYZE (SKIP_LOCKED) ' || place;
END $$;
"""
BACK = "DROP FUNCTION judging_tell_planner(regclass)"


class Migration(migrations.Migration):
    dependencies = [("judging", "0023_old_events_hold_no_names")]
    operations = [migrations.RunSQL(FORWARD, BACK)]
