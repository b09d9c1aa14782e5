"""Addresses in documents: how they are shown to people, and which file of an upload one means.

Nothing here is ever fetched. What is shown is ASCII alone, so that no invisible or turned character makes one address
look like another.
"""

import encodings.idna  # used by their names; a limited child can load nothing later
import encodings.punycode  # noqa: F401
import re
import unicodedata
from urllib.parse import quote, unquote, urlsplit, urlunsplit

LONGEST_SHOWN = 200  # characters
LONGEST_READ = 4_000  # of what a document calls an address
LINKS = {"http", "https", "ftp", "mailto", "tel"}  # what people may be told that a link leads to
_SHOWN_AS_IT_IS = "!#$%&'()*+,/:;=?@[]~-._"
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_PADDING = "".join(map(chr, range(33)))


def scheme_of(address: str) -> str:
    """Return the scheme in small letters; empty for an address within the collection.

    >>> scheme_of(" JavaScript:alert(1)"), scheme_of("a/b.html"), scheme_of("//example.org/a")
    ('javascript', '', 'https')
    """
    bare = _bare(address)
    found = _SCHEME.match(bare)
    return found[1].lower() if found else "https" if bare.startswith("//") else ""


def _bare(address: str) -> str:
    """Return it as browsers read it: no line ends and tabs, no blanks and control characters around."""
    return re.sub(r"[\t\r\n]", "", address[:LONGEST_READ].strip(_PADDING))


def shown_address(address: str) -> str:
    """Return an address in ASCII, at most 200 characters, without a user's name, its host as it is looked up.

    >>> shown_address("https://good.example@evil.example/\\u202egpj.exe")
    'https://evil.example/%E2%80%AEgpj.exe'
    >>> shown_address("//bücher.example/a b"), shown_address("figures/a.png"), shown_address("data:image/png;base64,AA")
    ('https://xn--bcher-kva.example/a%20b', 'figures/a.png', 'data:image/png;base64')
    """
    bare = _bare(address)
    scheme = scheme_of(bare)
    if scheme == "data":
        bare = bare.partition(",")[0]
    elif scheme:
        bare = _with_plain_host(bare, scheme)
    shown = quote(bare, safe=_SHOWN_AS_IT_IS, errors="replace")
    return shown if len(shown) <= LONGEST_SHOWN else shown[: LONGEST_SHOWN - 3] + "..."


def _with_plain_host(address: str, scheme: str) -> str:
    try:
        parts = urlsplit(address, scheme)
        if parts.hostname is None:
            return address
        port = f":{parts.port}" if parts.port is not None else ""
        host = f"[{parts.hostname}]" if ":" in parts.hostname else _looked_up(parts.hostname)
        return urlunsplit((scheme, host + port, parts.path, parts.query, parts.fragment))
    except ValueError:  # no browser would follow it either: it stands as it is
        return address


def _looked_up(host: str) -> str:
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return host


# -- paths ----------------------------------------------------------------------------------------------------


def image_path(name: str) -> str:
    """Return the path by which an uploaded file is stored and found; empty if it leads above the folder.

    White space becomes "_", as in the ids of documents.

    >>> image_path("site\\\\./my figures/../a b.png"), image_path("../a.png")
    ('site/a_b.png', '')
    """
    written = unicodedata.normalize("NFC", name).replace("\\", "/")
    parts: list[str] = []
    for part in "".join("_" if one.isspace() or not one.isprintable() else one for one in written).split("/"):
        if part == ".." and not parts:
            return ""
        if part == "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    return "/".join(parts)


def path_beside(doc_id: str, address: str) -> str:
    """Return the path of the file that a document's address means; empty if it means none of the collection.

    The document's id is its path. What begins with "/" lies in the collection's topmost folder.

    >>> path_beside("site/pages/a.html", "../figures/b%20c.png?v=2"), path_beside("site/a.html", "/b.png")
    ('site/figures/b_c.png', 'b.png')
    >>> path_beside("a.html", "../b.png"), path_beside("a.html", "https://example.org/b.png")
    ('', '')
    """
    bare = _bare(address)
    if scheme_of(bare):
        return ""
    path = unquote(re.split("[?#]", bare, maxsplit=1)[0])
    if not path:
        return ""
    folder = "" if path[0] in "/\\" else doc_id.replace("\\", "/").rpartition("/")[0]
    return image_path(f"{folder}/{path}")
