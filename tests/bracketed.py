"""A language in which every message stands in brackets, and data without letters: what is left outside is a raw word.

The language is Hebrew by name, so that the pages also run from right to left. Django's own messages, which forms and
the log-in say, are in brackets, too.
"""

import re
from collections.abc import Iterable
from html.parser import HTMLParser
from pathlib import Path

import django
from catalogues import Entry, messages_of_product, read_po, write_mo
from django.conf import settings

from judging.models import (
    Campaign,
    Collection,
    Document,
    GoldAnswer,
    Grade,
    Item,
    Scale,
    Slot,
    Topic,
    TrainingItem,
)

CODE = "he"
OPEN, CLOSE = "⟦", "⟧"
INNERMOST = re.compile(f"{OPEN}[^{OPEN}{CLOSE}]*{CLOSE}")
WORD = re.compile(r"[^\W\d_]{2,}")
# Names that nobody translates: the product's, and those of the languages to choose from.
NAMES = {"Touchstone", *(name for _, name in settings.LANGUAGES)}
ATTRIBUTES = {"aria-label", "title", "placeholder", "alt", "data-copied", "aria-roledescription"}
LANGUAGES = [*settings.LANGUAGES, (CODE, "00")]
HEADER = "Content-Type: text/plain; charset=UTF-8\nPlural-Forms: nplurals=2; plural=(n != 1);\n"
_DJANGO = Path(django.__file__).parent
_CATALOGUES_OF_DJANGO = [
    _DJANGO / "conf/locale/en/LC_MESSAGES/django.po",
    _DJANGO / "contrib/auth/locale/en/LC_MESSAGES/django.po",
]


def write_brackets(folder: Path) -> Path:
    """Write the bracketing catalogue into a folder for LOCALE_PATHS, and return the folder."""
    of_django = [entry.message for path in _CATALOGUES_OF_DJANGO for entry in read_po(path)[1]]
    entries = []
    for message in dict.fromkeys([*of_django, *messages_of_product()]):
        texts = [message.singular, message.plural] if message.plural else [message.singular]
        entries.append(Entry(message, [f"{OPEN}{text}{CLOSE}" for text in texts]))
    write_mo(folder / CODE / "LC_MESSAGES/django.mo", HEADER, entries)
    return folder


def outside(texts: Iterable[str]) -> list[str]:
    """Return what has a word that no bracket holds. A sentence with tags in it is one text: join it beforehand."""
    found = []
    for text in texts:
        rest = text
        while rest != (rest := INNERMOST.sub(" ", rest)):
            pass
        for name in NAMES:
            rest = rest.replace(name, " ")
        if WORD.search(rest):
            found.append(" ".join(rest.split())[:200])
    return found


class _Texts(HTMLParser):
    """Collects what a reader of a page sees or hears: its text as one, and the attributes that are said."""

    SILENT = ("script", "style", "svg")

    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self.attributes: list[str] = []
        self.depth = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.depth += tag in self.SILENT
        self.attributes += [value for name, value in attrs if name in ATTRIBUTES and value]
        self.text.append(" ")

    def handle_endtag(self, tag: str) -> None:
        self.depth -= tag in self.SILENT
        self.text.append(" ")

    def handle_data(self, data: str) -> None:
        if not self.depth:
            self.text.append(data)


def texts_of_page(html: str) -> list[str]:
    parser = _Texts()
    parser.feed(html)
    return ["".join(parser.text), *parser.attributes]


# As much of a page in a browser: its text, and the attributes that are said, of what is shown and what may be.
TEXTS_IN_BROWSER = """(names) => {
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    const texts = [];
    while (walker.nextNode()) {
        if (!walker.currentNode.parentElement.closest("script, style, noscript")) texts.push(walker.currentNode.data);
    }
    const said = [...document.querySelectorAll("*")].flatMap((one) => names.map((name) => one.getAttribute(name)));
    return [texts.join(" "), ...said.filter(Boolean)];
}"""


def letterless_campaign(n_documents: int = 12, text: str = "123", **fields: object) -> Campaign:
    """Make an open campaign whose names, grades, topics and documents have no letter."""
    scale = Scale.objects.create(name="012")
    Grade.objects.bulk_create(
        Grade(scale=scale, value=value, label=f"{value}{value}", gain=value) for value in range(3)
    )
    collection = Collection.objects.create(name="100", description="2024")
    defaults = {"name": "4711", "state": Campaign.State.OPEN, "gold_check_rate": 0, "guidelines": "3 4 5"}
    campaign = Campaign.objects.create(collection=collection, scale=scale, **{**defaults, **fields})
    for number in range(n_documents):
        topic, _ = Topic.objects.get_or_create(
            collection=collection,
            topic_id=f"{number // 6}",
            defaults={"title": f"9{number // 6}", "narrative": "8"},
        )
        document = Document.objects.create(
            collection=collection, doc_id=str(number), title=f"55{number}", text=text
        )
        item = Item.objects.create(campaign=campaign, topic=topic, document=document)
        Slot.objects.create(
            item=item, purpose="judge", number=1, campaign=campaign, topic=topic, position=number
        )
    return campaign


def letterless_training(campaign: Campaign, n: int = 2) -> None:
    """Choose documents for training that the campaign does not want judged."""
    topic = campaign.collection.topics.first()
    for position in range(1, n + 1):
        document = Document.objects.create(
            collection=campaign.collection, doc_id=f"9{position}", title="66", text="1"
        )
        GoldAnswer.objects.create(topic=topic, document=document, grade=1)
        TrainingItem.objects.create(
            campaign=campaign, topic=topic, document=document, grade=1, position=position, explanation="7"
        )
