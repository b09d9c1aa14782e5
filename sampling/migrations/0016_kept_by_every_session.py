"""Draws, audits and looks are kept whoever asks: no TRUNCATE, and no session that plays a replica passes by."""

from typing import Any

from django.db import migrations

KEPT = [
    "sampling_audit",
    "sampling_auditentry",
    "sampling_draw",
    "sampling_drawentry",
    "sampling_judginglook",
    "sampling_topiccheck",
    "sampling_topiccheckplan",
    "sampling_topicfinding",
]
LOOKS = "ALTER TABLE sampling_auditschedule ENABLE {} TRIGGER sampling_auditschedule_looks_stay"


def _forward() -> list[Any]:
    found = [LOOKS.format("ALWAYS")]
    for table in KEPT:
        found += [
            f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_append_only",
            f"CREATE OR REPLACE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table}"
            " FOR EACH STATEMENT EXECUTE FUNCTION touchstone_refuse_change()",
            f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_no_truncate",
        ]
    return found


def _back() -> list[Any]:
    found = [LOOKS.format("")]
    for table in KEPT:
        found += [
            f"DROP TRIGGER IF EXISTS {table}_no_truncate ON {table}",
            f"ALTER TABLE {table} ENABLE TRIGGER {table}_append_only",
        ]
    return found


class Migration(migrations.Migration):
    atomic = False  # each statement by itself: nobody waits for more than one table

    dependencies = [("sampling", "0015_census_is_checked"), ("touchstone", "0004_kept_by_every_session")]
    operations = [migrations.RunSQL(_forward(), _back())]
