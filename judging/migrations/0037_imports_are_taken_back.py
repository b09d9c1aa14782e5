"""An import is taken back as a whole: by a function of the owner, as nobody else may delete facts.

What rests on an import is said by one function, which pages read too; the other one asks it again when the import, its
collection and its campaigns are locked, so that whoever draws meanwhile is waited for and then seen. Judgments stay:
the service sets them aside. Imports of versions that made no row are removed by their event, as before.
"""

from dataclasses import dataclass, field

from django.db import migrations

HERE = "c.collection_id = imported.collection_id"
SINCE = "x.created_at >= imported.kept_at"
OF_PAIR = "x.topic_id = r.topic_id AND x.document_id = r.document_id"


@dataclass(frozen=True)
class Kind:
    """A table whose rows imports bring: what may rest on them, as words and a query of campaigns and numbers."""

    table: str
    refers: dict[str, str] = field(default_factory=dict)  # SELECT campaign, n of the rows r of an import
    since: dict[str, str] = field(default_factory=dict)  # tables with a campaign and a time
    is_sealed: bool = True

    @property
    def mine(self) -> str:
        """Return which rows (r) are the import's: between its ids, which the primary key finds, and by its name."""
        return (
            f"r.imported_by_id = imported.id AND r.id BETWEEN (span -> '{self.table}' ->> 0)::bigint"
            f" AND (span -> '{self.table}' ->> 1)::bigint"
        )

    def queries(self) -> dict[str, str]:
        """Return the query of each kind of thing that may rest on the import."""
        rows = f"{self.table} r"
        found = {words: sql.format(rows=rows, mine=self.mine) for words, sql in self.refers.items()}
        for words, table in self.since.items():
            found[words] = (
                f"SELECT x.campaign_id, count(*) FROM {table} x JOIN judging_campaign c ON c.id = x.campaign_id"
                f" WHERE {HERE} AND {SINCE} AND EXISTS (SELECT FROM {rows} WHERE {self.mine}) GROUP BY 1"
            )
        return found


def _of_campaign(table: str, on: str) -> str:
    return (
        f"SELECT x.campaign_id, count(*) FROM {table} x JOIN {{rows}} ON {on} WHERE {{mine}} GROUP BY x.campaign_id"
    )


def _of_none(table: str, on: str, more: str = "") -> str:
    return f"SELECT NULL::uuid, count(*) FROM {table} x JOIN {{rows}} ON {on} WHERE {{mine}}{more}"


OTHERS_GOLD = " AND x.imported_by_id IS DISTINCT FROM imported.id"
POOLED = (
    f"SELECT x.campaign_id, count(DISTINCT x.id) FROM sampling_draw x JOIN judging_campaign c ON c.id = x.campaign_id"
    f" JOIN {{rows}} ON {{condition}} WHERE {{mine}} AND {HERE} AND {SINCE} GROUP BY 1"
)
COMPUTED = """SELECT k.campaign_id, count(DISTINCT k.id) FROM {{rows}}
  JOIN {table} x ON x.run_id = r.id OR x.run_b_id = r.id
  JOIN analytics_computation k ON k.id = x.computation_id WHERE {{mine}} GROUP BY 1"""
DRAWS, RELEASES = {"draws": "sampling_draw"}, {"releases": "analytics_release"}

