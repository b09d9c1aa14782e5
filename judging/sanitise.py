"""The text and the safe HTML of an untrusted document.

Plain text needs no parser and no child. HTML passes nh3 in a child process whose CPU time and memory are bounded,
because sanitisers are quadratic on hostile pages (50,000 nested <div>: 20 s). When the child dies, or the documents
together have cost too much, the document is shown as its own source. Never call this in a web request; call it at
import.

This file is also the child's program: it imports only the standard library and nh3, by its path, isolated.
"""

import html
import re
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO

WALL_SECONDS = 60  # a busy machine gives 5 s of CPU late
NUMBER_BYTES = 8
# An answer may be so much longer than its question: "&" becomes "&amp;", every block tag an end of line.
GROWTH, GROWTH_BYTES = 8, 1_000_000

# Control characters but tab and newline, and the invisible ones that reorder text: they make a page lie.
UNWANTED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff]")
LONE_SURROGATE = re.compile("[\ud800-\udfff]")
BLANK_LINES = re.compile(r"\n(?:[ \t]*\n){2,}")
BLOCK_TAG = re.compile(
    r"<(?=/?(?:p|div|br|hr|li|ul|ol|dl|dt|dd|tr|table|h[1-6]|pre|blockquote|section|article|header|footer)\b)",
    re.IGNORECASE,
)
SAFE_TAGS = {
    "p", "br", "hr", "div", "span", "b", "i", "em", "strong", "u", "s", "sub", "sup", "small", "code",
    "pre", "blockquote", "q", "cite", "abbr", "dfn", "kbd", "samp", "var", "del", "ins", "ul",
    "ol", "li", "dl", "dt", "dd", "table", "thead", "tbody", "tfoot", "tr", "th", "td", "caption", "h1",
    "h2", "h3", "h4", "h5", "h6",
}  # fmt: skip
SAFE_ATTRIBUTES = {"td": {"colspan", "rowspan"}, "th": {"colspan", "rowspan"}, "ol": {"start"}}
SAFE_VALUE = re.compile(r"[0-9]{1,3}")


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
    child: _Child | None = None
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
            child = child or _Child(allowance.cpu_seconds, allowance.memory_bytes)
            started = time.monotonic()
            answer = child.ask(LONE_SURROGATE.sub("\ufffd", raw))
            if answer is None:
                left -= min(time.monotonic() - started, allowance.cpu_seconds)
                child.close()
                child = None
                yield SanitisedDocument(plain_text(raw), fell_back=True)
            else:
                text, safe, seconds = answer
                left -= seconds
                yield SanitisedDocument(plain_text(text).strip(), plain_text(safe))
    finally:
        if child is not None:
            child.close()


class _Child:
    """The limited process. It gets no environment: no secret is near the parser."""

    def __init__(self, cpu_seconds: int, memory_bytes: int) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-I", __file__, str(cpu_seconds), str(memory_bytes)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={"LC_ALL": "C.UTF-8"},
            cwd="/",
        )

    def ask(self, raw: str) -> tuple[str, str, float] | None:
        """Return text, HTML and their CPU seconds, or None if the child died, took too long or said too much."""
        to_child, from_child = self.process.stdin, self.process.stdout
        if to_child is None or from_child is None:
            return None
        try:
            sent = _send(to_child, raw)
            ready, _, _ = select.select([from_child], [], [], WALL_SECONDS)
            if not ready:
                return None
            most = sent * GROWTH + GROWTH_BYTES
            return _receive(from_child, most), _receive(from_child, most), _number(from_child) / 1e6
        except (OSError, EOFError):
            return None

    def close(self) -> None:
        """End the child and give back its pipes."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:  # what was still to be sent; nobody is there
                    continue


def _send(stream: IO[bytes], text: str) -> int:
    data = text.encode()
    stream.write(len(data).to_bytes(NUMBER_BYTES, "little") + data)
    stream.flush()
    return len(data)


def _number(stream: IO[bytes]) -> int:
    data = stream.read(NUMBER_BYTES)
    if len(data) < NUMBER_BYTES:
        raise EOFError
    return int.from_bytes(data, "little")


def _receive(stream: IO[bytes], most: int = sys.maxsize) -> str:
    size = _number(stream)
    data = stream.read(size) if size <= most else b""
    if len(data) < size:
        raise EOFError
    return str(data, "utf-8")


def _clean(raw: str) -> tuple[str, str]:
    """Return text and safe HTML; runs in the child only."""
    import nh3  # only the child may parse what strangers wrote

    safe = nh3.clean(
        raw,
        tags=SAFE_TAGS,
        attributes=SAFE_ATTRIBUTES,
        attribute_filter=lambda tag, name, value: value if SAFE_VALUE.fullmatch(value) else None,
        url_schemes=set(),
        link_rel=None,
        strip_comments=True,
    )
    # The block tags of the safe HTML become line ends; it is small and regular, unlike the source.
    bare = nh3.clean(BLOCK_TAG.sub("\n<", safe), tags=set(), attributes={}, link_rel=None)
    return BLANK_LINES.sub("\n\n", html.unescape(bare)), safe


def _limit_cpu(seconds: int) -> None:
    """Let the process live for that much more CPU time, counted in whole seconds and never more."""
    soft = int(time.process_time()) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.RLIM_INFINITY))


def _serve(cpu_seconds: int, memory_bytes: int) -> None:
    """Answer documents until the parent closes the pipe."""
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    for limit in (resource.RLIMIT_CORE, resource.RLIMIT_FSIZE):
        resource.setrlimit(limit, (0, 0))
    _clean("<p>")  # imports nh3 before files may no longer be opened
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 3))
    while True:
        try:
            raw = _receive(sys.stdin.buffer)
        except EOFError:
            return
        _limit_cpu(cpu_seconds)
        before = time.process_time()
        for part in _clean(raw):
            _send(sys.stdout.buffer, part)
        sys.stdout.buffer.write(int((time.process_time() - before) * 1e6).to_bytes(NUMBER_BYTES, "little"))
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    _serve(int(sys.argv[1]), int(sys.argv[2]))
