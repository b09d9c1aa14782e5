"""Guidelines: Markdown of a manager to safe HTML."""

import nh3
from markdown_it import MarkdownIt

_ALLOWED = {
    "a", "blockquote", "br", "code", "em", "h1", "h2", "h3", "h4", "hr", "li", "ol", "p", "pre", "strong", "table",
    "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
_markdown = MarkdownIt("commonmark", {"html": False}).enable("table")


def guidelines_html(text: str) -> str:
    """Return the guidelines as HTML without scripts, images, styles or embedded content; links leave no referrer.

    The page has its own first heading, so theirs begin with the second.

    >>> guidelines_html("**3**: answers <script>alert(1)</script>")
    '<p><strong>3</strong>: answers &lt;script&gt;alert(1)&lt;/script&gt;</p>\\n'
    """
    safe: str = nh3.clean(
        _markdown.render(text),
        tags=_ALLOWED,
        attributes={"a": {"href"}},
        url_schemes={"http", "https", "mailto"},
    )
    return safe.replace("<h1>", "<h2>").replace("</h1>", "</h2>")
