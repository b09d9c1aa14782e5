"""What is old goes by one function of the owner alone, which knows what must stay and writes an event."""

from typing import Any

from django.db import migrations

# Of computations stay: those of the last day; of each day the last, of each week the last once it is old; the newest;
# what a release cites; the last of each declared look, on whose bounds a verdict rests; and the last before each
# audit, whose forecast is shown beside what came of it.
COMPUTATIONS = """
CREATE FUNCTION touchstone_old_computations(days integer, most integer) RETURNS TABLE (id bigint, campaign_id uuid)
LANGUAGE sql STABLE AS $$
  WITH aged AS (
    SELECT c.id, c.campaign_id, c.look, c.created_at, c.created_at < now() - make_interval(days => days) AS is_old
      FROM analytics_computation c),
  placed AS (
    SELECT a.*,
           row_number() OVER (PARTITION BY a.campaign_id ORDER BY a.id DESC) AS place,
           row_number() OVER (PARTITION BY a.campaign_id, is_old, date_trunc(
             CASE WHEN is_old THEN 'week' ELSE 'day' END, a.created_at AT TIME ZONE 'UTC') ORDER BY a.id DESC) AS of_time,
           row_number() OVER (PARTITION BY a.campaign_id, look ORDER BY a.id DESC) AS of_look
      FROM aged a)
  SELECT p.id, p.campaign_id FROM placed p
   WHERE place > 1 AND of_time > 1 AND (look IS NULL OR of_look > 1) AND created_at < now() - interval '1 day'
     AND NOT EXISTS (SELECT FROM analytics_release r WHERE r.computation_id = p.id)
     AND NOT EXISTS (
       SELECT FROM sampling_audit u WHERE u.campaign_id = p.campaign_id AND u.created_at > p.created_at
          AND NOT EXISTS (SELECT FROM analytics_computation n WHERE n.campaign_id = p.campaign_id
                             AND n.id > p.id AND n.created_at < u.created_at))
   ORDER BY p.id LIMIT most
$$
"""
# A job of a period stays until a later one of the same schedule is there: it says that the period was done.
PRUNE = """
CREATE FUNCTION touchstone_prune(what text, days integer, most integer) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  n bigint;
  keys bigint[];
  place text;
BEGIN
  IF days IS NULL OR days < 90 THEN
    RAISE EXCEPTION 'nothing younger than 90 days is pruned' USING ERRCODE = 'insufficient_privilege';
  END IF;
  IF what = 'jobs' THEN
    DELETE FROM touchstone_job WHERE id IN (
      SELECT j.id FROM touchstone_job j
       WHERE state IN ('done', 'failed', 'cancelled') AND finished_at < now() - make_interval(days => days)
         AND NOT EXISTS (SELECT FROM analytics_release r WHERE r.job_id = j.id)
         AND (period_key IS NULL OR EXISTS (
           SELECT FROM touchstone_job k WHERE k.created_at > j.created_at AND k.kind = j.kind
              AND split_part(k.period_key, ':', 2) = split_part(j.period_key, ':', 2)))
       LIMIT most FOR UPDATE OF j SKIP LOCKED);
  ELSIF what = 'sessions' THEN
    DELETE FROM django_session WHERE session_key IN (
      SELECT session_key FROM django_session WHERE expire_date < now() - make_interval(days => days) LIMIT most);
  ELSIF what = 'deliveries' THEN
    DELETE FROM touchstone_webhookdelivery WHERE id IN (
      SELECT id FROM touchstone_webhookdelivery
       WHERE state <> 'waiting' AND next_attempt_at < now() - make_interval(days => days) LIMIT most);
  ELSIF what = 'computations' THEN
    PERFORM pg_advisory_xact_lock(7003);  -- one at a time
    SELECT array_agg(id) INTO keys FROM touchstone_old_computations(days, most);
    INSERT INTO touchstone_event (at, verb, subject, detail)
    SELECT now(), 'pruned computations', 'campaign:' || campaign_id,
           jsonb_build_object('n_computations', count(*), 'up_to', max(id))
      FROM analytics_computation WHERE id = ANY (keys) GROUP BY campaign_id;
    PERFORM set_config('touchstone.change', 'DELETE ' || pg_current_xact_id()::text, true);
    DELETE FROM analytics_assessorscreening WHERE screening_id IN (
      SELECT id FROM analytics_screening WHERE computation_id = ANY (keys));
    FOREACH place IN ARRAY ARRAY['analytics_screening', 'analytics_flag', 'analytics_auditforecast',
        'analytics_disputeditem', 'analytics_shareestimate', 'analytics_confusionestimate', 'analytics_estimate'] LOOP
      EXECUTE format('DELETE FROM %I WHERE computation_id = ANY ($1)', place) USING keys;
    END LOOP;
    DELETE FROM analytics_computation WHERE id = ANY (keys);
  ELSE
    RAISE EXCEPTION '% are never pruned', what USING ERRCODE = 'insufficient_privilege';
  END IF;
  GET DIAGNOSTICS n = ROW_COUNT;
  PERFORM set_config('touchstone.change', '', true);
  IF n > 0 AND what <> 'computations' THEN
    INSERT INTO touchstone_event (at, verb, subject, detail)
    VALUES (now(), 'pruned', 'retention:' || what, jsonb_build_object('n', n, 'days', days));
  END IF;
  RETURN n;
END $$
"""
PIN = """
DO $$ BEGIN
  EXECUTE format('ALTER FUNCTION touchstone_prune(text, integer, integer) SET search_path = pg_catalog, %I, pg_temp',
                 current_schema());
END $$
"""
CLOSE = "REVOKE ALL ON FUNCTION touchstone_prune(text, integer, integer) FROM PUBLIC"
BACK: list[Any] = [
    "DROP FUNCTION touchstone_prune(text, integer, integer)",
    "DROP FUNCTION touchstone_old_computations(integer, integer)",
]


class Migration(migrations.Migration):
    dependencies = [
        ("analytics", "0017_old_matrices_hold_no_names"),
        ("sampling", "0017_salt_of_findings"),
        ("touchstone", "0015_erasing"),
    ]
    operations = [migrations.RunSQL([COMPUTATIONS, PRUNE, PIN, CLOSE], BACK)]
