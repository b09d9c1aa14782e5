"""`make lint` refuses a migration that would stop people who judge, or processes of the version before."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
PLANTED = """
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("judging", "{last}")]
    operations = [{operation}]
"""
UNSAFE = {
    "a column that old code does not fill": (
        'migrations.AddField("topic", "colour", models.CharField(max_length=5, default="red"))',
        "ban-drop-default",
    ),
    "a column that old code reads": ('migrations.RemoveField("document", "title")', "ban-drop-column"),
    "an index that stops judging while it is made": (
        'migrations.AddIndex("judgment", models.Index(fields=["grade"], name="planted"))',
        "require-concurrent-index-creation",
    ),
}
PLACE = "0999_planted"
SAFE = (
    'migrations.AddField("topic", "colour", models.CharField(max_length=5, default="red", db_default="red"))'
)


@pytest.fixture
def checkout(tmp_path):
    """A copy of what the check reads."""
    for name in ("judging", "sampling", "analytics", "platform", ".ci", "tests/touchstone"):
        shutil.copytree(REPOSITORY / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def lint(checkout, operation):
    folder = checkout / "judging" / "migrations"
    last = max(path.stem for path in folder.glob("0*.py") if path.stem != PLACE)
    (folder / f"{PLACE}.py").write_text(PLANTED.format(last=last, operation=operation))
    program = [sys.executable, str(checkout / ".ci" / "migrations.py")]
    return subprocess.run(program, cwd=checkout, capture_output=True, text=True, timeout=120)


@pytest.mark.slow
@pytest.mark.django_db
def test_unsafe_migrations_are_refused_by_name_and_a_safe_one_is_not(checkout):
    operations = ", ".join(operation for operation, _ in UNSAFE.values())
    refused = lint(checkout, operations)
    assert refused.returncode == 1
    for rule in [rule for _, rule in UNSAFE.values()]:
        assert rule in refused.stdout
    assert "judging 0999_planted: old code fails after it" in refused.stdout
    passed = lint(checkout, SAFE)
    assert (passed.returncode, passed.stdout) == (0, ""), passed.stdout + passed.stderr


def test_each_exception_names_a_migration_that_is_there():
    spec = importlib.util.spec_from_file_location("migrations_check", REPOSITORY / ".ci" / "migrations.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    names = {f"{app} {name}" for app, name in module.new_migrations()}
    assert [key for key in module.SAFE if key.rpartition(":")[0] not in names] == []