# In the order in which they go.
KINDS = (
    Kind("judging_documentimage", is_sealed=False),
    Kind(
        "judging_goldanswer",
        {
            "checks": _of_campaign(
                "judging_item",
                f"{OF_PAIR} AND EXISTS (SELECT FROM judging_slot s WHERE s.item_id = x.id"
                " AND 'check' IN (s.purpose, s.was))",
            ),
            "training items": _of_campaign("judging_trainingitem", OF_PAIR),
            "corrections": _of_none("judging_goldversion", "x.answer_id = r.id"),
            "draws calibrated on this gold": (
                "SELECT x.campaign_id, count(*) FROM sampling_draw x WHERE x.created_at >= imported.kept_at"
                " AND x.parameters ->> 'calibrated_on' = imported.collection_id::text"
                " AND EXISTS (SELECT FROM {rows} WHERE {mine}) GROUP BY 1"
            ),
        },
        {**DRAWS, "audits": "sampling_audit", "computations": "analytics_computation", **RELEASES},
    ),
    Kind(
        "judging_document",
        {
            "items": _of_campaign("judging_item", "x.document_id = r.id"),
            "training items": _of_campaign("judging_trainingitem", "x.document_id = r.id"),
            "gold answers": _of_none("judging_goldanswer", "x.document_id = r.id", OTHERS_GOLD),
            "corrections": _of_none("judging_documentversion", "x.document_id = r.id"),
        },
        {**DRAWS, **RELEASES},
    ),
    Kind(
        "judging_topic",
        {
            "items": _of_campaign("judging_item", "x.topic_id = r.id"),
            "training items": _of_campaign("judging_trainingitem", "x.topic_id = r.id"),
            "topics of campaigns": _of_campaign("judging_campaigntopic", "x.topic_id = r.id"),
            "topics given to assessors first": (
                "SELECT a.campaign_id, count(*) FROM judging_assessor_first_topics x"
                " JOIN judging_assessor a ON a.id = x.assessor_id JOIN {rows} ON x.topic_id = r.id"
                " WHERE {mine} GROUP BY 1"
            ),
            "checks of topics": (
                "SELECT p.campaign_id, count(*) FROM sampling_topiccheck x"
                " JOIN sampling_topiccheckplan p ON p.id = x.plan_id JOIN {rows} ON x.topic_id = r.id"
                " WHERE {mine} GROUP BY 1"
            ),
            "places for judgments": _of_campaign(
                "judging_slot",
                "x.topic_id = r.id AND NOT EXISTS"
                " (SELECT FROM judging_item i WHERE i.id = x.item_id AND i.topic_id = r.id)",
            ),
            "gold answers": _of_none("judging_goldanswer", "x.topic_id = r.id", OTHERS_GOLD),
            "corrections": _of_none("judging_topicversion", "x.topic_id = r.id"),
        },
        {**DRAWS, **RELEASES},
    ),
    Kind(
        "judging_run",
        {
            "draws": POOLED.replace(
                "{condition}", "x.parameters -> 'pooled' ? r.run_id OR NOT x.parameters ? 'pooled'"
            ),
            "computations": COMPUTED.format(table="analytics_estimate"),
            "forecasts of audits": COMPUTED.format(table="analytics_auditforecast"),
            "declared families of comparisons": (
                "SELECT x.campaign_id, count(*) FROM analytics_comparisonfamily x"
                " JOIN judging_campaign c ON c.id = x.campaign_id JOIN {rows} ON x.runs ? r.run_id OR x.baseline = r.run_id"
                f" WHERE {{mine}} AND {HERE} AND x.declared_at >= imported.kept_at GROUP BY 1"
            ),
        },
        RELEASES,
        is_sealed=False,
    ),
    Kind(
        "judging_scorelist",
        {"draws": POOLED.replace("{condition}", "x.parameters ->> 'scores' = r.name")},
        is_sealed=False,
    ),
)
# Judgments are of one campaign, and stay: only what was made of them keeps them in force.
OF_JUDGMENTS = {
    words: f"SELECT x.campaign_id, count(*) FROM {table} x WHERE span ? 'judging_judgment'"
    f" AND x.campaign_id = imported.campaign_id AND {SINCE} GROUP BY 1"
    for words, table in ({**DRAWS, "audits": "sampling_audit", **RELEASES}).items()
}
SPAN = """SELECT coalesce(jsonb_object_agg(k, jsonb_build_array(low, high)), '{}') INTO span FROM (
    SELECT k, min((v ->> 0)::bigint) AS low, max((v ->> 1)::bigint) AS high
      FROM jsonb_array_elements(imported.files) f, jsonb_each(coalesce(f -> 'rows', '{}')) spans (k, v) GROUP BY k) s;"""
