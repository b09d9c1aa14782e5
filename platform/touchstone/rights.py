"""What each table allows: the one table from which the rights of the database's roles are made.

Every table may be read and added to by the web processes and the workers, but for the seals of the ledger, which only
workers make. Facts allow nothing more: a correction is a new row. Other tables name the columns that may change, and
whether rows may be deleted. Nobody but the owner may truncate. The reader sees everything but secrets. `prepare` gives
the rights (touchstone/roles.py makes the roles). A function that does as the owner what its callers may not is called
by those whom FUNCTIONS names, and by nobody else.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

OWNER, WEB, WORKER, READ = "touchstone_owner", "touchstone_web", "touchstone_worker", "touchstone_read"
BACKUP = "touchstone_backup"  # may replicate, and has no right on any table
EVERY = ("*",)  # every column


@dataclass(frozen=True)
class Rights:
    """Columns that may change, who adds rows, whether they may be deleted, and columns that the reader does not see."""

    changes: tuple[str, ...] = ()
    adds: bool = True
    is_added_by_web: bool = True
    deletes: bool = False
    hidden: tuple[str, ...] = ()


# Functions of the owner that change what nobody else may, and who may call them.
FUNCTIONS: dict[str, tuple[str, ...]] = {
    "touchstone_erase": (WORKER,),
    "touchstone_erase_judges": (WORKER,),
    "touchstone_prune": (WORKER,),
    "touchstone_remove_import": (WEB, WORKER),
    "touchstone_take_back": (WEB, WORKER),
}
APPEND_ONLY = Rights()
SEALS = Rights(is_added_by_web=False)  # append-only as well

TABLES: dict[str, Rights] = {
    # Django's own. Migrations are the owner's.
    "auth_group": Rights(adds=False),
    "auth_group_permissions": Rights(adds=False),
    "auth_permission": Rights(adds=False),
    "django_content_type": Rights(adds=False),
    "django_migrations": Rights(adds=False),
    "django_session": Rights(changes=EVERY, deletes=True, hidden=EVERY),
    # touchstone
    "touchstone_accountlink": Rights(
        changes=("revoked_at", "used_at", "user_id"), deletes=True, hidden=("email", "token_sha256")
    ),
    "touchstone_apitoken": Rights(changes=("expires_at", "revoked_at"), hidden=("key_sha256",)),
    "touchstone_erasure": APPEND_ONLY,
    "touchstone_event": APPEND_ONLY,
    "touchstone_idempotentrequest": Rights(deletes=True, hidden=EVERY),
    "touchstone_identity": Rights(deletes=True, hidden=("label", "subject")),
    "touchstone_job": Rights(changes=EVERY, hidden=("lease_token",)),
    "touchstone_letter": Rights(
        changes=EVERY, deletes=True, hidden=("address", "link", "seed", "text", "title")
    ),
    "touchstone_letterrefusal": Rights(deletes=True),
    "touchstone_ratecounter": Rights(changes=("ends_at", "n"), deletes=True, hidden=EVERY),
    "touchstone_seal": SEALS,
    "touchstone_user": Rights(changes=EVERY, hidden=("password", "session_salt")),
    "touchstone_user_groups": Rights(adds=False),
    "touchstone_user_user_permissions": Rights(adds=False),
    "touchstone_webhook": Rights(changes=EVERY, hidden=("secret",)),
    "touchstone_webhookdelivery": Rights(
        changes=("answer", "attempts", "next_attempt_at", "state"), deletes=True
    ),
    "touchstone_workerheartbeat": Rights(changes=("seen_at",), deletes=True),
    # judging
    "judging_adjudication": APPEND_ONLY,
    "judging_assessor": Rights(
        changes=(
            *("consented_at", "n_failed", "n_judged", "n_requests", "quota"),
            *("requests_cost", "status", "team", "trained_at"),
        ),
    ),
    "judging_assessor_first_topics": Rights(deletes=True),
    "judging_campaign": Rights(changes=EVERY, hidden=("entry_key",)),
    "judging_campaigntopic": Rights(changes=("check_rate", "team")),
    "judging_collection": Rights(changes=EVERY),
    "judging_collectionmember": Rights(deletes=True),
    "judging_document": APPEND_ONLY,
    "judging_documentimage": APPEND_ONLY,
    "judging_documentversion": APPEND_ONLY,
    "judging_goldanswer": APPEND_ONLY,
    "judging_goldversion": APPEND_ONLY,
    "judging_grade": APPEND_ONLY,
    "judging_import": Rights(
        changes=(
            *("campaign_id", "files", "kept_at", "kind", "options"),
            *("report", "state", "taken_back_at", "taken_back_by_id"),
        )
    ),
    "judging_importedname": Rights(deletes=True),
    "judging_invitation": Rights(changes=("n_used", "revoked_at"), hidden=("token",)),
    "judging_item": Rights(changes=("judgments_more", "judgments_wanted")),
    "judging_judgment": APPEND_ONLY,
    "judging_lease": APPEND_ONLY,
    "judging_machinecall": APPEND_ONLY,
    "judging_message": Rights(changes=("read_at",)),
    "judging_participant": Rights(
        changes=("completed_at", "participant", "session", "study"),
        hidden=("participant", "session", "study"),
    ),
    "judging_placesleft": Rights(changes=EVERY),
    "judging_reservation": Rights(changes=EVERY, deletes=True),
    "judging_run": Rights(
        changes=(
            *("description", "group", "is_manual", "may_publish"),
            *("set_aside_at", "set_aside_why"),
        )
    ),
    "judging_scale": APPEND_ONLY,
    "judging_scorelist": APPEND_ONLY,
    "judging_slot": Rights(
        changes=(
            *("assessor_id", "lease_until", "leased_at", "number"),
            *("position", "purpose", "state", "token", "was"),
        )
    ),
    "judging_stuckitem": Rights(deletes=True),
    "judging_topic": APPEND_ONLY,
    "judging_topicversion": APPEND_ONLY,
    "judging_traininganswer": APPEND_ONLY,
    "judging_traininggrant": APPEND_ONLY,
    "judging_trainingitem": Rights(changes=("explanation",), deletes=True),
    # sampling
    "sampling_audit": APPEND_ONLY,
    "sampling_auditentry": APPEND_ONLY,
    "sampling_auditschedule": Rights(changes=EVERY),
    "sampling_draw": APPEND_ONLY,
    "sampling_drawentry": APPEND_ONLY,
    "sampling_judginglook": APPEND_ONLY,
    "sampling_topiccheck": APPEND_ONLY,
    "sampling_topiccheckplan": APPEND_ONLY,
    "sampling_topicfinding": APPEND_ONLY,
    # analytics
    "analytics_assessorscreening": APPEND_ONLY,
    "analytics_auditforecast": APPEND_ONLY,
    "analytics_comparisonfamily": APPEND_ONLY,
    "analytics_computation": APPEND_ONLY,
    "analytics_confusionestimate": APPEND_ONLY,
    "analytics_disputeditem": APPEND_ONLY,
    "analytics_estimate": APPEND_ONLY,
    "analytics_flag": APPEND_ONLY,
    "analytics_itemdigest": Rights(
        changes=("computation", "influence", "milliseconds", "newest", "spread"),
    ),
    "analytics_judgingconditions": APPEND_ONLY,
    "analytics_release": Rights(changes=EVERY, hidden=("pseudonym_key",)),
    "analytics_screening": APPEND_ONLY,
    "analytics_shareestimate": APPEND_ONLY,
}


@dataclass(frozen=True, order=True)
class Grant:
    """One privilege of a role: on a table or a function, or, where a column is named, on that column alone."""

    role: str
    table: str
    privilege: str
    column: str = ""

    def __str__(self) -> str:
        """Return it as PostgreSQL's GRANT spells it, without the verb.

        >>> print(Grant("touchstone_web", "judging_slot", "UPDATE", "state"))
        UPDATE (state) on judging_slot for touchstone_web
        """
        columns = f" ({self.column})" if self.column else ""
        return f"{self.privilege}{columns} on {self.table} for {self.role}"


@dataclass(frozen=True)
class Difference:
    """Rights that are wanted and not given, and rights that are given and not wanted."""

    missing: tuple[Grant, ...]
    unexpected: tuple[Grant, ...]

    def words(self) -> list[str]:
        """Return a sentence a right."""
        return [f"missing right: {grant}" for grant in self.missing] + [
            f"right that is not expected: {grant}" for grant in self.unexpected
        ]


def expected_grants(
    columns: Mapping[str, Iterable[str]], sequences: Iterable[str] = (), functions: Iterable[str] = ()
) -> frozenset[Grant]:
    """Return the rights of the roles on these tables, given with their columns, on their sequences, and on functions.

    A sequence is read to learn the newest id; a row gets its own without a right on it.

    >>> sorted(grant.role for grant in expected_grants({"judging_lease": ["token"]}) if grant.privilege == "INSERT")
    ['touchstone_web', 'touchstone_worker']
    >>> sorted(grant.role for grant in expected_grants({"touchstone_seal": ["head"]}) if grant.privilege == "INSERT")
    ['touchstone_worker']
    >>> [str(grant) for grant in expected_grants({"judging_lease": ["token"]}) if grant.role == "touchstone_read"]
    ['SELECT on judging_lease for touchstone_read']
    """
    found = {Grant(role, name, "SELECT") for name in sequences for role in (WEB, WORKER)}
    found |= {Grant(role, name, "EXECUTE") for name in functions for role in FUNCTIONS[name]}
    for table, names in columns.items():
        rights = TABLES[table]
        for role in (WEB, WORKER):
            found |= {Grant(role, table, privilege) for privilege in _whole(rights, role)}
            if rights.changes != EVERY:
                found |= {Grant(role, table, "UPDATE", name) for name in rights.changes}
        if not rights.hidden:
            found.add(Grant(READ, table, "SELECT"))
        elif rights.hidden != EVERY:
            found |= {Grant(READ, table, "SELECT", name) for name in names if name not in rights.hidden}
    return frozenset(found)


def _whole(rights: Rights, role: str) -> list[str]:
    """Return the privileges of a process's role on the table as a whole."""
    may_add = rights.adds and (role == WORKER or rights.is_added_by_web)
    privileges = {"INSERT": may_add, "UPDATE": rights.changes == EVERY, "DELETE": rights.deletes}
    return ["SELECT", *(name for name, is_given in privileges.items() if is_given)]


