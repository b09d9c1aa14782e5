"""The cards of a look: for each part of an upload what it was taken for and why, and what was found in it."""

from collections import deque
from collections.abc import Container, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from judging import records, topics
from judging.encodings import differing_lines
from judging.file_options import MAPPED_FIELDS, FileOptions, options_from, parse_grades, written_grades
from judging.formats.run_names import format_in, formats_by_name
from judging.import_choices import KINDS, LEFT_OUT, READING
from judging.likely_encodings import encoding_candidates
from judging.places import place_of_document, place_of_topic
from judging.recognise import Recognition, doubts, recognise_file
from judging.services.judgment_formats import DEFAULT_FORMAT, format_to_import, judgment_format
from judging.services.look_ids import DOCUMENTS, TOPICS, Ids, Repeat, most_common
from judging.services.look_parts import (
    LOOKS,
    Finding,
    Looking,
    RunBeginning,
    RunReading,
    look_at_run,
    needs_of_run,
    raw_lines,
)
from judging.services.scores import name_of_scores
from judging.services.sources import Progress
from judging.services.upload_parts import Part

N_READERS = 2  # runs that are read at a time, as an import does
FORMATS: dict[str, Container[str]] = {"topics": topics.FORMATS, "documents": records.FORMATS}
NAMED = ("runs", "scores")  # are in the collection under one name
NAMES_OTHERS = ("runs", "judgments", "scores")  # whose topics tell what topics are


@dataclass
class NamedIds:
    """The topics and documents that runs and gold name, of this upload and of the collection."""

    topics: set[str] = field(default_factory=set)
    documents: set[str] = field(default_factory=set)
    known_topics: Container[str] = ()
    known_documents: Container[str] = ()

    def topic_ids(self) -> Container[str]:
        return _Either(self.topics, self.known_topics)

    def doc_ids(self) -> Container[str]:
        return _Either(self.documents, self.known_documents)


class _Either:
    def __init__(self, *parts: Container[str]) -> None:
        self.parts = parts

    def __contains__(self, one: object) -> bool:
        return any(one in part for part in self.parts)


class _Listening:
    """Passes on what a look tells of ids, and remembers what is named and what is brought."""

    MOST = 200_000

    def __init__(self, ids: Ids, named: NamedIds) -> None:
        self.ids, self.named, self.brought = ids, named, NamedIds()

    def needs(self, part: int, what: str, ids: Any) -> None:
        kept = list(ids)
        self._remember(self.named, what, kept)
        self.ids.needs(part, what, kept)

    def needs_all(self, part: int, what: str, ids: list[str]) -> None:
        self._remember(self.named, what, ids)
        self.ids.needs_all(part, what, ids)

    def brings(self, part: int, what: str, ids: Any, first_ordinal: int) -> None:
        kept = list(ids)
        self._remember(self.brought, what, kept)
        self.ids.brings(part, what, kept, first_ordinal)

    def all_ids(self) -> NamedIds:
        """Return what is named or brought: by it judgments are told from scores, never topics from documents."""
        return NamedIds(
            known_topics=_Either(self.named.topic_ids(), self.brought.topics),
            known_documents=_Either(self.named.doc_ids(), self.brought.documents),
        )

    def _remember(self, where: NamedIds, what: str, ids: list[str]) -> None:
        heard = where.topics if what == TOPICS else where.documents
        if len(heard) < self.MOST:
            heard.update(ids)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ids, name)


