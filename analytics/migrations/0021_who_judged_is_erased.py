"""Who judged in a closed campaign can be erased: judgments and leases go to stand-ins, by one function of the owner.

The triggers of append-only tables let its changes pass as they do those of `touchstone_erase`. It may only move rows
from an assessor to a stand-in: an assessor of the same campaign whose account is closed and has no password. Of a
judgment the client token is renewed with it, of an event the salt, so that nobody can test guesses of who it was
against the hash of the row as it was; of each sealed row the SHA-256 before and after is written down.
"""

from typing import Any

from django.db import migrations

REFUSE = """
CREATE OR REPLACE FUNCTION touchstone_refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  erasable text[] := CASE TG_TABLE_NAME
    WHEN 'judging_judgment' THEN ARRAY['comment', 'client_token'{judgment}]
    WHEN 'judging_adjudication' THEN ARRAY['reason', 'salt']
    WHEN 'sampling_topicfinding' THEN ARRAY['reason', 'salt']
    WHEN 'touchstone_event' THEN ARRAY['detail', 'salt'{event}]{more}
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
MORE = """
    WHEN 'judging_lease' THEN ARRAY['assessor_id']
    WHEN 'analytics_confusionestimate' THEN ARRAY['assessor_id', 'key']"""
# Web processes may write a slot's assessor, and anybody may set the setting: so only the owner's own functions pass.
KEEP_SLOT = """
CREATE OR REPLACE FUNCTION judging_keep_done_slot() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF current_setting('touchstone.change', true) = 'UPDATE ' || pg_current_xact_id()::text
     AND current_user = (SELECT pg_get_userbyid(relowner) FROM pg_class WHERE oid = TG_RELID)
     AND to_jsonb(NEW) - 'assessor_id' = to_jsonb(OLD) - 'assessor_id' THEN
    RETURN NEW;
  END IF;
  RAISE EXCEPTION 'slot: done is done' USING ERRCODE = 'check_violation', CONSTRAINT = 'judging_slot_done';
END $$
"""
KEEP_SLOT_BEFORE = """
CREATE OR REPLACE FUNCTION judging_keep_done_slot() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION 'slot: done is done' USING ERRCODE = 'check_violation', CONSTRAINT = 'judging_slot_done';
END $$
"""
# The same lines as touchstone_line_digest makes of one row, of all rows whose column is one of the keys.
DIGESTS = """
CREATE FUNCTION touchstone_line_digests(place text, matched text, keys bigint[])
RETURNS TABLE (key bigint, digest text) LANGUAGE plpgsql STABLE AS $$
DECLARE
  seal record;
  parts text;
  after bigint := 0;
