"""Files on S3: one bucket for all machines. Django's storage of django-storages, with one fault for all of S3's.

Every object carries the SHA-256 of its bytes, which `touchstone.files.local` checks. An object is there as a whole or
not at all: of an upload that was cut off nothing can be read.
"""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from boto3.exceptions import Boto3Error
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError
from django.core.files import File
from storages.backends.s3 import S3Storage

from touchstone.files import BLOCK, Entry, FilesUnavailable

NOTED = "sha256"  # in the metadata of an object
GONE = {"404", "NoSuchKey"}
Result = TypeVar("Result")


@contextmanager
def _one_fault() -> Iterator[None]:
    """Raise FileNotFoundError for what is not there, and FilesUnavailable for all other faults of S3's."""
    try:
        yield
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") in GONE:
            raise FileNotFoundError("there is no such object") from error
        raise FilesUnavailable from error
    except (
        BotoCoreError,
        Boto3Error,
        ResponseParserError,
        KeyError,
    ) as error:  # the last two: an answer cut off
        raise FilesUnavailable from error


def _with_one_fault(method: Callable[..., Result]) -> Callable[..., Result]:
    @wraps(method)
    def call(*arguments: Any, **named: Any) -> Result:
        with _one_fault():
            return method(*arguments, **named)

    return call


class S3(S3Storage):  # type: ignore[misc]  # the library has no types
    """Files as objects of a bucket, below `location`. Address and keys: as AWS's own tools find them."""

    _save = _with_one_fault(S3Storage._save)
    delete = _with_one_fault(S3Storage.delete)
    exists = _with_one_fault(S3Storage.exists)
    listdir = _with_one_fault(S3Storage.listdir)
    size = _with_one_fault(S3Storage.size)
    get_modified_time = _with_one_fault(S3Storage.get_modified_time)

    def get_default_settings(self) -> dict[str, Any]:
        return {
            **super().get_default_settings(),
            "client_config": Config(
                connect_timeout=5, read_timeout=30, retries={"mode": "standard", "total_max_attempts": 3}
            ),
            # At most 4 parts of 8 MB are in memory.
            "transfer_config": TransferConfig(max_concurrency=4),
            "max_memory_size": 2**20,
        }

    def _get_write_parameters(self, name: str, content: "File[Any]") -> dict[str, Any]:
        found = hashlib.sha256()
        for part in content.chunks(BLOCK):
            found.update(part)
        parameters: dict[str, Any] = super()._get_write_parameters(name, content)
        return {**parameters, "Metadata": {NOTED: found.hexdigest()}}

    def fetch(self, name: str, target: BinaryIO) -> str:
        """Write an object into a file; return the SHA-256 that was noted when it was stored, or nothing."""
        with closing(self.stream(name)) as source:
            while part := source.read(BLOCK):
                target.write(part)
            return source.sha256

    def stream(self, name: str, first: int = 0) -> "Body":
        """Return the bytes of an object from `first` on, as they come."""
        with _one_fault():
            return Body(self._object(name).get(**({"Range": f"bytes={first}-"} if first else {})))

    def entries(self, folder: str = "") -> Iterator[Entry]:
        """Yield what is there, of one folder or of all."""
        start = f"{self.location.strip('/')}/" if self.location else ""
        with _one_fault():
            for one in self.bucket.objects.filter(Prefix=f"{start}{folder}/" if folder else start):
                changed: datetime = one.last_modified
                yield Entry(one.key.removeprefix(start), one.size, changed)

    def put(self, name: str, path: Path) -> None:
        """Store a file under this very name."""
        with path.open("rb") as file:
            self._save(name, File(file))

    def _object(self, name: str) -> Any:
        return self.bucket.Object(self._normalize_name(name))


class Body:
    """The bytes of an object, as they come; `sha256` is what was noted when it was stored, or nothing."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self._stream = answer["Body"]
        self.sha256 = str(answer["Metadata"].get(NOTED, ""))

    def read(self, size: int = -1) -> bytes:
        with _one_fault():
            return bytes(self._stream.read(None if size < 0 else size))

    def close(self) -> None:
        self._stream.close()
