"""Links, anchors and images of a sanitised page: what is left of them, before it is stored.

The sanitiser asks `Markup.keep` about each value of an attribute. Digits stay; any other text gets a key of letters and
digits in its place, so the sanitiser's HTML has nothing in its tags that a stranger wrote. Then `Markup.rewritten` puts
in what may be shown:

* a link to elsewhere keeps no `href`: its `title` says where it leads;
* a link within the page leads to `#d1`, `#d2`, ...; nothing else has an `id`. The frame's own are `s0`, `s1`, ...;
* an image keeps its alternative text, and its address as `data-path`: nothing is loaded by it.
"""

import html
import re
from urllib.parse import unquote

from judging.addresses import LINKS, scheme_of, shown_address

TEXTS = {"*": {"id"}, "a": {"href", "name"}, "img": {"src", "alt"}}  # attributes with texts of strangers
NUMBERS = {"td": {"colspan", "rowspan"}, "th": {"colspan", "rowspan"}, "ol": {"start"}, "img": {"width"}}
SCHEMES = LINKS | {"data"}
LONGEST_ALT = 1_000
_NUMBER = re.compile(r"[0-9]{1,3}")
_TAG = re.compile(r'<([a-z][a-z0-9]*)((?: [a-z]+="[a-z0-9]*")+)>')
_ATTRIBUTE = re.compile(r'([a-z]+)="([a-z0-9]*)"')


class Markup:
    """The texts that stood in a page's attributes, and what becomes of them."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def keep(self, tag: str, name: str, value: str) -> str | None:
        """Return what stands for the value in the sanitiser's HTML; None takes the attribute away."""
        if name in NUMBERS.get(tag, ()):
            return value if _NUMBER.fullmatch(value) else None
        self.texts.append(value)
        return f"k{len(self.texts) - 1}"

    def rewritten(self, safe: str) -> str:
        """Return the sanitiser's HTML with the attributes that are shown."""
        anchors = self._anchors(safe)
        left = dict.fromkeys(anchors.values())  # a number is given once

        def tag(found: re.Match[str]) -> str:
            values = self._values(found[2])
            kept = self._shown_attributes(found[1], values, anchors)
            number = anchors.get(values.get("id", ""), anchors.get(values.get("name", "")))
            if number is not None and number in left:
                del left[number]
                kept["id"] = f"d{number}"
            return (
                f"<{found[1]}" + "".join(f' {key}="{html.escape(text)}"' for key, text in kept.items()) + ">"
            )

        return _TAG.sub(tag, safe)

    def _shown_attributes(self, tag: str, values: dict[str, str], anchors: dict[str, int]) -> dict[str, str]:
        """Return the attributes of a tag but its id."""
        numbers = {name: value for name, value in values.items() if name in NUMBERS.get(tag, ())}
        if tag == "a":
            return _link(values.get("href", ""), anchors)
        if tag == "img":
            return {"alt": values.get("alt", "")[:LONGEST_ALT], "data-path": _source(values)} | numbers
        return numbers

    def _values(self, attributes: str) -> dict[str, str]:
        found = dict(_ATTRIBUTE.findall(attributes))
        return {name: self.texts[int(key[1:])] if key[:1] == "k" else key for name, key in found.items()}

    def _anchors(self, safe: str) -> dict[str, int]:
        """Return a number for each name that stands in the page and that a link of it leads to, in their order."""
        names: dict[str, list[str]] = {}
        asked = set()
        for found in _TAG.finditer(safe):
            values = self._values(found[2])
            here = [values[name] for name in ("id", "name") if values.get(name)]
            names |= {name: here for name in here if name not in names}
            href = values.get("href", "").strip()
            if found[1] == "a" and href.startswith("#"):
                asked |= {href[1:], unquote(href[1:])}
        numbers: dict[str, int] = {}
        count = 0
        for name, alike in names.items():
            if asked.isdisjoint(alike):
                continue
            known = [numbers[other] for other in alike if other in numbers]
            count += not known
            numbers[name] = known[0] if known else count
        return numbers


def _link(href: str, anchors: dict[str, int]) -> dict[str, str]:
    bare = href.strip()
    if bare.startswith("#"):
        number = anchors.get(bare[1:], anchors.get(unquote(bare[1:])))
        if number is not None:
            return {"href": f"#d{number}"}
        return {"href": "#top"} if bare.lower() in ("#", "#top") else {}
    return {"title": shown_address(bare)} if bare and scheme_of(bare) in LINKS | {""} else {}


def _source(values: dict[str, str]) -> str:
    """Return an image's address; of one that stands in the page itself only its kind."""
    source = values.get("src", "").strip()
    return shown_address(source) if scheme_of(source) else source[:LONGEST_ALT]
