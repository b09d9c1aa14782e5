"""Files that are one document each: HTML and text."""

import html
import re

TITLE = re.compile(r"<title(?:\s[^<>]{0,200})?>([^<]{0,2000})</title\s*>", re.IGNORECASE)
TITLE_WITHIN = 100_000  # characters from the beginning
CHARSET = re.compile(rb"<meta\s[^<>]{0,300}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.-]{1,40})", re.IGNORECASE)
HTML_START = re.compile(
    r"(?:<\?xml[^<>]{0,200}\?>|<!--(?:[^-]|-(?!->)){0,2000}-->|\s){0,20}<(?:!doctype\s+html|html|head|body)\b",
    re.IGNORECASE,
)
HTML_TAG = re.compile(
    r"</?(?:p|div|span|br|hr|h[1-6]|ul|ol|li|table|tr|td|th|a|img|b|i|em|strong|article|section|pre|blockquote)"
    r"(?:\s[^<>]{0,500})?/?>",
    re.IGNORECASE,
)


def is_page(text: str) -> bool:
    """Return whether a file that begins so is an HTML page: it says so, or its text begins with a tag of HTML.

    >>> is_page("<!DOCTYPE html><p>x"), is_page("<h1>x</h1><p>y</p>"), is_page("<DOC>"), is_page("a < b")
    (True, True, False, False)
    """
    return bool(HTML_START.match(text) or HTML_TAG.match(text.lstrip()))


def has_html(text: str) -> bool:
    """Return whether a text is written in HTML: it has closing tags or links, not only a sign that is like one.

    >>> has_html("<p>Bears <b>attack</b>.</p>"), has_html("if a <b and c> d")
    (True, False)
    """
    tags = [tag.lower() for tag in HTML_TAG.findall(text[:TITLE_WITHIN])]
    n_alone = sum(tag.startswith(("<a ", "<img ", "<br")) for tag in tags)
    return n_alone > 1 or any(tag.startswith("</") for tag in tags)


def page_title(text: str) -> str:
    """Return what stands in the page's ``<title>``, as one line.

    >>> page_title("<html><title>Bears &amp;\\n honey</title>")
    'Bears & honey'
    """
    found = TITLE.search(text[:TITLE_WITHIN])
    return " ".join(html.unescape(found[1]).split()) if found else ""


def declared_charset(data: bytes) -> str:
    """Return the encoding that a page says it has, as it says it, or ``""``."""
    found = CHARSET.search(data[:4096])
    return found[1].decode("ascii") if found else ""
