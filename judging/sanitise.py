"""The text and the safe HTML of an untrusted document.

Plain text needs no parser and no child. HTML passes nh3 in a child process that may use 5 s of CPU a document
and a bounded memory, because sanitisers are quadratic on hostile pages (50,000 nested <div>: 20 s). When the
child dies, the document is shown as its own source. Never call this in a web request; call it at import.

This file is also the child's program: it imports only the standard library and nh3, by its path, isolated.
"""

import html
import re
import resource
import select
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO

CPU_SECONDS = 5
WALL_SECONDS = 60  # a busy machine gives 5 s of CPU late
MEMORY_BYTES = 1 << 30
LENGTH_BYTES = 8

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
    "pre", "blockquote", "q", "cite", "abbr", "dfn", "kbd", "samp", "var", "mark", "del", "ins", "ul",
    "ol", "li", "dl", "dt", "dd", "table", "thead", "tbody", "tfoot", "tr", "th", "td", "caption", "h1",
    "h2", "h3", "h4", "h5", "h6",
}  # fmt: skip
SAFE_ATTRIBUTES = {"td": {"colspan", "rowspan"}, "th": {"colspan", "rowspan"}, "ol": {"start"}}


@dataclass(frozen=True, slots=True)
class SanitisedDocument:
    """What may be shown: plain ``text`` (escape it), ``html`` ready for a sandboxed frame.

    ``html`` is empty for plain-text documents. ``fell_back``: the child died; both hold the source instead.
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


def escaped_source(raw: str) -> str:
    """Return HTML that shows the source as it is."""
    return f"<pre>{html.escape(plain_text(raw))}</pre>"


def document_text(raw: str, is_html: bool = False) -> str:
    """Return a document's safe plain text; of HTML its words, from a limited child, or else its source."""
    return next(iter(sanitise_documents([(raw, is_html)]))).text


def safe_html(raw: str) -> str:
    """Return a page without scripts, styles, links, images and anything that loads or leads elsewhere."""
    return next(iter(sanitise_documents([(raw, True)]))).html


def sanitise_documents(
    documents: Iterable[tuple[str, bool]],
    *,
    cpu_seconds: int = CPU_SECONDS,
    memory_bytes: int = MEMORY_BYTES,
) -> Iterator[SanitisedDocument]:
    """Return text and HTML of each (raw, is_html), in order; one child serves all until it dies.

    ``cpu_seconds`` holds for each document, ``memory_bytes`` (address space) for the child.
    """
    if cpu_seconds < 2:  # the limit counts whole seconds: 2 means between 1 and 2
        raise ValueError(f"cpu_seconds must be at least 2, not {cpu_seconds}")
    child: _Child | None = None
    try:
        for raw, is_html in documents:
            if not is_html:
                yield SanitisedDocument(plain_text(raw))
                continue
            child = child or _Child(cpu_seconds, memory_bytes)
            answer = child.ask(LONE_SURROGATE.sub("\ufffd", raw))
            if answer is None:
                child.close()
                child = None
                yield SanitisedDocument(plain_text(raw), escaped_source(raw), fell_back=True)
            else:
                yield SanitisedDocument(plain_text(answer[0]).strip(), answer[1])
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

    def ask(self, raw: str) -> tuple[str, str] | None:
        """Return text and HTML, or None if the child died or took too long."""
        to_child, from_child = self.process.stdin, self.process.stdout
        if to_child is None or from_child is None:
            return None
        try:
            _send(to_child, raw)
            ready, _, _ = select.select([from_child], [], [], WALL_SECONDS)
            if not ready:
                return None
            return _receive(from_child), _receive(from_child)
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


def _send(stream: IO[bytes], text: str) -> None:
    data = text.encode()
    stream.write(len(data).to_bytes(LENGTH_BYTES, "little") + data)
    stream.flush()


def _receive(stream: IO[bytes]) -> str:
    size = stream.read(LENGTH_BYTES)
    if len(size) < LENGTH_BYTES:
        raise EOFError
    data = stream.read(int.from_bytes(size, "little"))
    if len(data) < int.from_bytes(size, "little"):
        raise EOFError
    return str(data, "utf-8")


def _clean(raw: str) -> tuple[str, str]:
    """Return text and safe HTML; runs in the child only."""
    import nh3  # only the child may parse what strangers wrote

    safe = nh3.clean(
        raw,
        tags=SAFE_TAGS,
        attributes=SAFE_ATTRIBUTES,
        url_schemes=set(),
        link_rel=None,
        strip_comments=True,
    )
    # The block tags of the safe HTML become line ends; it is small and regular, unlike the source.
    bare = nh3.clean(BLOCK_TAG.sub("\n<", safe), tags=set(), attributes={}, link_rel=None)
    return BLANK_LINES.sub("\n\n", html.unescape(bare)), safe


def _limit_cpu(seconds: int) -> None:
    """Let the process live for that much more CPU time, counted in whole seconds and never more."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    soft = int(used.ru_utime + used.ru_stime) + seconds
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
        for part in _clean(raw):
            _send(sys.stdout.buffer, part)


if __name__ == "__main__":
    _serve(int(sys.argv[1]), int(sys.argv[2]))