# What PUBLIC may do, everybody may.
_GIVEN = """
WITH own AS (
  SELECT oid, relname, relacl FROM pg_class
   WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p', 'S') AND relname = ANY(%(names)s)),
given AS (
  SELECT relname, '' AS attname, (aclexplode(relacl)).* FROM own
  UNION ALL
  SELECT relname, attname, (aclexplode(attacl)).* FROM own JOIN pg_attribute ON attrelid = own.oid
   WHERE attnum > 0 AND NOT attisdropped)
SELECT CASE grantee WHEN 0 THEN 'public' ELSE rolname END, relname, privilege_type, attname
  FROM (TABLE given UNION ALL
        SELECT proname, '', (aclexplode(coalesce(proacl, acldefault('f', proowner)))).* FROM pg_proc
         WHERE pronamespace = current_schema()::regnamespace AND proname = ANY(%(functions)s)) given
  LEFT JOIN pg_roles r ON r.oid = grantee WHERE grantee = 0 OR rolname = ANY(%(roles)s)
"""
_COLUMNS = """
SELECT relname, array_agg(attname::text) FROM pg_class c JOIN pg_attribute a ON attrelid = c.oid
 WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p') AND relname = ANY(%s)
   AND attnum > 0 AND NOT attisdropped GROUP BY relname
"""
_FUNCTIONS = """
SELECT proname FROM pg_proc WHERE pronamespace = current_schema()::regnamespace AND proname = ANY(%s)
"""
_SEQUENCES = """
SELECT s.relname FROM pg_class s JOIN pg_depend d ON d.objid = s.oid AND d.classid = 'pg_class'::regclass
  JOIN pg_class t ON t.oid = d.refobjid AND d.refclassid = 'pg_class'::regclass
 WHERE s.relkind = 'S' AND d.deptype IN ('a', 'i') AND s.relnamespace = current_schema()::regnamespace
   AND t.relname = ANY(%s)
"""


