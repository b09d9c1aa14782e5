"""Stored runs and scores become Parquet files in their place. A file that is missing is left to whoever restores it."""

import os
import shutil
from pathlib import Path
from typing import Any

from django.core.files.storage import default_storage
from django.db import migrations

from judging.rankings_format_1 import MAGIC, as_parquet


def convert_files(apps: Any, schema_editor: Any) -> None:
    for model, field in (("Run", "rankings"), ("ScoreList", "scores")):
        names = apps.get_model("judging", model).objects.values_list(field, flat=True)
        for name in names.iterator():
            path = Path(default_storage.path(name))
            if path.is_file():
                convert_file(path)


def convert_file(path: Path) -> None:
    """Make Parquet of a file of format 1, whole or not at all; any other file stays as it is."""
    data = path.read_bytes()
    if not data.startswith(MAGIC):
        return
    draft = path.with_name(f"{path.name}.parquet")
    try:
        with draft.open("wb") as stream:
            stream.write(as_parquet(data))
            stream.flush()
            os.fsync(stream.fileno())
        shutil.copymode(path, draft)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


class Migration(migrations.Migration):
    dependencies = [("judging", "0003_training_is_kept")]
    operations = [migrations.RunPython(convert_files, migrations.RunPython.noop)]
