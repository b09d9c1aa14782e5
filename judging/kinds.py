"""Kinds of judging: how an item is named, and which texts an assessor sees of it before giving an answer.

An answer is a value of the campaign's scale, whatever the kind. So claims, gold checks, audits, estimates and exports
need not know the kind; only the screen, the highlighting and the prompt of machines ask it for texts.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

# The columns of frames and tables that name an item, in the order of ItemKey.
ITEM_COLUMNS = ("topic_id", "doc_id")


class ItemKey(NamedTuple):
    """The name of an item in frames, statements, files and releases; `unit` names a part of the document.

    No kind here judges parts: the unit is None, and the files of the field have no place for one.
    """

    topic: str
    document: str
    unit: str | None = None


@dataclass(frozen=True)
class Need:
    """What somebody looks for: the words of a topic."""

    title: str
    description: str = ""
    narrative: str = ""


@dataclass(frozen=True)
class Passage:
    """A text as it is shown.

    `text` may be the beginning of a text of `n_characters`. `html`, made safe at import, is shown in its place unless
    it is empty.
    """

    title: str
    text: str
    html: str = ""
    n_characters: int = 0

    @property
    def n_hidden(self) -> int:
        """Return how many characters are not shown."""
        return 0 if self.html else max(0, self.n_characters - len(self.text))

    @property
    def is_empty(self) -> bool:
        return not self.n_hidden and not self.text.strip() and "<img " not in self.html


@dataclass(frozen=True)
class ShownItem:
    """All that a kind may show of an item."""

    key: ItemKey
    need: Need
    document: Passage


@dataclass(frozen=True)
class Texts:
    """What is judged: one text, or two to be compared."""

    first: Passage
    second: Passage | None = None

    def __iter__(self) -> Iterator[Passage]:
        yield self.first
        if self.second is not None:
            yield self.second

    @property
    def title(self) -> str:
        """Return what stands above the texts: their titles.

        >>> Texts(Passage("One", "1")).title, Texts(Passage("One", "1"), Passage("Two", "2")).title
        ('One', 'One / Two')
        """
        return " / ".join(passage.title for passage in self if passage.title)

    def as_prompt(self) -> str:
        """Return the texts as a machine assessor reads them.

        >>> Texts(Passage("", "one")).as_prompt()
        'one'
        >>> Texts(Passage("", "one"), Passage("", "two")).as_prompt()
        'First text:\\none\\n\\nSecond text:\\ntwo'
        """
        if self.second is None:
            return self.first.text
        return f"First text:\n{self.first.text}\n\nSecond text:\n{self.second.text}"


@dataclass(frozen=True)
class Kind:
    """One kind of judging.

    Attributes
    ----------
    key : str
        As stored with the campaign; at most 40 characters.
    label, help : str
        Its name on the screen, and a sentence on what it is good for.
    template : str
        The page of the frame that shows an item's texts.
    texts : callable
        From an item the texts to be judged. Their titles must not depend on the document's text, which is not read
        where titles alone are shown.
    """

    key: str
    label: str
    help: str
    template: str
    texts: Callable[[ShownItem], Texts]

    def title(self, item: ShownItem) -> str:
        """Return what stands above the item's texts; the document may come without its text."""
        return self.texts(item).title


# The first is the default.
KINDS = (
    Kind(
        "graded",
        "Graded relevance",
        "How well a document answers a topic.",
        "judging/frame.html",
        lambda item: Texts(item.document),
    ),
)
DEFAULT_KIND = KINDS[0].key


def kind_keys() -> list[str]:
    return [kind.key for kind in KINDS]


def kind_choices() -> list[tuple[str, str]]:
    """Return keys and labels, as the model's migrations name them."""
    return [(kind.key, kind.label) for kind in KINDS]


def kind_of(key: str) -> Kind:
    """Return the kind of a key; ValueError where there is none.

    >>> kind_of("graded").label
    'Graded relevance'
    """
    for kind in KINDS:
        if kind.key == key:
            return kind
    raise ValueError(f"the kind of judging must be one of {kind_keys()}, got {key!r}")
