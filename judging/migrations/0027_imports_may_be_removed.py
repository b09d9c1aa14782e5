"""An import on which nothing rests may be removed: by a function of the owner, as nobody else may delete facts.

It is called with the id of the import's event. What rests on the rows is looked for when they, their collection and its
campaigns are locked: whoever refers to one of them meanwhile is waited for and then seen, or waits and finds it gone.
"""

from typing import Any

from django.db import migrations

SINCE = "campaign_id IN (SELECT id FROM judging_campaign WHERE collection_id = place) AND created_at >= imported.at"
OF_PAIR = "x.topic_id = r.topic_id AND x.document_id = r.document_id"
# Of each table: which of its rows (r) are the import's, and what may rest on them: words, and how it is counted.
REFERS = "SELECT count(*) FROM {table} x JOIN {base} r ON {on} WHERE {mine}"
WHOLE = "SELECT count(*) FROM {table} WHERE " + SINCE
# A campaign of another collection may have been calibrated on this one's gold.
CALIBRATED = "created_at >= imported.at AND parameters ->> 'calibrated_on' = place::text"


def _refers(table: str, column: str) -> tuple[str, str]:
    return (table, f"x.{column} = r.id")


OF_COLLECTION = "r.collection_id = place AND r.id BETWEEN first AND last"
KINDS: dict[str, dict[str, Any]] = {
    "judging_document": {
        "verb": "imported documents",
        "mine": OF_COLLECTION,
        "refers": {
            "items": _refers("judging_item", "document_id"),
            "gold answers": _refers("judging_goldanswer", "document_id"),
            "training items": _refers("judging_trainingitem", "document_id"),
            "versions": _refers("judging_documentversion", "document_id"),
        },
        "since": {"draws": "sampling_draw", "releases": "analytics_release"},
    },
    "judging_topic": {
        "verb": "imported topics",
        "mine": OF_COLLECTION,
        "refers": {
            "items": _refers("judging_item", "topic_id"),
            "places for judgments": _refers("judging_slot", "topic_id"),
            "gold answers": _refers("judging_goldanswer", "topic_id"),
            "training items": _refers("judging_trainingitem", "topic_id"),
            "topics of campaigns": _refers("judging_campaigntopic", "topic_id"),
            "topics given to assessors first": _refers("judging_assessor_first_topics", "topic_id"),
            "checks of topics": _refers("sampling_topiccheck", "topic_id"),
            "versions": _refers("judging_topicversion", "topic_id"),
        },
        "since": {"draws": "sampling_draw", "releases": "analytics_release"},
    },
    "judging_goldanswer": {
        "verb": "imported gold answers",
        "mine": "r.id BETWEEN first AND last AND r.topic_id IN (SELECT id FROM judging_topic WHERE collection_id = place)",
        "refers": {
            "checks": (
                "judging_item",
                f"{OF_PAIR} AND EXISTS (SELECT FROM judging_slot s WHERE s.item_id = x.id AND 'check' IN (s.purpose, s.was))",
            ),
            "training items": ("judging_trainingitem", OF_PAIR),
            "versions": _refers("judging_goldversion", "answer_id"),
        },
        "since": {
            "draws": "sampling_draw",
            "audits": "sampling_audit",
            "computations": "analytics_computation",
            "releases": "analytics_release",
        },
    },
}
HEAD = r"""
CREATE FUNCTION touchstone_remove_import(import_id bigint, actor bigint, why text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  imported touchstone_event;
  place uuid;
  first bigint;
  last bigint;
  resting text[] := '{}';
  n_rows bigint;
  removal bigint;
BEGIN
  IF actor IS NULL OR coalesce(why, '') !~ '\S' THEN
    RAISE check_violation USING MESSAGE = 'who removes an import says why';
  END IF;
  SELECT * INTO imported FROM touchstone_event e
   WHERE e.id = import_id AND e.verb IN (VERBS) AND e.subject LIKE 'collection:%' AND jsonb_typeof(e.detail -> 'rows') = 'array';
  IF NOT FOUND THEN
    RAISE no_data_found USING MESSAGE = 'there is no import of this number that could be removed';
  END IF;
  place := split_part(imported.subject, ':', 2)::uuid;
  first := (imported.detail -> 'rows' ->> 0)::bigint;
  last := (imported.detail -> 'rows' ->> 1)::bigint;
  PERFORM FROM judging_collection WHERE id = place FOR UPDATE;
  PERFORM FROM judging_campaign WHERE collection_id = place ORDER BY id FOR UPDATE;
  -- No foreign key keeps a gold answer that becomes a check: see sampling/services/layout.py.
  PERFORM pg_advisory_xact_lock(hashtextextended('gold of ' || place, 0));
  PERFORM pg_advisory_xact_lock(7002);  -- nothing is sealed meanwhile: see touchstone/ledger/sealing.py
"""
BRANCH = """
  IF imported.verb = '{verb}' THEN
    WITH locked AS (SELECT r.id FROM {base} r WHERE {mine} ORDER BY r.id FOR UPDATE)
    SELECT count(*) INTO n_rows FROM locked;
    IF n_rows = 0 THEN
      RAISE no_data_found USING MESSAGE = 'this import was removed already';
    END IF;
{counts}
    IF resting <> '{{}}' THEN
      RAISE restrict_violation USING MESSAGE = 'on this import rest: ' || array_to_string(resting, ', ');
    END IF;
    IF EXISTS (SELECT FROM {base} r WHERE {mine}
                  AND r.id <= (SELECT max(up_to_id) FROM touchstone_seal WHERE "table" = '{base}')
                  AND NOT EXISTS (SELECT FROM touchstone_erasure e
                                   WHERE e."table" = '{base}' AND e."row" = r.id AND e.new = repeat('0', 64))) THEN
      RAISE check_violation USING MESSAGE = 'what is sealed is removed by the service, which tells the ledger';
    END IF;
    INSERT INTO touchstone_event (at, actor_id, verb, subject, detail)
    VALUES (transaction_timestamp(), actor, 'removed an import', imported.subject,
            jsonb_build_object('import', import_id, 'table', '{base}', 'rows', imported.detail -> 'rows', 'n', n_rows,
                               'why', why)) RETURNING id INTO removal;
    PERFORM set_config('touchstone.removal', removal::text, TRUE);
    DELETE FROM {base} r WHERE {mine};
    PERFORM set_config('touchstone.removal', '', TRUE);
    RETURN n_rows;
  END IF;
"""
COUNT = """    SELECT resting || CASE WHEN n > 0 THEN ARRAY[format('{words} (%s)', n)] ELSE '{{}}' END INTO resting
      FROM ({sql}) found_here (n);"""
