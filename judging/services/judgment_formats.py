"""Files of judgments: the formats, how to read them, and the place of a fault."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from judging.faults import Faults, Noting, NotingAll
from judging.file_options import PLAIN, FileOptions, parse_grades
from judging.judgment_tables import read_crowd_labels, read_gold
from judging.samples import PRELS, STRATA, SampleReader
from judging.services.errors import ImportRefused
from judging.services.sources import MeteredSource, Place, place_of_cell, place_of_field, refuse
from judging.textfiles import Source
from judging.trec import (
    GoldRecord,
    JudgmentRecord,
    PrelRecord,
    QrelRecord,
    StratifiedRecord,
    read_beir,
    read_fields,
    read_prels,
    read_qrels,
    read_qrels_jg,
    read_stratified,
)

DIGITS = range(10)  # what a grade can be on any scale
REJECT = "reject"
REPEATS = {REJECT: "refuse the file", "first": "keep the first", "last": "keep the last"}


Records = (
    Iterator[QrelRecord]
    | Iterator[GoldRecord]
    | Iterator[JudgmentRecord]
    | Iterator[PrelRecord]
    | Iterator[StratifiedRecord]
)
PlaceOf = Callable[[Source, str, int, str, FileOptions], Place]


@dataclass(frozen=True)
class JudgmentFormat:
    """A file of judgments.

    Attributes
    ----------
    key, label, help : str
        As stored and spelled by API and command; its name on the screen; what a line holds.
    read : callable
        From a source, its name, `allows_repeats`, `faults` and `options` the records; without faults, one is a
        `TrecFormatError`.
    place : callable
        From a source, its name, the index of a record, "topic", "document", "assessor" or "grade", and the options:
        where it is.
    names_assessors : bool
        Records say who judged; others can only become gold answers, or a sample.
    sample : SampleReader, optional
        The file holds a sample that somebody else drew: it becomes judgments of a campaign without a draw, with the
        probabilities. Gold answers only where `has_probabilities`, and then an audit of the campaign's labels.
    has_probabilities : bool
        Records of gold answers may say with which probability the document was chosen.
    usual_map : str
        The grade map that a look proposes, where the format has codes that are no grades.
    """

    key: str
    label: str
    help: str
    read: Callable[..., Records]
    place: PlaceOf
    names_assessors: bool
    sample: SampleReader | None = None
    has_probabilities: bool = False
    usual_map: str = ""


def _cranfield(
    source: Source,
    name: str,
    *,
    allows_repeats: bool = False,
    faults: Faults | None = None,
    options: FileOptions = PLAIN,
) -> Iterator[QrelRecord]:
    """Return the records of Cranfield's three columns ``query document code``; repeats that agree are allowed."""
    noting = Noting(faults)
    with NotingAll(faults):
        layout = "topic document grade"
        for fields in read_fields(source, name, 3, layout, faults=faults, encoding=options.encoding):
            with noting:
                yield QrelRecord(fields.id(0, "topic id"), fields.id(1, "document id"), fields.grade(2))


def _in_columns(*columns: str, n_headers: int = 0) -> PlaceOf:
    """Return the function that finds a place in lines of these columns, parted by blanks."""
    return lambda source, name, index, what, options: place_of_field(
        source, name, index + n_headers, len(columns), columns.index(what), options
    )


