"""What a file is, by its first bytes: text, gzip, zip, spreadsheet, image, or something that nobody reads here."""

import struct
import zlib
from dataclasses import dataclass

from judging.textfiles import GZIP_MAGIC


@dataclass(frozen=True)
class Foreign:
    """A kind of file that is not read: its name, and what to do instead."""

    key: str
    magic: bytes
    offset: int
    name: str
    advice: str


UNPACK = "unpack it, and upload what is in it, or a zip of it"
AS_TABLE = "save it as CSV or JSON lines"
FOREIGN = (
    Foreign("pdf", b"%PDF-", 0, "a PDF", "extract its text, and upload that as text, HTML or JSON lines"),
    Foreign("postscript", b"%!PS", 0, "PostScript", "extract its text, and upload that"),
    Foreign("rtf", b"{\\rtf", 0, "Rich Text", "save it as HTML or text"),
    Foreign("xls", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", 0, "an old Office file, or one with a password",
            "save a sheet as xlsx or CSV without a password, a text as HTML"),
    Foreign("parquet", b"PAR1", 0, "a Parquet file", AS_TABLE),
    Foreign("arrow", b"ARROW1", 0, "an Arrow file", AS_TABLE),
    Foreign("avro", b"Obj\x01", 0, "an Avro file", AS_TABLE),
    Foreign("sqlite", b"SQLite format 3\0", 0, "an SQLite database", AS_TABLE),
    Foreign("hdf5", b"\x89HDF\r\n", 0, "an HDF5 file", AS_TABLE),
    Foreign("numpy", b"\x93NUMPY", 0, "a NumPy array", AS_TABLE),
    Foreign("zstd", b"\x28\xb5\x2f\xfd", 0, "a zstd file", UNPACK),
    Foreign("xz", b"\xfd7zXZ\0", 0, "an xz file", UNPACK),
    Foreign("bzip2", b"BZh", 0, "a bzip2 file", UNPACK),
    Foreign("lz4", b"\x04\x22\x4d\x18", 0, "an lz4 file", UNPACK),
    Foreign("7z", b"7z\xbc\xaf\x27\x1c", 0, "a 7z archive", UNPACK),
    Foreign("rar", b"Rar!\x1a\x07", 0, "a rar archive", UNPACK),
    Foreign("tar", b"ustar", 257, "a tar archive", UNPACK),
    Foreign("tiff", b"II*\0", 0, "a TIFF image", "save it as PNG or JPEG"),
    Foreign("tiff", b"MM\0*", 0, "a TIFF image", "save it as PNG or JPEG"),
    Foreign("program", b"\x7fELF", 0, "a program", "upload texts"),
)  # fmt: skip
IMAGES = (("png", b"\x89PNG\r\n\x1a\n"), ("jpeg", b"\xff\xd8\xff"), ("gif", b"GIF87a"), ("gif", b"GIF89a"))
ZIP_STARTS = (b"PK\x03\x04", b"PK\x05\x06")
# Zips with a meaning: a member whose name begins so, or says it as its content.
OFFICE = (
    ("xlsx", b"xl/"), ("docx", b"word/"), ("pptx", b"ppt/"),
    ("ods", b"mimetypeapplication/vnd.oasis.opendocument.spreadsheet"),
    ("odt", b"mimetypeapplication/vnd.oasis.opendocument"), ("epub", b"mimetypeapplication/epub"),
)  # fmt: skip
OFFICE_ADVICE = {
    "docx": ("a Word document", "save it as HTML or text"),
    "pptx": ("a presentation", "extract its text, and upload that"),
    "ods": ("an OpenDocument spreadsheet", "save the sheet as xlsx or CSV"),
    "odt": ("an OpenDocument text", "save it as HTML or text"),
    "epub": ("an e-book", "unpack it, and upload its HTML pages in a zip"),
}
MOST_UNPACKED = 1 << 18


def image_format(head: bytes) -> str:
    """Return png, jpeg, gif or webp, or ``""``."""
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "webp"
    return next((key for key, magic in IMAGES if head.startswith(magic)), "")


def foreign_kind(head: bytes) -> Foreign | None:
    """Return what it is, if it is something that is not read."""
    return next((one for one in FOREIGN if head[one.offset :].startswith(one.magic)), None)


def zip_kind(name: str, head: bytes) -> str:
    """Return what the zip is: a key of `OFFICE`, or zip."""
    starts = []
    place = head.find(ZIP_STARTS[0])
    while place >= 0 and place + 30 <= len(head):
        n_name, n_extra = struct.unpack_from("<HH", head, place + 26)
        starts.append(head[place + 30 : place + 30 + n_name + n_extra + 60])
        place = head.find(ZIP_STARTS[0], place + 30)
    for key, magic in OFFICE:
        if any(start.startswith(magic) for start in starts):
            return key
    if any(start.startswith(b"[Content_Types].xml") for start in starts):
        ending = name.lower().rpartition(".")[2]
        return {"xlsm": "xlsx", "docm": "docx"}.get(
            ending, ending if ending in ("xlsx", "docx", "pptx") else "zip"
        )
    return "zip"


def gunzip_head(head: bytes) -> tuple[bytes, bool] | None:
    """Return the beginning of what is in the gzip and whether it is all of it; None if it is damaged from the start."""
    engine = zlib.decompressobj(wbits=31)
    try:
        data = engine.decompress(head, MOST_UNPACKED)
    except zlib.error:
        return None
    return data, engine.eof and not engine.unused_data.startswith(GZIP_MAGIC)
