"""What a file was taken for, and how topics and documents are told from each other."""

import re
import statistics
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from judging.file_options import FileOptions

LONG_TEXT, MANY_TOPICS = 400, 1_000  # characters, topics: beyond, they look like documents
SHORT_TEXT = 150
ENOUGH = 0.5  # of the first ids, known as those of topics: then they are
NAMED_TOPICS = re.compile(r"topic|quer(?:y|ies)|qry|question|title", re.IGNORECASE)
NAMED_DOCUMENTS = re.compile(r"doc|corpus|collection|passage|article|abstract|pages|cran\.all", re.IGNORECASE)


@dataclass(frozen=True)
class Recognition:
    """What the beginning of a file tells of it.

    Attributes
    ----------
    container : str
        plain, gzip, zip, xlsx; or the name of what is not read, such as pdf.
    encoding, delimiter : str
        As `FileOptions` have them; of a file that is not UTF-8 the likeliest of some. ``""`` where there is none.
    kind : str
        topics, documents, runs, scores, judgments, images; ``""``: not known.
    file_format : str
        As the reader of the kind spells it.
    columns : tuple of str
        The names in the header, or the keys of JSON.
    mapping : mapping
        The columns of each field, as `FileOptions` have them.
    is_sure : bool
        If not, somebody must say what it is.
    why : str
        A sentence for the screen.
    is_html : bool
        The documents are HTML.
    is_refused : bool
        Nothing here reads such a file; `why` says what to do instead.
    is_encoding_sure : bool
        If not, one of `judging.likely_encodings.encoding_candidates` must be chosen.
    rivals : tuple of str
        Other formats that its form allows.
    """

    container: str
    encoding: str
    delimiter: str
    kind: str
    file_format: str
    columns: tuple[str, ...]
    mapping: Mapping[str, tuple[str, ...]]
    is_sure: bool
    why: str
    is_html: bool = False
    is_refused: bool = False
    is_encoding_sure: bool = True
    rivals: tuple[str, ...] = ()

    @property
    def options(self) -> FileOptions:
        """Return what was recognised as options of the reader."""
        return FileOptions(
            encoding="" if self.encoding == "utf-8" else self.encoding,
            delimiter=self.delimiter,
            mapping=self.mapping,
            is_html=self.is_html,
        )


@dataclass(frozen=True)
class Shape:
    """What a text holds, by its form; as `Recognition` has it."""

    kind: str
    file_format: str
    is_sure: bool
    why: str
    delimiter: str = ""
    columns: tuple[str, ...] = ()
    mapping: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    is_html: bool = False
    is_refused: bool = False
    rivals: tuple[str, ...] = ()


def question(why: str, **known: Any) -> Shape:
    """Return what leaves open what a text holds."""
    return Shape("", "", False, why, **known)


@dataclass(frozen=True)
class KnownIds:
    """The ids that the upload and the collection name already."""

    topic_ids: Container[str] = ()
    doc_ids: Container[str] = ()

    @property
    def has_topics(self) -> bool:
        return self._is_filled(self.topic_ids)

    @property
    def has_documents(self) -> bool:
        return self._is_filled(self.doc_ids)

    @staticmethod
    def _is_filled(ids: Container[str]) -> bool:
        try:
            return len(ids) > 0  # type: ignore[arg-type]  # what has no length is there for a reason
        except TypeError:
            return True

    def shares(self, ids: Sequence[str]) -> tuple[float, float]:
        """Return which parts of the ids are known as those of topics and of documents."""
        n = max(1, len(ids))
        return sum(one in self.topic_ids for one in ids) / n, sum(one in self.doc_ids for one in ids) / n


@dataclass(frozen=True)
class Guess:
    """Topics or documents, ``""`` for neither; whether that is sure; and why."""

    kind: str
    is_sure: bool
    why: str


