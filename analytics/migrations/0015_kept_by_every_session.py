"""Results and releases are kept whoever asks: no TRUNCATE, and no session that plays a replica passes by."""

from typing import Any

from django.db import migrations

KEPT = [
    "analytics_assessorscreening",
    "analytics_auditforecast",
    "analytics_comparisonfamily",
    "analytics_computation",
    "analytics_confusionestimate",
    "analytics_disputeditem",
    "analytics_estimate",
    "analytics_flag",
    "analytics_judgingconditions",
    "analytics_screening",
    "analytics_shareestimate",
]
# Of a release, what is ready is kept.
RELEASE = "ALTER TABLE analytics_release ENABLE {} TRIGGER analytics_release_kept"


def _without_truncate(table: str) -> list[str]:
    return [
        f"CREATE OR REPLACE TRIGGER {table}_no_truncate BEFORE TRUNCATE ON {table}"
        " FOR EACH STATEMENT EXECUTE FUNCTION touchstone_refuse_change()",
        f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_no_truncate",
    ]


def _forward() -> list[Any]:
    found = [RELEASE.format("ALWAYS"), *_without_truncate("analytics_release")]
    for table in KEPT:
        found += [
            f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {table}_append_only",
            *_without_truncate(table),
        ]
    return found


def _back() -> list[Any]:
    found = [RELEASE.format(""), "DROP TRIGGER IF EXISTS analytics_release_no_truncate ON analytics_release"]
    for table in KEPT:
        found += [
            f"DROP TRIGGER IF EXISTS {table}_no_truncate ON {table}",
            f"ALTER TABLE {table} ENABLE TRIGGER {table}_append_only",
        ]
    return found


class Migration(migrations.Migration):
    atomic = False  # each statement by itself: nobody waits for more than one table

    dependencies = [
        ("analytics", "0014_parts_of_audit_forecasts_are_checked"),
        ("touchstone", "0004_kept_by_every_session"),
    ]
    operations = [migrations.RunSQL(_forward(), _back())]