TAIL = """
  RAISE no_data_found USING MESSAGE = 'there is no import of this number that could be removed';
END $$;
REVOKE EXECUTE ON FUNCTION touchstone_remove_import(bigint, bigint, text) FROM PUBLIC;
DO $$ BEGIN
  EXECUTE format('ALTER FUNCTION touchstone_remove_import(bigint, bigint, text) SET search_path = %I, pg_temp',
                 current_schema());
END $$;
"""


def _branch(base: str) -> str:
    kind = KINDS[base]
    found = {
        words: REFERS.format(table=table, base=base, on=on, mine=kind["mine"])
        for words, (table, on) in kind["refers"].items()
    } | {f"{words} made since": WHOLE.format(table=table) for words, table in kind["since"].items()}
    if base == "judging_goldanswer":
        found["draws calibrated on this gold"] = f"SELECT count(*) FROM sampling_draw WHERE {CALIBRATED}"
    counts = "\n".join(COUNT.format(words=words, sql=sql) for words, sql in found.items())
    return BRANCH.format(verb=kind["verb"], base=base, mine=kind["mine"], counts=counts)


VERBS = ", ".join(f"'{kind['verb']}'" for kind in KINDS.values())
FORWARD = HEAD.replace("VERBS", VERBS) + "".join(map(_branch, KINDS)) + TAIL


class Migration(migrations.Migration):
    dependencies = [("judging", "0026_versions_are_kept")]
    operations = [
        migrations.RunSQL(FORWARD, "DROP FUNCTION touchstone_remove_import(bigint, bigint, text)")
    ]