RESTS = """
CREATE OR REPLACE FUNCTION touchstone_rests_on(made uuid) RETURNS TABLE (what text, campaign uuid, n bigint)
LANGUAGE plpgsql STABLE AS $$
DECLARE
  imported judging_import;
  span jsonb;
BEGIN
  SELECT * INTO imported FROM judging_import WHERE id = made AND state = 'kept';
  IF NOT FOUND THEN
    RETURN;
  END IF;
  %(span)s
  RETURN QUERY SELECT found.what, found.campaign, max(found.n) FROM (
    %(queries)s
  ) found (what, campaign, n) WHERE found.n > 0 GROUP BY 1, 2 ORDER BY 1, 2;
END $$;
"""
HEAD = r"""
CREATE OR REPLACE FUNCTION touchstone_take_back(made uuid, actor bigint, why text) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
  imported judging_import;
  span jsonb;
  resting text;
  n_rows bigint;
  removal bigint;
  counts jsonb := '{}';
BEGIN
  IF actor IS NULL OR coalesce(why, '') !~ '\S' THEN
    RAISE check_violation USING MESSAGE = 'who takes an import back says why';
  END IF;
  SELECT * INTO imported FROM judging_import WHERE id = made FOR UPDATE;
  IF NOT FOUND OR imported.state <> 'kept' THEN
    RAISE no_data_found USING MESSAGE = 'there is no kept import of this id';
  END IF;
  PERFORM FROM judging_collection WHERE id = imported.collection_id FOR UPDATE;
  PERFORM FROM judging_campaign WHERE collection_id = imported.collection_id ORDER BY id FOR UPDATE;
  -- No foreign key keeps a gold answer that becomes a check: see sampling/services/layout.py.
  PERFORM pg_advisory_xact_lock(hashtextextended('gold of ' || imported.collection_id, 0));
  PERFORM pg_advisory_xact_lock(7002);  -- nothing is sealed meanwhile: see touchstone/ledger/sealing.py
  %(span)s
  SELECT string_agg(format('%%s (%%s)', r.what, r.n), ', ' ORDER BY r.what) INTO resting
    FROM (SELECT q.what, sum(q.n) AS n FROM touchstone_rests_on(made) q GROUP BY 1) r;
  IF resting IS NOT NULL THEN
    RAISE restrict_violation USING MESSAGE = 'on this import rest: ' || resting;
  END IF;
"""
LOCK = """
  PERFORM r.id FROM {table} r WHERE {mine} ORDER BY r.id FOR UPDATE;
"""
SEALED = """
  IF EXISTS (SELECT FROM {table} r WHERE {mine}
                AND r.id <= (SELECT max(up_to_id) FROM touchstone_seal WHERE "table" = '{table}')
                AND NOT EXISTS (SELECT FROM touchstone_erasure e
                                 WHERE e."table" = '{table}' AND e."row" = r.id AND e.new = repeat('0', 64))) THEN
    RAISE check_violation USING MESSAGE = 'what is sealed is removed by the service, which tells the ledger';
  END IF;
"""
REMOVE = """
  SELECT count(*) INTO n_rows FROM {table} r WHERE {mine};
  IF n_rows > 0 THEN
    {sealed}
    INSERT INTO touchstone_event (at, actor_id, verb, subject, detail)
    VALUES (transaction_timestamp(), actor, 'removed an import', 'collection:' || imported.collection_id,
            jsonb_build_object('import', made, 'table', '{table}', 'rows', span -> '{table}', 'n', n_rows, 'why', why))
    RETURNING id INTO removal;
    PERFORM set_config('touchstone.removal', removal::text, TRUE);
    DELETE FROM {table} r WHERE {mine};
    PERFORM set_config('touchstone.removal', '', TRUE);
    counts := counts || jsonb_build_object('{table}', n_rows);
  END IF;
"""
TAIL = """
  UPDATE judging_import SET state = 'taken-back', taken_back_at = transaction_timestamp(), taken_back_by_id = actor
   WHERE id = made;
  RETURN counts;
END $$;
REVOKE EXECUTE ON FUNCTION touchstone_take_back(uuid, bigint, text) FROM PUBLIC;
DO $$ BEGIN
  EXECUTE format('ALTER FUNCTION touchstone_take_back(uuid, bigint, text) SET search_path = %I, pg_temp',
                 current_schema());
  EXECUTE format('ALTER FUNCTION touchstone_rests_on(uuid) SET search_path = %I, pg_temp', current_schema());
END $$;
"""
# A list of scores goes with its import alone. A run is no sealed fact, but goes only so too.
GUARD = """
CREATE OR REPLACE FUNCTION judging_goes_with_its_import() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  IF TG_OP = 'DELETE' AND EXISTS (
      SELECT FROM touchstone_event e
       WHERE e.id = nullif(current_setting('touchstone.removal', TRUE), '')::bigint
         AND e.verb = 'removed an import' AND e.at = transaction_timestamp()
         AND e.subject = 'collection:' || OLD.collection_id AND e.detail ->> 'table' = TG_TABLE_NAME
         AND OLD.id BETWEEN (e.detail -> 'rows' ->> 0)::bigint AND (e.detail -> 'rows' ->> 1)::bigint) THEN
    RETURN OLD;
  END IF;
  RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'check_violation';
END $$;
DO $$ BEGIN
  EXECUTE format('ALTER FUNCTION judging_goes_with_its_import() SET search_path = %I, pg_temp', current_schema());
END $$;
"""
GUARDS = (
    "CREATE OR REPLACE TRIGGER judging_scorelist_append_only BEFORE UPDATE OR DELETE ON judging_scorelist"
    " FOR EACH ROW EXECUTE FUNCTION judging_goes_with_its_import()",
    "ALTER TABLE judging_scorelist ENABLE ALWAYS TRIGGER judging_scorelist_append_only",
    "CREATE OR REPLACE TRIGGER judging_run_is_kept BEFORE DELETE ON judging_run"
    " FOR EACH ROW EXECUTE FUNCTION judging_goes_with_its_import()",
    "ALTER TABLE judging_run ENABLE ALWAYS TRIGGER judging_run_is_kept",
)
BACK = (
    "CREATE OR REPLACE TRIGGER judging_scorelist_append_only BEFORE UPDATE OR DELETE ON judging_scorelist"
    " FOR EACH ROW EXECUTE FUNCTION touchstone_refuse_change()",
    "ALTER TABLE judging_scorelist ENABLE ALWAYS TRIGGER judging_scorelist_append_only",
    "DROP TRIGGER IF EXISTS judging_run_is_kept ON judging_run",
    "DROP FUNCTION IF EXISTS judging_goes_with_its_import()",
    "DROP FUNCTION IF EXISTS touchstone_take_back(uuid, bigint, text)",
    "DROP FUNCTION IF EXISTS touchstone_rests_on(uuid)",
)


def functions(kinds: tuple[Kind, ...] = KINDS) -> list[str]:
    """Return the SQL of both functions, for a later migration with more tables too."""
    queries = [(words, sql) for kind in kinds for words, sql in kind.queries().items()]
    queries += OF_JUDGMENTS.items()
    union = "\n    UNION ALL ".join(f"SELECT '{words}', q.* FROM ({sql}) q" for words, sql in queries)
    locks = "".join(LOCK.format(table=kind.table, mine=kind.mine) for kind in kinds)
    removals = "".join(
        REMOVE.format(
            table=kind.table,
            mine=kind.mine,
            sealed=SEALED.format(table=kind.table, mine=kind.mine) if kind.is_sealed else "",
        )
        for kind in kinds
    )
    head = HEAD.replace("%(span)s", SPAN + locks).replace("%%", "%")
    return [RESTS % {"span": SPAN, "queries": union}, head + removals + TAIL]


class Migration(migrations.Migration):
    # Each statement by itself, and all can be done again: nobody waits for more than one table.
    atomic = False

    dependencies = [("judging", "0036_document_images")]
    operations = [migrations.RunSQL([*functions(), GUARD, *GUARDS], list(BACK))]
