"""Facts are kept whoever asks: no TRUNCATE, and no session that plays a replica, as a superuser's may, passes by.

Documents, topics, gold answers, scales and lists of scores join the tables that are only added to.
"""

from typing import Any

from django.db import migrations

# Nobody changed them so far either, but nothing said so.
NEWLY_KEPT = [
    "judging_document",
    "judging_goldanswer",
    "judging_grade",
    "judging_scale",
    "judging_scorelist",
    "judging_topic",
]
KEPT = [
    "judging_adjudication",
    "judging_judgment",
    "judging_lease",
    "judging_machinecall",
    "judging_traininganswer",
    "judging_traininggrant",
    *NEWLY_KEPT,
]
# What guards rows of which a part is a fact.
OTHERS = {
    "judging_campaign": "judging_campaign_keep_k",
    "judging_slot": "judging_slot_done",
    "judging_trainingitem": "judging_trainingitem_check",
}


def _forward() -> list[Any]:
    found = [
        f"CREATE OR REPLACE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE ON {table}"
        " FOR EACH ROW EXECUTE FUNCTION touchstone_refuse_change()"
        for table in NEWLY_KEPT
    ]
    for table in KEPT:
        found += [
            f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_append_only",
            f"CREATE OR REPLACE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table}"
            " FOR EACH STATEMENT EXECUTE FUNCTION touchstone_refuse_change()",
            f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_no_truncate",
        ]
    return found + [f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {name}" for table, name in OTHERS.items()]


def _back() -> list[Any]:
    found = [f"ALTER TABLE {table} ENABLE TRIGGER {name}" for table, name in OTHERS.items()]
    for table in KEPT:
        found += [
            f"DROP TRIGGER IF EXISTS {table}_no_truncate ON {table}",
            f"DROP TRIGGER IF EXISTS {table}_append_only ON {table}"
            if table in NEWLY_KEPT
            else f"ALTER TABLE {table} ENABLE TRIGGER {table}_append_only",
        ]
    return found


class Migration(migrations.Migration):
    atomic = False  # each statement by itself: nobody waits for more than one table

    dependencies = [
        ("judging", "0017_check_grades_are_checked"),
        ("touchstone", "0004_kept_by_every_session"),
    ]
    operations = [migrations.RunSQL(_forward(), _back())]