FORMATS = (
    JudgmentFormat(
        "qrels",
        "qrels",
        "A line: topic 0 document grade. No assessors: gold answers only.",
        read_qrels,
        _in_columns("topic", "iteration", "document", "grade"),
        names_assessors=False,
    ),
    JudgmentFormat(
        "qrels_jg",
        "qrels_jg",
        "A line: topic assessor document grade.",
        read_qrels_jg,
        _in_columns("topic", "assessor", "document", "grade"),
        names_assessors=True,
    ),
    JudgmentFormat(
        "crowd",
        "Crowd labels",
        "CSV with a header: task,worker,label, the task being topic and document; or Input.topic_id, Input.doc_id, "
        "WorkerId, Answer.grade as from Mechanical Turk.",
        read_crowd_labels,
        place_of_cell,
        names_assessors=True,
    ),
    JudgmentFormat(
        "gold",
        "Gold grades (CSV)",
        "CSV with a header: topic_id,doc_id,grade; with probability where documents were chosen by it. An empty grade: "
        "not chosen. Gold answers only.",
        read_gold,
        place_of_cell,
        names_assessors=False,
        has_probabilities=True,
    ),
    JudgmentFormat(
        "beir",
        "BEIR qrels",
        "A header: query-id corpus-id score, then a line: topic document grade. No assessors: gold answers only.",
        read_beir,
        _in_columns("topic", "document", "grade", n_headers=1),
        names_assessors=False,
    ),
    JudgmentFormat(
        "cranfield",
        "Cranfield",
        "A line: topic document code. No assessors: gold answers only, with a grade map.",
        _cranfield,
        _in_columns("topic", "document", "grade"),
        names_assessors=False,
        usual_map="1=3,2=3,3=2,4=1,5=0,-1=0",  # 1 is best, 4 least; -1 and 5 are not relevant
    ),
    JudgmentFormat(
        "prels",
        "prels",
        "A line: topic document grade method probability. A sample drawn elsewhere, for a campaign without a draw.",
        read_prels,
        _in_columns("topic", "document", "grade", "method", "probability"),
        names_assessors=False,
        sample=PRELS,
        has_probabilities=True,
    ),
    JudgmentFormat(
        "stratified",
        "Stratified qrels",
        "A line: topic 0 document stratum grade, -1 where not sampled: for a campaign without a draw.",
        read_stratified,
        _in_columns("topic", "iteration", "document", "stratum", "grade"),
        names_assessors=False,
        sample=STRATA,
    ),
)
DEFAULT_FORMAT = FORMATS[0].key


def judgment_format(key: str) -> JudgmentFormat:
    """Return the format of that key; ImportRefused for any other."""
    for one in FORMATS:
        if one.key == key:
            return one
    raise ImportRefused(f"file_format must be one of {', '.join(judgment_format_keys())}, not {key!r}")


def judgment_format_keys() -> list[str]:
    return [one.key for one in FORMATS]


def gold_format_choices() -> list[tuple[str, str]]:
    """Return key and label of the formats that gold answers come in."""
    return [(one.key, one.label) for one in FORMATS if one.sample is None]


def audit_format_choices() -> list[tuple[str, str]]:
    """Return key and label of the formats of gold answers that may become an audit of a campaign."""
    return [(one.key, one.label) for one in FORMATS if one.sample is None or one.has_probabilities]


def labels_format_choices() -> list[tuple[str, str]]:
    """Return key and label of the formats whose lines name assessors."""
    return [(one.key, one.label) for one in FORMATS if one.names_assessors]


def sample_format_choices() -> list[tuple[str, str]]:
    """Return key and label of the formats of samples."""
    return [(one.key, one.label) for one in FORMATS if one.sample is not None]


@dataclass(frozen=True)
class JudgmentFile:
    """The file being imported."""

    stream: MeteredSource
    name: str
    format: JudgmentFormat
    options: FileOptions = PLAIN

    def refuse(self, index: int, what: str, reason: str) -> None:
        refuse(self.name, self.place(index, what), reason)

    def place(self, index: int, what: str) -> Place:
        return self.format.place(self.stream.from_start(), self.name, index, what, self.options)


def parse_grade_map(text: str) -> dict[int, int | None]:
    """Return what grades of a file become: "1=3,2=3,3=2,4=1,5=0,-1=0" for Cranfield, whose best code is 1.

    "-2=" leaves a grade out; grades that it does not name stay. Raises ImportRefused.
    """
    try:
        return parse_grades(text)
    except ValueError as error:
        raise ImportRefused(str(error)) from None


def grades_in(
    source: Source,
    name: str,
    form: JudgmentFormat,
    options: FileOptions = PLAIN,
    faults: Faults | None = None,
) -> Counter[int]:
    """Return how often the file has each grade, in the order of grades; without faults, a wrong line is raised."""
    records = form.read(source, name, allows_repeats=True, faults=faults, options=options)
    found = Counter(record.grade for record in records if record.grade is not None)
    return Counter(dict(sorted(found.items())))
