"""Images of a collection: stored beside its documents, found by the paths that documents name."""

import hashlib
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from django.db import connection, transaction
from django.db.models.functions import Length

from judging.addresses import image_path
from judging.images import ALLOWANCE, LONGEST_PATH, MOST_SHOWN, Allowance, Picture, ReadImage, read_images
from judging.models import Collection, DocumentImage, Import
from judging.services.imports import Rows, add_file, made_now, rows_of
from judging.services.sources import Progress, add_rows, begin_import, copy_rows, rows_between
from touchstone.models import User, record

INCOMING = "ordinal bigint, name text, path text, sha256 text, media_type text, content bytea"
# Whatever is there already stays; the same file once more is no fault.
TAKEN = """
SELECT i.name FROM incoming_image i JOIN judging_documentimage d ON d.collection_id = %s AND d.path = i.path
 WHERE d.sha256 <> i.sha256 ORDER BY i.ordinal
"""
ADD = """
INSERT INTO judging_documentimage (collection_id, imported_by_id, path, sha256, media_type, content)
SELECT %s, %s, path, sha256, media_type, content FROM incoming_image ORDER BY ordinal ON CONFLICT DO NOTHING
"""
NAMED_IN_THE_EVENT = 20


@dataclass
class StoredImages:
    """How many images an upload added, between which ids they are, and a sentence for each that was left out."""

    n: int = 0
    rows: Rows = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    n_bytes: int = 0
    digest: Any = field(default_factory=hashlib.sha256)


def store_images(
    *,
    collection: Collection,
    images: Iterable[tuple[str, bytes]],
    name: str = "images",
    made: Import | None = None,
    allowance: Allowance = ALLOWANCE,
    progress: Progress | None = None,
    actor: User | None = None,
) -> StoredImages:
    """Add images, each given with its path and its file, which may come one by one; return what became of them.

    `name` is that of the upload, as the import has it. Its SHA-256 there is that of the lines "SHA-256 path" of all.

    An image that cannot be shown is left out and named: the documents around it are still good. So is one whose path
    the collection has with another file.
    """
    stored = StoredImages()
    with transaction.atomic():
        begin_import(collection)
        made = made_now(made, collection=collection, kind="images", actor=actor)
        copy_rows("incoming_image", INCOMING, _rows(images, allowance, stored, progress))
        with connection.cursor() as cursor:
            cursor.execute(TAKEN, [collection.pk])
            stored.faults += [
                f"{name}: the collection has another image there" for (name,) in cursor.fetchall()
            ]
            stored.n, first, last = add_rows(cursor, ADD, [collection.pk, made.pk])
            cursor.execute("DROP TABLE incoming_image")
        stored.rows = rows_of(DocumentImage, first, last)
        facts = {"n_bytes": stored.n_bytes, "sha256": stored.digest.hexdigest()}
        add_file(made, name=name, kind="images", counts={"images": stored.n}, rows=stored.rows, **facts)
        left_out = {"n_left_out": len(stored.faults), "left_out": stored.faults[:NAMED_IN_THE_EVENT]}
        detail = {"file": name, "n_images": stored.n, **facts, **(left_out if stored.faults else {})}
        record(
            "imported images",
            collection,
            actor=actor,
            **detail,
            **{"import": str(made.pk)},
            **rows_between(first, last),
        )
    return stored


def _rows(
    images: Iterable[tuple[str, bytes]], allowance: Allowance, stored: StoredImages, progress: Progress | None
) -> Iterator[tuple[int, str, str, str, str, bytes]]:
    """Yield what is stored; one image is in memory at a time."""
    hashes: list[str] = []
    paths: dict[str, str] = {}

    def hash_images() -> Iterator[tuple[str, bytes]]:
        for name, content in images:
            hashes.append(hashlib.sha256(content).hexdigest())
            stored.n_bytes += len(content)
            stored.digest.update(f"{hashes[-1]} {name}\n".encode("utf-8", "replace"))
            yield name, content

    for index, read in enumerate(read_images(hash_images(), allowance=allowance)):
        path, sha256 = image_path(read.name), hashes.pop()
        if progress and index % 20 == 0:
            progress(index, 0, f"{index:,} images")
        if fault := _fault(read, path, paths):
            stored.faults.append(fault)
        elif read.picture:
            paths[path] = sha256
            yield index, read.name, path, sha256, read.picture.media_type, read.picture.content


def _fault(read: ReadImage, path: str, paths: dict[str, str]) -> str:
    if read.fault:
        return read.fault
    if not path or len(path) > LONGEST_PATH:
        return (
            f"{read.name[:100]}: the path leads above the upload, or has more than {LONGEST_PATH} characters"
        )
    return f"{read.name}: the upload has two images there" if path in paths else ""


# -- shown ----------------------------------------------------------------------------------------------------


def pictures_of(collection_id: uuid.UUID, paths: Sequence[str]) -> dict[str, Picture | None]:
    """Return by path the pictures of a document that shows these, in this order; None for those beyond its share.

    A path that stands twice is shown twice, and counts so.
    """
    if not paths:
        return {}
    there = DocumentImage.objects.filter(collection_id=collection_id)
    sizes = dict(there.filter(path__in=set(paths)).values_list("path", Length("content")))
    left, wanted = MOST_SHOWN, []
    for path, count in Counter(path for path in paths if path in sizes).items():
        if sizes[path] * count <= left:
            left -= sizes[path] * count
            wanted.append(path)
    found = there.filter(path__in=wanted).values_list("path", "media_type", "content")
    pictures: dict[str, Picture | None] = dict.fromkeys(sizes)
    return pictures | {path: Picture(media_type, bytes(content)) for path, media_type, content in found}
