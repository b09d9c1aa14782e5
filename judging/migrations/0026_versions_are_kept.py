"""A correction is a new version, which triggers put in force; nothing else changes a document, a topic or a gold answer.

Functions that run as the owner look names up in the product's schema, then among temporary tables: a caller's temporary
table of the same name is not found first.
"""

from typing import Any

from django.db import migrations

# Of each table: that of its versions, the column there that names the row, what a correction changes, what identifies
# the row and stays, and whose event may tell that the row goes.
KINDS: dict[str, dict[str, Any]] = {
    "judging_document": {
        "versions": "judging_documentversion",
        "key": "document_id",
        "content": ("title", "text", "html"),
        "stays": ("id", "collection_id", "doc_id"),
        "place": "OLD.collection_id",
    },
    "judging_topic": {
        "versions": "judging_topicversion",
        "key": "topic_id",
        "content": ("title", "description", "narrative"),
        "stays": ("id", "collection_id", "topic_id", "weight"),
        "place": "OLD.collection_id",
    },
    "judging_goldanswer": {
        "versions": "judging_goldversion",
        "key": "answer_id",
        "content": ("grade",),
        "stays": ("id", "topic_id", "document_id", "source", "created_at"),
        "place": "(SELECT t.collection_id FROM judging_topic t WHERE t.id = OLD.topic_id)",
    },
}
FUNCTIONS = """
CREATE OR REPLACE FUNCTION {versions}_check() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  known {base};
BEGIN
  SELECT * INTO known FROM {base} WHERE id = NEW.{key} FOR NO KEY UPDATE;  -- one correction of a row at a time
  IF NOT FOUND THEN
    RAISE EXCEPTION '{base}: there is no row %', NEW.{key} USING ERRCODE = 'foreign_key_violation';
  END IF;
  NEW.created_at := clock_timestamp();
  IF NEW.number = 1 AND known.version = 1 AND ROW({new}) IS NOT DISTINCT FROM ROW({known}) THEN
    RETURN NEW;  -- what the row says, written down before it is corrected
  END IF;
  IF NEW.number <> known.version + 1 THEN
    RAISE EXCEPTION '{base}: version % cannot follow version %', NEW.number, known.version
      USING ERRCODE = 'check_violation', CONSTRAINT = '{versions}_next';
  END IF;
  IF ROW({new}) IS NOT DISTINCT FROM ROW({known}) THEN
    RAISE EXCEPTION '{base}: the correction changes nothing'
      USING ERRCODE = 'check_violation', CONSTRAINT = '{versions}_differs';
  END IF;
  IF known.version = 1 THEN
    INSERT INTO {versions} ({key}, number, why, created_at, {content})
    VALUES (known.id, 1, '', clock_timestamp(), {known}) ON CONFLICT ({key}, number) DO NOTHING;
  END IF;
  RETURN NEW;
END $$;
CREATE OR REPLACE FUNCTION {versions}_in_force() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
  UPDATE {base} SET {assignments}, version = NEW.number WHERE id = NEW.{key};
  RETURN NULL;
END $$;
CREATE OR REPLACE FUNCTION {base}_follows() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'UPDATE' THEN
    IF NEW.version = OLD.version + 1 AND ROW({new_stays}) IS NOT DISTINCT FROM ROW({old_stays}) AND EXISTS (
        SELECT FROM {versions} v WHERE v.{key} = NEW.id AND v.number = NEW.version
           AND ROW({of_version}) IS NOT DISTINCT FROM ROW({new})) THEN
      RETURN NEW;
    END IF;
  ELSIF EXISTS (
      SELECT FROM touchstone_event e
       WHERE e.id = nullif(current_setting('touchstone.removal', TRUE), '')::bigint
         AND e.verb = 'removed an import' AND e.at = transaction_timestamp()
         AND e.subject = 'collection:' || {place} AND e.detail ->> 'table' = '{base}'
         AND OLD.id BETWEEN (e.detail -> 'rows' ->> 0)::bigint AND (e.detail -> 'rows' ->> 1)::bigint) THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'check_violation';
END $$;
DO $$
DECLARE
  name text;
BEGIN
  FOREACH name IN ARRAY ARRAY['{versions}_check', '{versions}_in_force', '{base}_follows'] LOOP
    EXECUTE format('ALTER FUNCTION %I() SET search_path = %I, pg_temp', name, current_schema());
  END LOOP;
END $$;
"""
TRIGGERS = (
    "CREATE OR REPLACE TRIGGER {versions}_check BEFORE INSERT ON {versions}"
    " FOR EACH ROW EXECUTE FUNCTION {versions}_check()",
    "ALTER TABLE {versions} ENABLE ALWAYS TRIGGER {versions}_check",
    "CREATE OR REPLACE TRIGGER {versions}_in_force AFTER INSERT ON {versions}"
    " FOR EACH ROW WHEN (NEW.number > 1) EXECUTE FUNCTION {versions}_in_force()",
    "ALTER TABLE {versions} ENABLE ALWAYS TRIGGER {versions}_in_force",
    "CREATE OR REPLACE TRIGGER {versions}_append_only BEFORE UPDATE OR DELETE ON {versions}"
    " FOR EACH ROW EXECUTE FUNCTION touchstone_refuse_change()",
    "ALTER TABLE {versions} ENABLE ALWAYS TRIGGER {versions}_append_only",
    "CREATE OR REPLACE TRIGGER {versions}_no_truncate BEFORE TRUNCATE ON {versions}"
    " FOR EACH STATEMENT EXECUTE FUNCTION touchstone_refuse_change()",
    "ALTER TABLE {versions} ENABLE ALWAYS TRIGGER {versions}_no_truncate",
    # It stays on for every session: what replaces a trigger keeps how that was enabled.
    "CREATE OR REPLACE TRIGGER {base}_append_only BEFORE UPDATE OR DELETE ON {base}"
    " FOR EACH ROW EXECUTE FUNCTION {base}_follows()",
    "ALTER TABLE {base} ENABLE ALWAYS TRIGGER {base}_append_only",
)
BACK = (
    "CREATE OR REPLACE TRIGGER {base}_append_only BEFORE UPDATE OR DELETE ON {base}"
    " FOR EACH ROW EXECUTE FUNCTION touchstone_refuse_change()",
    "ALTER TABLE {base} ENABLE ALWAYS TRIGGER {base}_append_only",
    "DROP TRIGGER IF EXISTS {versions}_no_truncate ON {versions}",
    "DROP TRIGGER IF EXISTS {versions}_append_only ON {versions}",
    "DROP TRIGGER IF EXISTS {versions}_in_force ON {versions}",
    "DROP TRIGGER IF EXISTS {versions}_check ON {versions}",
    "DROP FUNCTION IF EXISTS {base}_follows()",
    "DROP FUNCTION IF EXISTS {versions}_in_force()",
    "DROP FUNCTION IF EXISTS {versions}_check()",
)


def _fill_in(form: str, base: str) -> str:
    kind = KINDS[base]
    content, stays = kind["content"], kind["stays"]

    def of(row: str, columns: tuple[str, ...]) -> str:
        return ", ".join(f"{row}.{column}" for column in columns)

    return form.format(
        base=base,
        versions=kind["versions"],
        key=kind["key"],
        place=kind["place"],
        content=", ".join(content),
        new=of("NEW", content),
        known=of("known", content),
        of_version=of("v", content),
        new_stays=of("NEW", stays),
        old_stays=of("OLD", stays),
        assignments=", ".join(f"{column} = NEW.{column}" for column in content),
    )


class Migration(migrations.Migration):
    # Each statement by itself: nobody waits for more than one table. Where one was refused its lock, all are done again.
    atomic = False

    dependencies = [("judging", "0025_versions")]
    operations = [
        migrations.RunSQL(
            [_fill_in(form, base) for base in KINDS for form in (FUNCTIONS, *TRIGGERS)],
            [_fill_in(form, base) for base in KINDS for form in BACK],
        )
    ]
