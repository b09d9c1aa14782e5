"""Refuse a new migration that would stop the site: squawk reads its SQL, django-migration-linter what old code needs.

    python .ci/migrations.py

New is what `tests/touchstone/released_migrations.txt` does not list: released ones are never changed. What is refused
takes two releases (docs/upgrading.md), or, where it is safe for a reason that the tools cannot know, a line in SAFE.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPOSITORY / "platform"), str(REPOSITORY)]

RELEASED = REPOSITORY / "tests" / "touchstone" / "released_migrations.txt"
APPS = {
    "judging": "judging",
    "sampling": "sampling",
    "analytics": "analytics",
    "touchstone": "platform/touchstone",
}
# Rules that go against what Django writes, or that prepare sees to: it sets lock_timeout itself.
NOT_OURS = (
    "prefer-text-field",
    "prefer-bigint-over-int",
    "prefer-bigint-over-smallint",
    "prefer-identity",
    "prefer-robust-stmts",
    "prefer-timestamptz",
    "require-timeout-settings",
    "identifier-too-long",
)
# "app name: rule" -> why it is safe here.
SAFE: dict[str, str] = {
    "judging 0044_verdicts: ban-drop-not-null": (
        "no older process writes a word without a grade, and where one reads such a row it is a job, which begins anew"
    ),
    "judging 0034_imports: adding-foreign-key-constraint": (
        "the columns are new and empty, so PostgreSQL skips the scan, and the table that they refer to is new too"
    ),
    "judging 0038_deleted_names_are_free: ban-drop-constraint": (
        "a narrower rule stands before the old one goes, and old code knows both refusals as a name that is taken"
    ),
    "judging 0038_deleted_names_are_free: old code fails after it": "as above: it only refuses fewer names",
    "judging 0042_tags_of_runs_set_aside_are_free: ban-drop-constraint": (
        "a narrower rule stands before the old one goes, and old code looks for taken tags itself"
    ),
    "judging 0042_tags_of_runs_set_aside_are_free: old code fails after it": "as above: it only refuses fewer tags",
    "judging 0039_questions: adding-foreign-key-constraint": (
        "the columns are new and empty, so PostgreSQL skips the scan; items are locked for a moment"
    ),
    "touchstone 0016_letters: ban-drop-constraint": (
        "a rule that allows one lane more takes its place in the same transaction"
    ),
    "judging 0041_what_is_set_aside: ban-drop-not-null": (
        "only new code withdraws gold; a job of an old worker that then fails is done again by a new one"
    ),
}


def new_migrations() -> list[tuple[str, str]]:
    """Return app and name of every migration that no release has."""
    released = {line.split("  ")[1] for line in RELEASED.read_text().splitlines()}
    found = []
    for app, folder in APPS.items():
        for path in sorted((REPOSITORY / folder / "migrations").glob("0*.py")):
            if path.relative_to(REPOSITORY).as_posix() not in released:
                found.append((app, path.stem))
    return found


def faults_of_sql(sql: str, name: str, *, in_transaction: bool = True) -> list[str]:
    """Return what squawk says against the SQL of a migration."""
    options = [
        f"--exclude={','.join(NOT_OURS)}",
        "--reporter=gcc",
        "--pg-version=16",
        f"--stdin-filepath={name}",
    ]
    options += ["--assume-in-transaction"] if in_transaction else []
    squawk = Path(sys.executable).with_name("squawk")
    result = subprocess.run([squawk, *options], input=sql, capture_output=True, text=True)
    if result.returncode not in (0, 1):
        raise RuntimeError(f"squawk failed: {result.stderr}")
    return [
        line
        for line in result.stdout.splitlines()
        if not any(f"{name}: {rule}" in SAFE for rule in line.split())
    ]


def faults_for_old_code(app: str, name: str) -> list[str]:
    """Return what django-migration-linter says: old processes go on while the migration runs, and after it."""
    from django_migration_linter import MigrationLinter

    linter = MigrationLinter(
        path=str(REPOSITORY), no_cache=True, no_output=True, include_name=[name], include_apps=[app]
    )
    linter.lint_all_migrations(app_label=app)
    fault = f"{app} {name}: old code fails after it"
    return [fault] if linter.has_errors and fault not in SAFE else []


def check() -> list[str]:
    """Return what is wrong with every new migration."""
    import django

    django.setup()
    from django.db import connection
    from django.db.migrations.loader import MigrationLoader

    loader = MigrationLoader(connection, replace_migrations=False)
    found = []
    for app, name in new_migrations():
        migration = loader.disk_migrations[(app, name)]
        sql = "\n".join(loader.collect_sql([(migration, False)]))
        found += faults_of_sql(sql, f"{app} {name}", in_transaction=migration.atomic)
        found += faults_for_old_code(app, name)
    return found


def main() -> int:
    if not new_migrations():
        return 0
    from touchstone import embedded

    with tempfile.TemporaryDirectory() as folder:
        servers = embedded.Servers(Path(folder) / "servers")
        try:
            servers.start()
            os.environ.update(
                DATABASE_URL=servers.database_url, REDIS_URL=servers.redis_url, SECRET_KEY=folder
            )
            os.environ.update(DJANGO_SETTINGS_MODULE="touchstone.settings", TOUCHSTONE_VAR=folder)
            faults = check()
        finally:
            servers.stop()
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
