"""The text and the safe HTML of an untrusted document.

Plain text needs no parser and no child. HTML passes nh3 in a child process whose CPU time and memory are bounded,
because sanitisers are quadratic on hostile pages (50,000 nested <div>: 20 s). When the child dies, or the documents
together have cost too much, the document is shown as its own source. Never call this in a web request; call it at
import.
"""

import html
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from judging.limited_child import LimitedChild
from judging.page_markup import NUMBERS, SCHEMES, TEXTS, Markup

# An answer may be so much longer than its question: "&" becomes "&amp;", every block tag an end of line.
GROWTH, GROWTH_BYTES = 8, 1_000_000

# Control characters but tab and newline, and the invisible ones that reorder text: they make a page lie.
UNWANTED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]")
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
BLANK_LINES = re.compile(r"\n(?:[ \t]*\n){2,}")
BLOCK_TAG = re.compile(
    r"<(?=/?(?:p|div|br|hr|li|ul|ol|dl|dt|dd|tr|table|h[1-6]|pre|blockquote|section|article|header|footer|figure"
    r"|figcaption)\b)",
    re.IGNORECASE,
)
SAFE_TAGS = {
    "p", "br", "hr", "div", "span", "b", "i", "em", "strong", "u", "s", "sub", "sup", "small", "code",
    "pre", "blockquote", "q", "cite", "abbr", "dfn", "kbd", "samp", "var", "del", "ins", "ul",
    "ol", "li", "dl", "dt", "dd", "table", "thead", "tbody", "tfoot", "tr", "th", "td", "caption", "h1",
    "h2", "h3", "h4", "h5", "h6", "a", "img", "figure", "figcaption",
}  # fmt: skip
SAFE_ATTRIBUTES = {tag: TEXTS.get(tag, set()) | NUMBERS.get(tag, set()) for tag in (*TEXTS, *NUMBERS)}
CHILD = "judging.sanitise.clean"


@dataclass(frozen=True, slots=True)
class Allowance:
    """What untrusted HTML may cost.

    A document: ``cpu_seconds`` (honest HTML takes 0.14 s a million characters, and 10 million are the most) in a child
    of ``memory_bytes`` address space. All documents together: ``total_seconds`` of CPU, 24 documents that die, and
    ``seconds_per_character`` more for each character, seven times what honest HTML takes. So hostile documents make an
    import longer by no more than a known time, and a large collection is not spoilt by a few of them.
    """

    cpu_seconds: int = 5
    memory_bytes: int = 1 << 30
    total_seconds: float = 120.0
    seconds_per_character: float = 1e-6

    def __post_init__(self) -> None:
        if self.cpu_seconds < 2:  # the limit counts whole seconds: 2 means between 1 and 2
            raise ValueError(f"cpu_seconds must be at least 2, not {self.cpu_seconds}")


ALLOWANCE = Allowance()


@dataclass(frozen=True, slots=True)
class SanitisedDocument:
    """What may be shown: plain ``text`` (escape it), ``html`` ready for a sandboxed frame.

    ``html`` is empty for plain-text documents. ``fell_back``: the child died, or was not asked because the documents
    before have cost too much; ``text`` is the source and ``html`` empty.
    """

    text: str
    html: str = ""
    fell_back: bool = False


def plain_text(raw: str) -> str:
    """Return the text with LF line ends, and without control and reordering characters.

    >>> plain_text("a\\r\\nb\\x07\\u202ec")
    'a\\nbc'
    """
    text = raw.replace("\r\n", "\n").replace("\r", "\n")
    return LONE_SURROGATE.sub("\ufffd", UNWANTED.sub("", text))


def sanitise_documents(
    documents: Iterable[tuple[str, bool]], *, allowance: Allowance = ALLOWANCE
) -> Iterator[SanitisedDocument]:
    """Return text and HTML of each (raw, is_html), in order; one child serves all until it dies."""
    child: LimitedChild | None = None
    left = allowance.total_seconds
    try:
        for raw, is_html in documents:
            if not is_html:
                yield SanitisedDocument(plain_text(raw))
                continue
            left += len(raw) * allowance.seconds_per_character
            if left <= 0:
                yield SanitisedDocument(plain_text(raw), fell_back=True)
                continue
            child = child or LimitedChild(CHILD, allowance.cpu_seconds, allowance.memory_bytes)
            started = time.monotonic()
            question = LONE_SURROGATE.sub("\ufffd", raw).encode()
            answer = child.ask(question, len(question) * GROWTH + GROWTH_BYTES)
            if answer is None:
                left -= min(time.monotonic() - started, allowance.cpu_seconds)
                child.close()
                child = None
                yield SanitisedDocument(plain_text(raw), fell_back=True)
            else:
                (text, safe), seconds = answer
                left -= seconds
                yield SanitisedDocument(plain_text(text.decode()).strip(), plain_text(safe.decode()))
    finally:
        if child is not None:
            child.close()


def clean(raw: bytes) -> list[bytes]:
    """Return text and safe HTML of a page in UTF-8; runs in the child only."""
    import nh3  # only the child may parse what strangers wrote

    markup = Markup()
    kept = nh3.clean(
        raw.decode(),
        tags=SAFE_TAGS,
        attributes=SAFE_ATTRIBUTES,
        attribute_filter=markup.keep,
        url_schemes=SCHEMES,
        link_rel=None,
        strip_comments=True,
    )
    safe = markup.rewritten(kept)
    # The block tags of the safe HTML become line ends; it is small and regular, unlike the source.
    bare = nh3.clean(BLOCK_TAG.sub("\n<", safe), tags=set(), attributes={}, link_rel=None)
    text = BLANK_LINES.sub("\n\n", html.unescape(bare))
    return [text.encode("utf-8", "replace"), safe.encode("utf-8", "replace")]
