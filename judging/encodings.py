"""Texts that are not UTF-8: the encodings that are read."""

import codecs
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

# What a person may choose from, in Python's spelling. No codec is among them that runs, unpacks or escapes anything.
ENCODINGS = {
    "utf-8": "UTF-8",
    "cp1252": "Western European (Windows-1252)",
    "utf-16-le": "UTF-16, little-endian",
    "utf-16-be": "UTF-16, big-endian",
    "cp1250": "Central European (Windows-1250)",
    "cp1251": "Cyrillic (Windows-1251)",
    "cp1253": "Greek (Windows-1253)",
    "cp1254": "Turkish (Windows-1254)",
    "cp1255": "Hebrew (Windows-1255)",
    "cp1256": "Arabic (Windows-1256)",
    "cp1257": "Baltic (Windows-1257)",
    "cp1258": "Vietnamese (Windows-1258)",
    "iso8859-1": "Western European (ISO 8859-1)",
    "iso8859-2": "Central European (ISO 8859-2)",
    "iso8859-5": "Cyrillic (ISO 8859-5)",
    "iso8859-7": "Greek (ISO 8859-7)",
    "iso8859-9": "Turkish (ISO 8859-9)",
    "iso8859-15": "Western European (ISO 8859-15)",
    "koi8-r": "Russian (KOI8-R)",
    "koi8-u": "Ukrainian (KOI8-U)",
    "mac-roman": "Western European (Mac)",
    "cp437": "DOS (437)",
    "cp850": "DOS, Western European (850)",
    "cp866": "DOS, Cyrillic (866)",
    "shift_jis": "Japanese (Shift JIS)",
    "cp932": "Japanese (Windows-932)",
    "euc_jp": "Japanese (EUC)",
    "gb18030": "Chinese, simplified (GB 18030)",
    "big5": "Chinese, traditional (Big5)",
    "cp949": "Korean (Windows-949)",
    "euc_kr": "Korean (EUC)",
    "utf-32-le": "UTF-32, little-endian",
    "utf-32-be": "UTF-32, big-endian",
}
SYNONYMS = {"utf-8-sig": "utf-8", "utf-16": "utf-16-le", "utf-32": "utf-32-le", "gbk": "gb18030", "gb2312": "gb18030",
            "ascii": "utf-8"}  # fmt: skip
MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
SAMPLE_BYTES = 8_000  # of lines with other bytes than ASCII: the search takes longer than reading
LINE_BYTES = 2_000
BROKEN = "\udcff"  # stands for bytes that the encoding does not have: no UTF-8, so that its line is named
codecs.register_error("broken", lambda error: (BROKEN, getattr(error, "end")))  # noqa: B009


def encoding_key(name: str) -> str:
    """Return the key in `ENCODINGS` of an encoding, however it is spelled; ValueError if it is not among them.

    >>> encoding_key("Windows-1252"), encoding_key("latin1")
    ('cp1252', 'iso8859-1')
    """
    try:
        found = codecs.lookup(name[:40]).name
    except (LookupError, ValueError):
        found = ""
    found = SYNONYMS.get(found, found)
    if found not in ENCODINGS:
        raise ValueError(f"encoding must be one of {', '.join(ENCODINGS)}, not {name[:40]!r}")
    return found


def in_utf8(blocks: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    """Return the blocks in UTF-8; what the encoding does not have stays invalid, for the reader of lines to name."""
    decoder = codecs.getincrementaldecoder(encoding)("broken")
    is_first = True
    for block in blocks:
        text = decoder.decode(block)
        if is_first and text:
            text, is_first = text.removeprefix("\ufeff"), False
        yield text.encode("utf-8", "surrogatepass")
    yield decoder.decode(b"", final=True).encode("utf-8", "surrogatepass")


def marked_encoding(data: bytes) -> str:
    """Return the encoding that a byte order mark names, or ``""``."""
    return next((encoding for mark, encoding in MARKS if data.startswith(mark)), "")


def is_utf8(data: bytes) -> bool:
    """Return whether the beginning of a file is UTF-8; its last character may be cut off, if it is not the only one.

    >>> is_utf8("caf\\u00e9, caf\\u00e9".encode()[:-1]), is_utf8("caf\\u00e9".encode("cp1252"))
    (True, False)
    """
    try:
        codecs.utf_8_decode(data, "strict", True)
    except UnicodeDecodeError as error:
        is_cut = error.reason == "unexpected end of data" and error.end == len(data)
        return is_cut and (len(data) > SAMPLE_BYTES or not data[: error.start].isascii())
    return True


def decoded_text(data: bytes, encoding: str) -> str | None:
    """Return the text, whose last character may be cut off; None where the encoding does not have some bytes."""
    try:
        return codecs.getincrementaldecoder(encoding)("strict").decode(data).removeprefix("\ufeff")
    except UnicodeDecodeError:
        return None


CONTROLS = re.compile("[\0-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\ufffe\uffff]")


def is_text(text: str | None) -> bool:
    """Return whether there is a text, and no control characters in it."""
    return bool(text) and text is not None and not CONTROLS.search(text)


def two_byte_encoding(data: bytes) -> str:
    """Return in which order of bytes the text is UTF-16 without a mark, or ``""``.

    Its line ends and blanks have a zero byte in one half; as text of one byte a character they would be controls.
    """
    if len(data) < 4:
        return ""
    even, odd = data[: len(data) & ~1 : 2], data[1::2]
    zeros = {"utf-16-be": even.count(0), "utf-16-le": odd.count(0)}
    likely = max(zeros, key=lambda one: zeros[one])
    other = min(zeros.values())
    if zeros[likely] < max(1, len(even) / 500) or other * 10 > zeros[likely]:
        return ""
    return likely if is_text(decoded_text(data[: len(data) & ~1], likely)) else ""


@dataclass(frozen=True)
class DifferingLine:
    """A line, counted from 1, and its text in each encoding; "" where the encoding does not have its bytes."""

    number: int
    texts: tuple[str, ...]


def differing_lines(head: bytes, encodings: Sequence[str], most: int = 5) -> list[DifferingLine]:
    """Return the first lines that are not alike in all of the encodings.

    >>> differing_lines(b"plain\\ncaf\\xe9", ["cp1252", "cp1251"])
    [DifferingLine(number=2, texts=('caf\xe9', 'caf\u0439'))]
    """
    columns = [
        codecs.getincrementaldecoder(one)("replace").decode(head).removeprefix("\ufeff").split("\n")
        for one in encodings
    ]
    found: list[DifferingLine] = []
    for number in range(1, max(map(len, columns), default=0) + 1):
        texts = tuple(
            column[number - 1].rstrip("\r")[:LINE_BYTES] if number <= len(column) else ""
            for column in columns
        )
        if len(set(texts)) > 1:
            found.append(DifferingLine(number, texts))
            if len(found) == most:
                break
    return found
