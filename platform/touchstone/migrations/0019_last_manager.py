"""The last active manager stays one, whatever statement would change that and however many come at once.

A trigger waits for whoever takes a manager away at the same moment, and counts after that: a statement within it sees
what has been committed meanwhile. Two managers who demote each other wait for one another in vain; one of them stays.
"""

from typing import Any

from django.db import migrations

FUNCTION = """
CREATE OR REPLACE FUNCTION touchstone_keep_a_manager() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  PERFORM pg_advisory_xact_lock(7005);
  IF NOT EXISTS (SELECT FROM touchstone_user WHERE role = 'manager' AND is_active) THEN
    RAISE EXCEPTION 'the last active manager stays one'
      USING ERRCODE = 'check_violation', CONSTRAINT = 'touchstone_user_last_manager', TABLE = 'touchstone_user';
  END IF;
  RETURN NULL;
END $$
"""
TRIGGER = """
CREATE OR REPLACE TRIGGER touchstone_user_last_manager AFTER UPDATE OF role, is_active ON touchstone_user
  FOR EACH ROW WHEN (OLD.role = 'manager' AND OLD.is_active AND NOT (NEW.role = 'manager' AND NEW.is_active))
  EXECUTE FUNCTION touchstone_keep_a_manager()
"""
ALWAYS = "ALTER TABLE touchstone_user ENABLE ALWAYS TRIGGER touchstone_user_last_manager"
BACK: list[Any] = [
    "DROP TRIGGER IF EXISTS touchstone_user_last_manager ON touchstone_user",
    "DROP FUNCTION IF EXISTS touchstone_keep_a_manager()",
]


class Migration(migrations.Migration):
    dependencies = [("touchstone", "0018_account_links")]
    operations = [migrations.RunSQL([FUNCTION, TRIGGER, ALWAYS], BACK)]