BEGIN
  FOR seal IN SELECT s.columns, s.up_to_id FROM touchstone_seal s WHERE s."table" = place ORDER BY s.up_to_id LOOP
    SELECT string_agg(format('%L || coalesce(%s, ''null'')', to_json(attname::text)::text || ':', CASE
             WHEN typname IN ('bool', 'int2', 'int4', 'int8') THEN format('r.%I::text', attname)
             WHEN typname IN ('text', 'varchar', 'jsonb', 'uuid') THEN format('to_json(r.%I::text)::text', attname)
             WHEN typname = 'timestamptz' THEN format('to_json(CASE
               WHEN r.%1$I >= ''0001-01-01 00:00:00+00'' AND r.%1$I < ''10000-01-01 00:00:00+00''
               THEN to_char(r.%1$I AT TIME ZONE ''UTC'', ''YYYY-MM-DD"T"HH24:MI:SS.US"Z"'')
               ELSE extract(epoch FROM r.%1$I)::text END)::text', attname) END),
           ' || '','' || ' ORDER BY attname::text COLLATE "C") INTO STRICT parts
      FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
     WHERE a.attrelid = to_regclass(quote_ident(place)) AND attnum > 0 AND NOT attisdropped
       AND attname = ANY (ARRAY(SELECT jsonb_array_elements_text(seal.columns)));
    RETURN QUERY EXECUTE format(
      'SELECT r.id::bigint, encode(sha256(convert_to(%L || r.id::text || '',{'' || %s || ''}]'', ''UTF8'')), ''hex'')
         FROM %I r WHERE r.id > $1 AND r.id <= $2 AND r.%I = ANY ($3)', '["' || place || '",', parts, place, matched)
      USING after, seal.up_to_id, keys;
    after := seal.up_to_id;
  END LOOP;
END $$
"""
ERASE = """
CREATE FUNCTION touchstone_erase_judges(place uuid, judges bigint[], stand_ins bigint[]) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  rows_of_judges bigint[];
  rows_of_events bigint[];
  olds text[];
  people bigint[];
  subjects text[];
  n bigint;
BEGIN
  PERFORM FROM judging_campaign WHERE id = place AND state = 'closed' FOR UPDATE;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'who judged is erased in a closed campaign alone' USING ERRCODE = 'insufficient_privilege';
  END IF;
  PERFORM pg_advisory_xact_lock(7002);  -- nobody seals meanwhile
  SELECT array_agg(a.user_id), array_agg('assessor:' || a.id) INTO people, subjects FROM judging_assessor a
   WHERE a.id = ANY (judges) AND a.campaign_id = place AND a.kind <> 'machine';
  SELECT count(DISTINCT a.id) INTO n FROM judging_assessor a JOIN touchstone_user u ON u.id = a.user_id
   WHERE a.id = ANY (stand_ins) AND NOT a.id = ANY (judges) AND a.campaign_id = place AND a.kind <> 'machine'
     AND NOT u.is_active AND u.password LIKE '!%'
     AND NOT EXISTS (SELECT FROM judging_judgment j WHERE j.assessor_id = a.id)
     AND NOT EXISTS (SELECT FROM judging_lease l WHERE l.assessor_id = a.id);
  IF coalesce(cardinality(people), 0) = 0 OR cardinality(people) <> cardinality(judges)
     OR n <> cardinality(judges) OR cardinality(stand_ins) <> cardinality(judges) THEN
    RAISE EXCEPTION 'each judge needs a stand-in of the campaign, with a closed account and no judgment'
      USING ERRCODE = 'insufficient_privilege';
  END IF;
  IF EXISTS (SELECT FROM judging_judgment j WHERE j.assessor_id = ANY (judges)
                AND j.id > (SELECT coalesce(max(up_to_id), 0) FROM touchstone_seal WHERE "table" = 'judging_judgment')) THEN
    RAISE EXCEPTION 'not every judgment is sealed yet' USING ERRCODE = 'object_not_in_prerequisite_state';
  END IF;

  SELECT array_agg(d.key ORDER BY d.key), array_agg(d.digest ORDER BY d.key) INTO rows_of_judges, olds
    FROM touchstone_line_digests('judging_judgment', 'assessor_id', judges) d;
  PERFORM touchstone_refuse_other_lines('judging_judgment', rows_of_judges, olds);
  PERFORM set_config('touchstone.change', 'UPDATE ' || pg_current_xact_id()::text, true);
  UPDATE judging_judgment j SET assessor_id = m.stand_in, client_token = gen_random_uuid()
    FROM unnest(judges, stand_ins) AS m (judge, stand_in) WHERE j.assessor_id = m.judge;
  UPDATE judging_lease l SET assessor_id = m.stand_in
    FROM unnest(judges, stand_ins) AS m (judge, stand_in) WHERE l.assessor_id = m.judge;
  UPDATE judging_slot s SET assessor_id = m.stand_in
    FROM unnest(judges, stand_ins) AS m (judge, stand_in) WHERE s.campaign_id = place AND s.assessor_id = m.judge;
  UPDATE analytics_confusionestimate c SET assessor_id = m.stand_in, key = m.stand_in::text
    FROM unnest(judges, stand_ins) AS m (judge, stand_in) WHERE c.assessor_id = m.judge;
  PERFORM set_config('touchstone.change', '', true);
  INSERT INTO touchstone_erasure ("table", "row", old, new)
  SELECT 'judging_judgment', o.key, o.old, d.digest
    FROM unnest(rows_of_judges, olds) AS o (key, old)
    JOIN touchstone_line_digests('judging_judgment', 'assessor_id', stand_ins) d ON d.key = o.key ORDER BY o.key;

  -- What was measured of each is in releases too, under the pseudonym.
  PERFORM set_config('touchstone.change', 'DELETE ' || pg_current_xact_id()::text, true);
  DELETE FROM analytics_flag WHERE assessor_id = ANY (judges);
  DELETE FROM analytics_assessorscreening WHERE screening_id IN (
    SELECT s.id FROM analytics_screening s JOIN analytics_computation c ON c.id = s.computation_id
     WHERE c.campaign_id = place);
  DELETE FROM analytics_screening WHERE computation_id IN (
    SELECT c.id FROM analytics_computation c WHERE c.campaign_id = place);
  PERFORM set_config('touchstone.change', '', true);

  -- Whatever else says of a person which documents they had, and when they judged.
  DELETE FROM judging_assessor_first_topics WHERE assessor_id = ANY (judges);
  UPDATE judging_message SET item_id = NULL WHERE assessor_id = ANY (judges) AND item_id IS NOT NULL;
  UPDATE judging_participant SET completed_at = date_trunc('day', completed_at, 'UTC') WHERE assessor_id = ANY (judges);
  UPDATE judging_assessor SET n_judged = 0, n_failed = 0, status = 'suspended', tier = 'bronze', kind = 'human',
         team = '', quota = NULL, consented_at = date_trunc('day', consented_at, 'UTC'),
         trained_at = date_trunc('day', trained_at, 'UTC') WHERE id = ANY (judges);

  SELECT array_agg(e.id) INTO rows_of_events FROM touchstone_event e
   WHERE e.subject = ANY (subjects)
      OR e.subject = 'campaign:' || place AND (e.actor_id = ANY (people) AND e.verb = ANY (ARRAY[
           'joined by invitation', 'asked a question', 'released', 'agreed', 'completed', 'came from the market',
           'read a message'])
         OR e.detail ? 'assessor' AND e.detail ->> 'assessor' = ANY (people::text[])
         OR e.detail ? 'assessors');
  IF rows_of_events <> '{}' THEN
    IF EXISTS (SELECT FROM unnest(rows_of_events) AS w (key) WHERE w.key >
         (SELECT coalesce(max(up_to_id), 0) FROM touchstone_seal WHERE "table" = 'touchstone_event')) THEN
      RAISE EXCEPTION 'not every event is sealed yet' USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    SELECT array_agg(d.key ORDER BY d.key), array_agg(d.digest ORDER BY d.key) INTO rows_of_events, olds
      FROM touchstone_line_digests('touchstone_event', 'id', rows_of_events) d;
    PERFORM touchstone_refuse_other_lines('touchstone_event', rows_of_events, olds);
    PERFORM set_config('touchstone.change', 'UPDATE ' || pg_current_xact_id()::text, true);
    UPDATE touchstone_event e SET salt = gen_random_uuid(),
           actor_id = CASE WHEN e.actor_id = ANY (people) THEN NULL ELSE e.actor_id END,
           subject = CASE WHEN e.subject = ANY (subjects) THEN 'assessor:0' ELSE e.subject END,
           detail = (e.detail - 'assessor' - 'assessors' - 'invitation' - 'tier' - 'message')
     WHERE e.id = ANY (rows_of_events);
    PERFORM set_config('touchstone.change', '', true);
    INSERT INTO touchstone_erasure ("table", "row", old, new)
    SELECT 'touchstone_event', o.key, o.old, d.digest FROM unnest(rows_of_events, olds) AS o (key, old)
      JOIN touchstone_line_digests('touchstone_event', 'id', rows_of_events) d ON d.key = o.key ORDER BY o.key;
  END IF;

  UPDATE analytics_release SET pseudonym_key = '' WHERE campaign_id = place AND pseudonym_key <> '';
  RETURN coalesce(cardinality(rows_of_judges), 0);
END $$
"""
REFUSE_OTHER = """
CREATE FUNCTION touchstone_refuse_other_lines(place text, keys bigint[], lines text[]) RETURNS void
LANGUAGE plpgsql STABLE AS $$
DECLARE
  other bigint;
BEGIN
  SELECT k.key INTO other FROM unnest(keys, lines) AS k (key, line)
    JOIN LATERAL (SELECT e.new FROM touchstone_erasure e WHERE e."table" = place AND e."row" = k.key
                   ORDER BY e.id DESC LIMIT 1) last ON last.new <> k.line LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'row % of % is not what its last erasure left', other, place USING ERRCODE = 'check_violation';
  END IF;
END $$
"""
PIN = """
DO $$ BEGIN
  EXECUTE format('ALTER FUNCTION touchstone_erase_judges(uuid, bigint[], bigint[]) SET search_path = pg_catalog, %I, pg_temp',
                 current_schema());
END $$
"""
CLOSE = "REVOKE ALL ON FUNCTION touchstone_erase_judges(uuid, bigint[], bigint[]) FROM PUBLIC"
FORWARD: list[Any] = [
    REFUSE.format(judgment=", 'assessor_id'", event=", 'actor_id', 'subject'", more=MORE),
    *(KEEP_SLOT, DIGESTS, REFUSE_OTHER, ERASE, PIN, CLOSE),
]
BACK: list[Any] = [
    "DROP FUNCTION touchstone_erase_judges(uuid, bigint[], bigint[])",
    "DROP FUNCTION touchstone_refuse_other_lines(text, bigint[], text[])",
    "DROP FUNCTION touchstone_line_digests(text, text, bigint[])",
    KEEP_SLOT_BEFORE,
    REFUSE.format(judgment="", event="", more=""),
]


class Migration(migrations.Migration):
    dependencies = [
        ("analytics", "0020_reasons_of_disputes"),
        ("judging", "0048_what_rests_is_told_fast"),
        ("touchstone", "0020_identities"),
    ]
    operations = [migrations.RunSQL(FORWARD, BACK)]