@dataclass(frozen=True)
class Records:
    """The beginning of a file that may hold topics or documents.

    `leans` and `strength`: which of them its form tells, and how clearly, from 0 to 2. `reason`: the form in words.
    """

    ids: Sequence[str]
    texts: Sequence[str]
    leans: str
    strength: int
    reason: str
    formats: Mapping[str, str] = field(default_factory=dict)  # by kind


def topics_or_documents(name: str, records: Records, known: KnownIds) -> Guess:
    """Return what the records are: by ids that are known, or where these do not decide by form, name and length."""
    of_topics, of_documents = known.shares(records.ids)
    median = statistics.median(map(len, records.texts)) if records.texts else 0
    form = _by_form(name, records, median)
    if of_topics and not of_documents:
        is_clear = of_topics >= ENOUGH and (known.has_documents or form.kind != "documents")
        reason = "its ids are those of topics in the other files or the collection"
        if is_clear or form.kind == "topics":
            return Guess("topics", True, f"Topics: {reason}.")
        return Guess("topics", False, f"Topics or documents? Some of {reason}, but it looks like documents.")
    if of_documents and not of_topics:
        reason = "its ids are those of documents in the other files or the collection"
        if known.has_topics or form.kind == "documents":
            return Guess("documents", True, f"Documents: {reason}.")
        return Guess("documents", False, f"Topics or documents? Maybe documents: {reason}.")
    if of_topics and form.kind:
        return Guess(
            form.kind, form.is_sure and records.strength == 2, f"{form.why} Its ids are known as both."
        )
    return form


def _by_form(name: str, records: Records, median: float) -> Guess:
    """Return what form, name and length tell together; one that speaks against the others makes it a question."""
    votes = {"topics": 0, "documents": 0}
    reasons = []
    if records.strength:
        votes[records.leans] += records.strength
        reasons.append(records.reason)
    named = _kind_in_name(name)
    if named:
        votes[named] += 1
        reasons.append(f"its name says {named}")
    if median > LONG_TEXT:
        votes["documents"] += 1
        reasons.append(f"half of its texts have more than {LONG_TEXT} characters")
    elif 0 < median <= SHORT_TEXT:
        votes["topics"] += 1 if named == "topics" and records.leans != "documents" else 0
        reasons.append("its texts are short")
    said = ", ".join(reasons) or "nothing tells"
    kind = max(votes, key=lambda one: votes[one])
    against = min(votes.values())
    if not votes[kind] or votes[kind] == against:
        return Guess("", False, f"Topics or documents? {said[:1].upper()}{said[1:]}.")
    if votes[kind] >= 2 and not against:
        return Guess(kind, True, f"{kind.capitalize()}: {said}.")
    return Guess(kind, False, f"Topics or documents? Maybe {kind}: {said}.")


def _kind_in_name(name: str) -> str:
    ends = re.split(r"[\\/]", name)[-1]
    is_topics, is_documents = NAMED_TOPICS.search(ends), NAMED_DOCUMENTS.search(ends)
    if bool(is_topics) == bool(is_documents):
        return ""
    return "topics" if is_topics else "documents"


def doubts(kind: str, n: int, median_length: float) -> str:
    """Return why what was read as that kind may be another one; ``""`` if nothing speaks against it.

    Parameters
    ----------
    kind : str
        What the file was taken for.
    n : int
        How many records it has.
    median_length : float
        The median of their texts' lengths, in characters: of a topic title, description and narrative together.

    Examples
    --------
    >>> doubts("topics", 6000, 90)
    'these look like documents: 6,000 of them, and collections rarely have more than 1,000 topics'
    >>> doubts("topics", 50, 90)
    ''
    """
    if kind != "topics":
        return ""
    if n > MANY_TOPICS:
        return f"these look like documents: {n:,} of them, and collections rarely have more than {MANY_TOPICS:,} topics"
    if median_length > LONG_TEXT:
        return f"these look like documents: half of them have more than {LONG_TEXT} characters"
    return ""
