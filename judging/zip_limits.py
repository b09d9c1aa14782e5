"""What a zip may cost: it is refused before anything of it is unpacked."""

import zipfile
import zlib
from typing import IO

from judging.textfiles import Limits, TrecFormatError

MOST_MEMBERS = 10_000
DAMAGED = (zipfile.BadZipFile, NotImplementedError, OSError, EOFError, ValueError, zlib.error, RuntimeError)
ENCRYPTED = 0x1
METHODS = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
LIMITS = Limits()


def checked_zip(stream: IO[bytes], name: str, limits: Limits = LIMITS) -> zipfile.ZipFile:
    """Return the zip; TrecFormatError for one that is damaged, encrypted, of too many members, or a bomb.

    What a member expands to is at most what the directory says: `zipfile` reads no more of it.
    """
    try:
        archive = zipfile.ZipFile(stream)
        n_bytes = stream.seek(0, 2)
    except DAMAGED as error:
        raise TrecFormatError(name, 1, 1, f"a damaged zip ({error})") from None
    members = archive.infolist()
    total = sum(member.file_size for member in members)
    reason = ""
    if len(members) > MOST_MEMBERS:
        reason = f"{len(members):,} files in the zip: at most {MOST_MEMBERS:,}; send several zips"
    elif total > limits.ratio_from and total > limits.max_ratio * n_bytes:
        reason = f"a zip bomb: it expands to more than {limits.max_ratio} times its size"
    elif total > limits.max_bytes:
        reason = f"larger than the limit of {limits.max_bytes} uncompressed bytes"
    else:
        for member in members:
            if member.flag_bits & ENCRYPTED:
                reason = f"{member.filename[:200]} is encrypted; make a zip without a password"
            elif member.compress_type not in METHODS:
                reason = (
                    f"{member.filename[:200]} is compressed by a method other than deflate; make a usual zip"
                )
    if reason:
        raise TrecFormatError(name, 1, 1, reason)
    return archive
