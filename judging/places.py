"""Where the record of an index stands in its file.

Readers stream and yield bare records; where one stands is asked only when something else refuses it, in a second pass.
"""

from itertools import islice

from judging import records, topics
from judging.file_options import PLAIN, FileOptions
from judging.json_files import Element, json_object
from judging.judgment_objects import is_read, object_lines
from judging.judgment_tables import cell_place
from judging.textfiles import Source
from judging.trec import read_fields

Place = tuple[int, int] | tuple[int, int, str]  # line and column, and the sheet of a spreadsheet


def place_of_field(
    source: Source, name: str, index: int, width: int, column: int, options: FileOptions = PLAIN
) -> Place:
    """Return the place of a column in lines of that width."""
    lines = read_fields(source, name, width, "", encoding=options.encoding)
    fields = next(islice(lines, index, None))
    return fields.number, fields.column(column)


def place_of_cell(source: Source, name: str, index: int, what: str, options: FileOptions = PLAIN) -> Place:
    """Return the place in a table of judgments; `what` is topic, document, assessor or grade."""
    return cell_place(source, name, index, what, options)


def place_of_topic(
    source: Source, name: str, index: int, file_format: str | None, options: FileOptions = PLAIN
) -> Place:
    """Return the place of a topic."""
    reading = topics.Reading(name, options=options)
    _, line, column = next(islice(topics.placed_topics(source, file_format, reading), index, None))
    return line, column, reading.sheet


def place_of_object(source: Source, name: str, index: int, what: str, options: FileOptions = PLAIN) -> Place:
    """Return the place of a JSON object: `what` of it is asked for is not told apart."""
    line = next(islice(object_lines(source, name, None, options), index, None))
    return line.number, line.column if isinstance(line, Element) else 1


def place_of_umbrela(source: Source, name: str, index: int, what: str, options: FileOptions = PLAIN) -> Place:
    """Return the place of a judgment of umbrela, of those that it could read."""
    lines = (line for line in object_lines(source, name, None, options) if is_read(json_object(line, name)))
    return next(islice(lines, index, None)).number, 1


def place_of_document(
    source: Source, name: str, index: int, file_format: str | None, options: FileOptions = PLAIN
) -> Place:
    """Return the place of a document."""
    reading = records.Reading(name, options=options)
    next(islice(records.placed_documents(source, file_format, reading), index, None))
    return reading.place
