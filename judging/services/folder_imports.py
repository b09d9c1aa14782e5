"""Folders and archives on this machine, looked at and kept as uploads are: for commands and the demo."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZIP_STORED, ZipFile

from django.db import transaction

from judging.import_choices import KINDS, LEFT_OUT
from judging.models import Collection, Import
from judging.recognise import HEAD_BYTES, recognise
from judging.services.errors import ImportRefused
from judging.services.keeping import keep
from judging.services.looking import look, look_without_database
from judging.services.sources import Progress
from judging.services.upload_parts import IMAGES, PAGE, StoredUpload
from touchstone.models import User

# Files that describe a folder and are none of a collection's, by the beginning of their names.
ABOUT = re.compile(r"(readme|licen[cs]e|notice|copying|changelog)\b", re.IGNORECASE)
SETTING = re.compile(r"(?P<file>.+?):(?P<option>[a-z][a-z-]*)=(?P<value>.*)", re.DOTALL)
FLAGS = {"yes": True, "true": True, "no": False, "false": False}
Choices = dict[str, dict[str, Any]]


@contextmanager
def uploads_of(path: Path) -> Iterator[list[StoredUpload]]:
    """Yield the files of a folder, or the one file, as uploads. Web pages and images of a folder are one archive."""
    if path.is_file():
        yield [StoredUpload("", path.name, path)]
        return
    if not path.is_dir():
        raise ImportRefused(f"{path} is neither a folder nor a file")
    files = [
        one for one in sorted(path.rglob("*")) if one.is_file() and not _is_hidden(one.relative_to(path))
    ]
    together = [one for one in files if _belongs_together(one)]
    with TemporaryDirectory(prefix="folder-") as folder:
        alone = [one for one in files if one not in set(together)]
        found = [StoredUpload("", str(one.relative_to(path)), one) for one in alone]
        if together:
            archive = Path(folder) / path.name
            with ZipFile(archive, "w", ZIP_STORED) as target:
                for one in together:
                    target.write(one, one.relative_to(path))
            found.append(StoredUpload("", path.name, archive))
        if not found:
            raise ImportRefused(f"{path} has no files")
        yield found


def _is_hidden(path: Path) -> bool:
    return any(part.startswith((".", "__MACOSX")) for part in path.parts)


def _belongs_together(path: Path) -> bool:
    if ABOUT.match(path.name):
        return False
    with path.open("rb") as stream:
        seen = recognise(path.name, stream.read(HEAD_BYTES))
    return seen.kind == IMAGES or seen.file_format == PAGE


def parse_settings(settings: Iterable[str]) -> Choices:
    """Return the choices of `FILE:kind=documents`, `FILE:grade-map=-2=0`, by file.

    A mapping is written `FILE:mapping=id=qid,title=query+words`.
    """
    choices: Choices = {}
    for text in settings:
        found = SETTING.fullmatch(text)
        if found is None:
            raise ImportRefused(f"a setting is like 'topics.csv:kind=topics', not {text!r}")
        option, value = found["option"].replace("-", "_"), found["value"]
        known = {"kind", *(name for names in KINDS.values() for name in names)}
        if option not in known:
            raise ImportRefused(f"{found['file']} has no option {found['option']}")
        choices.setdefault(found["file"], {})[option] = _value(option, value)
    return choices


def _value(option: str, value: str) -> Any:
    if option == "mapping":
        pairs = [part.partition("=") for part in value.split(",")]
        return {name: columns.split("+") for name, _, columns in pairs}
    return FLAGS.get(value, value) if option not in ("grade_map", "source_name", "list_name") else value


def about_left_out(uploads: Sequence[StoredUpload]) -> Choices:
    """Return the choice to leave out what describes the folder."""
    return {one.name: {"kind": LEFT_OUT} for one in uploads if ABOUT.match(Path(one.name).name)}


def look_at_folder(path: Path, choices: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the cards of a folder or archive that would begin a new collection; no database is asked."""
    with uploads_of(path) as uploads:
        return look_without_database(uploads, {**about_left_out(uploads), **choices})


def keep_folder(
    *,
    collection: Collection,
    path: Path,
    choices: Mapping[str, Mapping[str, Any]],
    actor: User | None = None,
    progress: Progress | None = None,
) -> Import:
    """Look at a folder or archive and import all of it, or raise ImportRefused with what stands in the way."""
    with transaction.atomic(), uploads_of(path) as uploads:
        made = looked_at(collection, uploads, choices, actor, progress)
        faults = [words for card in made.report["files"] for words in card["faults"]]
        if found := [*faults, *made.report["obstacles"]]:
            raise ImportRefused("\n".join(found))
        return keep(made, actor=actor, progress=progress, uploads=uploads)


def looked_at(
    collection: Collection,
    uploads: Sequence[StoredUpload],
    choices: Mapping[str, Mapping[str, Any]],
    actor: User | None,
    progress: Progress | None,
) -> Import:
    """Return an import that holds what a look at these files found; the caller's transaction keeps or forgets it."""
    wanted = {**about_left_out(uploads), **choices}
    entries = [{"name": name, "path": "", "options": dict(chosen)} for name, chosen in wanted.items()]
    made = Import.objects.create(collection=collection, files=entries, user=actor)
    look(made, progress, uploads=uploads)
    made.refresh_from_db()
    unknown = set(choices) - {entry["name"] for entry in made.files}
    if unknown:
        raise ImportRefused(f"there is no file {', '.join(sorted(unknown))}")
    return made
