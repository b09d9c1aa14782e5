"""What the table of formats says of one: of a run, of judgments, of topics."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, ClassVar

import polars as pl

from judging.file_options import FileOptions
from judging.places import Place
from judging.run_columns import RunColumns
from judging.run_tables import RunFile
from judging.samples import SampleReader
from judging.textfiles import Source

RUNS, JUDGMENTS, TOPICS = "runs", "judgments", "topics"  # what a file holds, as judging.import_choices.KINDS
PlaceOf = Callable[[Source, str, int, str, FileOptions], Place]


@dataclass(frozen=True, kw_only=True)
class Format:
    """A form in which files come and go.

    Attributes
    ----------
    key, label, help : str
        As stored and spelled by API and command; its name on the screen; what a line holds.
    tool : str
        The tools whose files these are.
    recognised : str
        How a file's beginning tells it, in words; "" where it must be named.
    extensions : tuple of str
        How names of such files end: which one a new file has, and a hint where the content leaves several.
    write : callable, optional
        Writes the frame of `judging.formats.writing` to a stream; None where the format only comes in.
    """

    key: str
    label: str
    help: str
    tool: str = ""
    recognised: str = ""
    extensions: tuple[str, ...] = ()
    write: Callable[[pl.DataFrame, BinaryIO], None] | None = None

    holds: ClassVar[str]  # RUNS, JUDGMENTS or TOPICS


@dataclass(frozen=True, kw_only=True)
class RunFormat(Format):
    """A file of one run.

    `read` gives the columns of a run, and `find_faults` adds to a file's faults; both take the run's tag, or "" for
    the one that the file names. `names_run`: it names one. `read_first` takes a depth too, and gives a run's first
    ranks and how many rows all of it has; None where only the whole file tells ranks.
    """

    holds = RUNS
    read: Callable[[RunFile, str], RunColumns]
    find_faults: Callable[[RunFile, str], None]
    read_first: Callable[[RunFile, str, int], tuple[RunColumns, int]] | None = None
    names_run: bool = False


@dataclass(frozen=True, kw_only=True)
class JudgmentFormat(Format):
    """A file of judgments.

    Attributes
    ----------
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
    imported_as : str
        The key of the format as which an import reads such a file, if that is another one.
    """

    holds = JUDGMENTS
    read: Callable[..., Iterator[Any]]
    place: PlaceOf
    names_assessors: bool = False
    sample: SampleReader | None = None
    has_probabilities: bool = False
    usual_map: str = ""
    imported_as: str = ""


@dataclass(frozen=True, kw_only=True)
class TopicFormat(Format):
    """A file of topics; `reader` is its key in `judging.topics.FORMATS`."""

    holds = TOPICS
    reader: str