def look_at_parts(
    parts: Sequence[Part],
    choices: Mapping[str, Mapping[str, Any]],
    ids: Ids,
    named: NamedIds,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Return a card for each part, in their order.

    `choices` are those of a person, by the part's name: kind and options. What names topics is looked at first: by the
    ids that runs and gold name, topics and documents are told apart. What may be judgments or scores comes last.
    """
    listening: Any = _Listening(ids, named)
    cards: dict[int, dict[str, Any]] = {}
    seen = {number: recognise_part(part, NamedIds()) for number, part in enumerate(parts)}
    first = [number for number in seen if _kind(seen[number], choices, parts[number]) in NAMES_OTHERS]
    runs = [number for number in first if _kind(seen[number], choices, parts[number]) == "runs"]
    if len(first) == len(parts):
        ids.only_named()
    readings = {number: _run_reading(seen[number], choices, parts[number]) for number in runs}
    for number, finding in _each_run(readings, listening):
        cards[number] = _card(parts[number], number, seen[number], choices, "runs", finding, listening)
        _tell(progress, len(cards), len(parts), parts[number])
    perhaps = [number for number in seen if number not in first and _may_name_others(seen[number])]
    for number in sorted(seen, key=lambda number: (number not in first, number in perhaps, number)):
        if number in cards:
            continue
        part = parts[number]
        if number not in first:
            seen[number] = recognise_part(part, listening.all_ids() if number in perhaps else named)
        _tell(progress, len(cards), len(parts), part)
        cards[number] = _look(part, number, seen[number], choices, listening, progress)
    tags: dict[str, str] = {}
    for number, part in enumerate(parts):
        _add_ids(cards[number], part, number, ids)
        _add_tag(cards[number], tags)
    return [cards[number] for number in range(len(parts))]


def _tell(progress: Progress | None, done: int, total: int, part: Part) -> None:
    if progress:
        progress(done, total, part.name)


def recognise_part(part: Part, named: NamedIds) -> Recognition | None:
    """Return what the part is taken for; None of what could not be opened."""
    if part.fault:
        return None
    if part.members:
        return recognise_file_of_members(part)
    return recognise_file(part.path, part.name, topic_ids=named.topic_ids(), doc_ids=named.doc_ids())


def recognise_file_of_members(part: Part) -> Recognition:
    """Return what members of an archive are that are one part: pages or images, as they were put together."""
    from judging.recognise import recognise

    return recognise(part.members[0].name, part.head)


def _may_name_others(seen: Recognition | None) -> bool:
    return seen is not None and seen.kind in NAMES_OTHERS


def _kind(seen: Recognition | None, choices: Mapping[str, Mapping[str, Any]], part: Part) -> str:
    """Return as what a part is read: as a person said, or as what it surely is, or as nothing yet."""
    chosen = choices.get(part.name, {})
    if chosen.get("kind"):
        return str(chosen["kind"])
    if seen is None or seen.is_refused:
        return ""
    is_settled = seen.is_sure or (bool(chosen.get("encoding")) and bool(seen.kind))
    return seen.kind if is_settled else ""


def _run_reading(
    seen: Recognition | None, choices: Mapping[str, Mapping[str, Any]], part: Part
) -> RunReading:
    chosen = choices.get(part.name, {})
    encoding = "" if seen is None else reading_options(seen, "runs", chosen).encoding
    form = format_in(seen, str(chosen.get("file_format") or ""), part.name)
    return RunReading(part, form, encoding, str(chosen.get("run_name") or ""))


def _each_run(readings: Mapping[int, RunReading], ids: Ids) -> Iterator[tuple[int, Finding]]:
    """Read runs, given by number, two at a time; at most three are in memory."""
    waiting: deque[tuple[int, Future[RunBeginning | None]]] = deque()

    def finish_first() -> tuple[int, Finding]:
        number, future = waiting.popleft()
        run = future.result()
        if run is not None:
            needs_of_run(run.columns, number, ids)
        return number, look_at_run(readings[number], run)

    with ThreadPoolExecutor(N_READERS) as pool:
        for number, reading in readings.items():
            waiting.append((number, pool.submit(reading.read_beginning)))
            if len(waiting) > N_READERS:
                yield finish_first()
        while waiting:
            yield finish_first()


def _look(
    part: Part,
    number: int,
    seen: Recognition | None,
    choices: Mapping[str, Mapping[str, Any]],
    ids: Ids,
    progress: Progress | None,
) -> dict[str, Any]:
    kind = _kind(seen, choices, part)
    chosen = choices.get(part.name, {})
    if seen is None or kind not in LOOKS:
        return _card(part, number, seen, choices, kind, None, ids)
    options = reading_options(seen, kind, chosen)
    file_format = format_of(seen, kind, chosen, part.name)
    finding = LOOKS[kind](Looking(part, number, file_format, options, chosen, ids, progress))
    return _card(part, number, seen, choices, kind, finding, ids)


def format_of(seen: Recognition, kind: str, chosen: Mapping[str, Any], name: str) -> str | None:
    """Return the format to read by: chosen, recognised for this kind, or told by the name; None: a reader's guess."""
    if kind == "runs":
        return format_in(seen, str(chosen.get("file_format") or ""), name).key
    if chosen.get("file_format"):
        return str(chosen["file_format"])
    is_of_kind = kind == seen.kind or seen.file_format in FORMATS.get(kind, ())
    named = [one.key for one in formats_by_name(name, kind)]
    return format_to_import(seen.file_format if is_of_kind else "".join(named[:1])) or None


def reading_options(seen: Recognition, kind: str, chosen: Mapping[str, Any]) -> FileOptions:
    """Return how to read a part: as it was recognised, but for what was chosen."""
    found = seen.options.as_dict()
    if kind != seen.kind and "mapping" in found:
        found["mapping"] = _mapping_for(kind, seen)
    wanted = {name: chosen[name] for name in (*READING, "is_html") if chosen.get(name) not in (None, "")}
    wanted.pop("file_format", None)
    return options_from({**found, **wanted})


def _mapping_for(kind: str, seen: Recognition) -> dict[str, list[str]]:
    """Return how columns that were taken for another kind's would be read as this kind's."""
    ids = list(seen.mapping.get("id") or seen.columns[:1])
    others = [column for column in seen.columns if column not in ids]
    title = list(seen.mapping.get("title") or others[:1])
    rest = [column for column in others if column not in title]
    if kind == "topics":
        return {"id": ids, "title": title}
    return {"id": ids, "title": title if rest else [], "text": rest or title}


# -- cards ----------------------------------------------------------------------------------------------------


def _card(
    part: Part,
    number: int,
    seen: Recognition | None,
    choices: Mapping[str, Mapping[str, Any]],
    kind: str,
    finding: Finding | None,
    ids: Ids,
) -> dict[str, Any]:
    chosen = dict(choices.get(part.name, {}))
    card: dict[str, Any] = {
        "name": part.name,
        "n_files": part.n_files,
        "n_bytes": part.n_bytes,
        "kind": kind,
        "taken_for": seen.kind if seen else "",
        "why": seen.why if seen else "",
        "is_refused": seen is None or seen.is_refused,
        "container": seen.container if seen else "",
        "choices": chosen,
        "passed_over": list(part.passed_over)[:20],
        "faults": [part.fault] if part.fault else [],
        "n_faults": int(bool(part.fault)),
        "question": "",
    }
    if seen is None:
        return card
    card |= _of_text(part, seen, kind, chosen)
    if finding is None:
        card |= {"heads": ["line"], "records": [] if seen.is_refused else raw_lines(part)}
        card["question"] = _question(card, seen)
        return card
    if kind == "judgments" and (proposed := _proposed_map(card["file_format"], finding, chosen)):
        chosen["grade_map"] = proposed
    card |= {
        "n_rows": finding.n_rows,
        "heads": list(finding.heads),
        "records": finding.records,
        "documents": finding.previews(),
        "grades": most_common(finding.grades),
        "tag": finding.tag,
        "is_sample": finding.needs_assessors,
        "n_numbered": finding.changes.n_numbered,
        "n_joined": finding.changes.n_joined,
        "faults": str(finding.faults).splitlines(),
        "n_faults": len(finding.faults),
    }
    if not chosen.get("kind"):
        card["question"] = doubts(kind, finding.n_rows, finding.median_length())
    return card


def _proposed_map(file_format: str, finding: Finding, chosen: Mapping[str, Any]) -> str:
    """Return the grade map that the format proposes for the codes that were found, unless another was chosen."""
    if "grade_map" in chosen:
        return ""
    usual = parse_grades(judgment_format(file_format or DEFAULT_FORMAT).usual_map or "0=0")
    return written_grades(
        {code: usual[code] for code in sorted(finding.grades) if usual.get(code, code) != code}
    )


def _of_text(part: Part, seen: Recognition, kind: str, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a card says of encoding and columns."""
    candidates = () if part.members or seen.container == "xlsx" else encoding_candidates(part.head)
    lines = differing_lines(part.head, candidates) if candidates else []
    options = reading_options(seen, kind, chosen) if kind in KINDS and kind != LEFT_OUT else seen.options
    return {
        "file_format": format_of(seen, kind, chosen, part.name) or "",
        "encoding": options.encoding or seen.encoding,
        "encodings": [
            {"encoding": one, "lines": [[line.number, line.texts[place][:LONGEST_LINE]] for line in lines]}
            for place, one in enumerate(candidates)
        ],
        "delimiter": options.delimiter or seen.delimiter,
        "columns": list(seen.columns),
        "mapping": {name: list(columns) for name, columns in options.mapping.items()},
        "fields": list(MAPPED_FIELDS.get(kind, ())),
        "is_html": options.is_html,
        "reading": options.as_dict(),
    }


LONGEST_LINE = 200


def _question(card: dict[str, Any], seen: Recognition) -> str:
    if card["kind"] == LEFT_OUT or seen.is_refused:
        return ""
    if card["encodings"] and not card["choices"].get("encoding"):
        return "The file is not UTF-8. Choose the encoding in which its lines read right."
    return f"Choose what it is. {seen.why}".strip()


def _add_ids(card: dict[str, Any], part: Part, number: int, ids: Ids) -> None:
    """Add what is there already, what occurs twice, and what the collection lacks."""
    kind = card["kind"]
    if kind in (TOPICS, DOCUMENTS):
        card["there"] = ids.there(number, kind).as_dict()
        repeat = ids.twice(number, kind)
        if repeat is not None:
            card["faults"].append(_twice(card, part, repeat))
            card["n_faults"] += repeat.n
    if name := _name_of(card):
        card["there"] = ids.known_name(kind, name).as_dict()
    there = card.get("there", {}).get("n", 0)
    card["is_there"] = bool(there) and not card["n_faults"] and (kind in NAMED or there == card["n_rows"])
    if kind in NAMES_OTHERS:
        card["lacks"] = {what: ids.lacking(number, what).as_dict() for what in (TOPICS, DOCUMENTS)}


def _name_of(card: Mapping[str, Any]) -> str:
    """Return what the collection would call the run or the scores of a file; empty for other kinds."""
    if card["kind"] == "scores":
        return str(card["choices"].get("list_name") or name_of_scores(card["name"]))
    return str(card.get("tag", "")) if card["kind"] == "runs" else ""


def _add_tag(card: dict[str, Any], tags: dict[str, str]) -> None:
    """Add the fault that another file of the upload holds a run of the same tag."""
    tag = _name_of(card) if card["kind"] == "runs" else ""
    if tag and tags.setdefault(tag, card["name"]) != card["name"]:
        card["faults"].append(f"{card['name']}: run {tag} is in {tags[tag]} too")
        card["n_faults"] += 1


def _twice(card: dict[str, Any], part: Part, repeat: Repeat) -> str:
    """Return the sentence about ids that occur twice, with the place of the first."""
    what = "topic" if card["kind"] == TOPICS else "document"
    more = f" (and {repeat.n - 1:,} more like it)" if repeat.n > 1 else ""
    reason = f"{what} {repeat.doc_id} occurs twice{more}"
    if part.members:
        return f"{part.name}: {reason}"
    find = place_of_topic if card["kind"] == TOPICS else place_of_document
    options = options_from(card["reading"])
    place = find(part.path, part.name, repeat.ordinal, card["file_format"] or None, options)
    return f"{part.name}:{_place_text(place)}: {reason}"


def _place_text(place: Any) -> str:
    return place if isinstance(place, str) else f"{place[0]}:{place[1]}"
