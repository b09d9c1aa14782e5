"""A text that names somebody can be taken out of rows that nobody may change: by one function of the owner alone.

`touchstone_refuse_change` lets pass what such a function does in its own transaction, and only in columns that hold
texts. Of a row that is sealed, `touchstone_erase` writes down the SHA-256 of its line before and after.
"""

from typing import Any

from django.db import migrations

REFUSE = """
CREATE OR REPLACE FUNCTION touchstone_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  erasable text[] := CASE TG_TABLE_NAME
    WHEN 'judging_judgment' THEN ARRAY['comment', 'client_token']
    WHEN 'judging_adjudication' THEN ARRAY['reason', 'salt']
    WHEN 'sampling_topicfinding' THEN ARRAY['reason', 'salt']
    WHEN 'touchstone_event' THEN ARRAY['detail', 'salt']
    WHEN 'judging_goldanswer' THEN ARRAY['source']
    WHEN 'judging_scale' THEN ARRAY['name'] END;
  prunable text[] := ARRAY['analytics_assessorscreening', 'analytics_auditforecast', 'analytics_computation',
    'analytics_confusionestimate', 'analytics_disputeditem', 'analytics_estimate', 'analytics_flag',
    'analytics_screening', 'analytics_shareestimate'];
BEGIN
  IF TG_OP <> 'TRUNCATE'
     AND current_setting('touchstone.change', true) = TG_OP || ' ' || pg_current_xact_id()::text THEN
    IF TG_OP = 'DELETE' AND TG_TABLE_NAME = ANY (prunable) THEN
      RETURN OLD;
    ELSIF TG_OP = 'UPDATE' AND to_jsonb(NEW) - erasable = to_jsonb(OLD) - erasable THEN
      RETURN NEW;
    END IF;
  END IF;
  RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'check_violation';
END $$
"""
BEFORE = """
CREATE OR REPLACE FUNCTION touchstone_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'check_violation';
END $$;
"""
# The same lines as touchstone/ledger/rows.py makes, of the types that tables with erasable columns have.
DIGEST = """
CREATE FUNCTION touchstone_line_digest(place text, names text[], key bigint) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
  parts text;
  found text;
BEGIN
  SELECT string_agg(format('%L || coalesce(%s, ''null'')', to_json(attname::text)::text || ':', CASE
           WHEN typname IN ('bool', 'int2', 'int4', 'int8') THEN format('r.%I::text', attname)
           WHEN typname IN ('text', 'varchar', 'jsonb', 'uuid') THEN format('to_json(r.%I::text)::text', attname)
           WHEN typname = 'timestamptz' THEN format('to_json(CASE
             WHEN r.%1$I >= ''0001-01-01 00:00:00+00'' AND r.%1$I < ''10000-01-01 00:00:00+00''
             THEN to_char(r.%1$I AT TIME ZONE ''UTC'', ''YYYY-MM-DD"T"HH24:MI:SS.US"Z"'')
             ELSE extract(epoch FROM r.%1$I)::text END)::text', attname) END),
         ' || '','' || ' ORDER BY attname::text COLLATE "C") INTO STRICT parts
    FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
   WHERE a.attrelid = to_regclass(quote_ident(place)) AND attnum > 0 AND NOT attisdropped AND attname = ANY (names);
  EXECUTE format('SELECT encode(sha256(convert_to(%L || r.id::text || '',{'' || %s || ''}]'', ''UTF8'')), ''hex'')
                    FROM %I r WHERE r.id = $1', '["' || place || '",', parts, place) INTO STRICT found USING key;
  RETURN found;
END $$
"""
ERASE = """
CREATE FUNCTION touchstone_erase(place text, key bigint, value text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  place_of_text text := CASE place
    WHEN 'judging_judgment' THEN 'comment' WHEN 'judging_adjudication' THEN 'reason'
    WHEN 'sampling_topicfinding' THEN 'reason' WHEN 'touchstone_event' THEN 'detail'
    WHEN 'judging_goldanswer' THEN 'source' WHEN 'judging_scale' THEN 'name' WHEN 'judging_message' THEN 'text'
    WHEN 'judging_invitation' THEN 'note' WHEN 'touchstone_apitoken' THEN 'name' END;
  salt text := CASE
    WHEN place = 'judging_judgment' THEN 'client_token'
    WHEN place IN ('judging_adjudication', 'sampling_topicfinding', 'touchstone_event') THEN 'salt' END;
  names text[];
  before text;
  erased text;
BEGIN
  IF place_of_text IS NULL OR value IS NULL THEN
    RAISE EXCEPTION 'nothing is erased in %', place USING ERRCODE = 'insufficient_privilege';
  END IF;
  IF salt IS NOT NULL THEN
    PERFORM pg_advisory_xact_lock(7002);  -- nobody seals meanwhile
    SELECT ARRAY(SELECT jsonb_array_elements_text(columns)) INTO names
      FROM touchstone_seal WHERE "table" = place AND up_to_id >= key ORDER BY up_to_id LIMIT 1;
    IF names IS NULL THEN
      RAISE EXCEPTION 'row % of % is not sealed yet', key, place USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    before := touchstone_line_digest(place, names, key);
    SELECT e.new INTO erased FROM touchstone_erasure e WHERE "table" = place AND "row" = key ORDER BY id DESC LIMIT 1;
    IF erased <> before THEN
      RAISE EXCEPTION 'row % of % is not what its last erasure left', key, place USING ERRCODE = 'check_violation';
    END IF;
  END IF;
  PERFORM set_config('touchstone.change', 'UPDATE ' || pg_current_xact_id()::text, true);
  EXECUTE format('UPDATE %I SET %I = $1::%s %s WHERE id = $2', place, place_of_text,
                 CASE place_of_text WHEN 'detail' THEN 'jsonb' ELSE 'text' END,
                 CASE WHEN salt IS NOT NULL THEN format(', %I = gen_random_uuid()', salt) END) USING value, key;
  PERFORM set_config('touchstone.change', '', true);
  IF salt IS NOT NULL THEN
    INSERT INTO touchstone_erasure ("table", "row", old, new)
    VALUES (place, key, before, touchstone_line_digest(place, names, key));
  END IF;
END $$
"""
# As the owner's, it must look for tables nowhere else: not in the temporary ones of whoever calls it.
PIN = """
DO $$ BEGIN
  EXECUTE format('ALTER FUNCTION touchstone_erase(text, bigint, text) SET search_path = pg_catalog, %I, pg_temp',
                 current_schema());
END $$
"""
CLOSE = "REVOKE ALL ON FUNCTION touchstone_erase(text, bigint, text) FROM PUBLIC"
BACK: list[Any] = [
    "DROP FUNCTION touchstone_erase(text, bigint, text)",
    "DROP FUNCTION touchstone_line_digest(text, text[], bigint)",
    BEFORE,
]


class Migration(migrations.Migration):
    dependencies = [("touchstone", "0014_salts")]
    operations = [migrations.RunSQL([REFUSE, DIGEST, ERASE, PIN, CLOSE], BACK)]