def difference(cursor: Any) -> Difference:
    """Return how the rights on the tables that this version knows differ from what it wants."""
    cursor.execute(_COLUMNS, [list(TABLES)])
    columns = dict(cursor.fetchall())
    cursor.execute(_SEQUENCES, [list(TABLES)])
    sequences = [name for (name,) in cursor.fetchall()]
    cursor.execute(_FUNCTIONS, [list(FUNCTIONS)])
    functions = [name for (name,) in cursor.fetchall()]
    expected = expected_grants(columns, sequences, functions)
    cursor.execute(
        _GIVEN,
        {"names": [*TABLES, *sequences], "functions": list(FUNCTIONS), "roles": [WEB, WORKER, READ]},
    )
    given = {Grant(*row) for row in cursor.fetchall()}
    return Difference(tuple(sorted(expected - given)), tuple(sorted(given - expected)))


def statements(found: Difference) -> list[str]:
    """Return the SQL that ends the difference.

    >>> statements(Difference((Grant("a", "t", "UPDATE", "x"), Grant("a", "t", "UPDATE", "y")), ()))
    ['GRANT UPDATE ("x", "y") ON "t" TO "a"']
    """
    return [
        *_sql("REVOKE {} ON {} FROM {}", found.unexpected),
        *_sql("GRANT {} ON {} TO {}", found.missing),
    ]


def _sql(form: str, grants: Iterable[Grant]) -> Iterable[str]:
    def whole(grant: Grant) -> tuple[str, str, str, bool]:
        return (grant.role, grant.table, grant.privilege, bool(grant.column))

    for (role, table, privilege, of_columns), same in groupby(sorted(grants, key=whole), whole):
        names = ", ".join(f'"{grant.column}"' for grant in same)
        columns = f" ({names})" if of_columns else ""
        place = f'FUNCTION "{table}"' if table in FUNCTIONS else f'"{table}"'
        yield form.format(f"{privilege}{columns}", place, "PUBLIC" if role == "public" else f'"{role}"')
