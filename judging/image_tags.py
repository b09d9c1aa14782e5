"""The images of a stored page: which files they mean, and what stands in their place when the page is shown.

The stored HTML has `<img alt="..." data-path="figures/a.png">` (judging/page_markup.py): nothing loads by it. When it
is shown, a picture of the collection comes in as a `data:` address, or a note says that there is none.
"""

import base64
import html
import re
from collections.abc import Callable, Mapping

from judging.addresses import path_beside, shown_address
from judging.images import Picture

_IMAGE = re.compile(r'<img alt="([^"]*)" data-path="([^"]*)"((?: [a-z]+="[0-9]+")?)((?: id="d[0-9]+")?)>')


def image_paths(stored: str, doc_id: str) -> list[str]:
    """Return the paths of the files that a page's images mean, in their order.

    >>> image_paths('<img alt="" data-path="../b.png"><img alt="" data-path="https://example.org/c.png">', "x/a.html")
    ['b.png']
    """
    found = (path_beside(doc_id, html.unescape(image[2])) for image in _IMAGE.finditer(stored))
    return [path for path in found if path]


def with_pictures(
    stored: str, doc_id: str, pictures: Mapping[str, Picture | None], note: Callable[[str, bool], str]
) -> str:
    """Return the page as it is shown.

    Parameters
    ----------
    stored:
        The sanitiser's HTML, with or without marks.
    pictures:
        By path the pictures of the collection; None for one that is there and too much for this document.
    note:
        Says in HTML that the image of an address (for the reader, in ASCII) is not uploaded, or, if True, too much.

    >>> with_pictures('<img alt="A &lt; B" data-path="a.png">', "d1", {}, lambda address, is_there: address)
    '<span class="image">A &lt; B a.png</span>'
    >>> with_pictures('<img alt="A" data-path="a.png">', "d1", {"a.png": Picture("image/png", b"x")}, "".format)
    '<img alt="A" src="data:image/png;base64,eA==">'
    """

    def replace_image(image: re.Match[str]) -> str:
        alt, source, width, anchor = image.groups()
        path = path_beside(doc_id, html.unescape(source))
        picture = pictures.get(path)
        if picture is not None:
            data = base64.b64encode(picture.content).decode("ascii")
            return f'<img alt="{alt}" src="data:{picture.media_type};base64,{data}"{width}{anchor}>'
        words = note(shown_address(html.unescape(source)), path in pictures)
        return f'<span class="image"{anchor}>{alt}{" " if alt else ""}{words}</span>'

    return _IMAGE.sub(replace_image, stored)
