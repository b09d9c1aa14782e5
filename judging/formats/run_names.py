"""What names of files tell: the format where the content does not, and the name of a run that has none of its own."""

from dataclasses import replace
from pathlib import PurePath

from judging.formats.kinds import RUNS, Format, JudgmentFormat, RunFormat
from judging.formats.table import FORMATS, RUN_FORMATS
from judging.recognise import Recognition, recognise_file
from judging.run_columns import RunColumns
from judging.run_tables import RunFile
from judging.textfiles import Source

COMPRESSED = (".gz", ".gzip")
UNNAMED = "run"
DEFAULT = RUN_FORMATS[0]


def read_named_run(form: RunFormat, file: RunFile, name: str = "") -> RunColumns:
    """Return the run of a file, under that name, or the one in the file, or that of the file."""
    return _with_name(form.read(file, name), file)


def read_named_beginning(
    form: RunFormat, file: RunFile, depth: int, name: str = ""
) -> tuple[RunColumns, int]:
    """Return the first ranks of a run, named as by `read_named_run`, and how many rows all of it has.

    Of each topic ``depth`` ranks or more are there: all of them in a format that is only read as a whole.
    """
    if form.read_first is None:
        whole = read_named_run(form, file, name)
        return whole, len(whole.scores)
    first, n_rows = form.read_first(file, name, depth)
    return _with_name(first, file), n_rows


def _with_name(run: RunColumns, file: RunFile) -> RunColumns:
    return run if run.run_tag else replace(run, run_tag=name_of_file(file.name))


def run_format_of(key: str | None, source: Source, name: str) -> RunFormat:
    """Return the run's format: of that key, or as its beginning tells it; what is unclear is TREC's."""
    return format_in(recognise_file(source, name), key, name)


def format_in(seen: Recognition | None, key: str | None = None, name: str = "") -> RunFormat:
    """Return the format of that key, the one of runs that was recognised or would do as well, or that of the name.

    >>> format_in(None).key, format_in(None, name="bm25.csv").key
    ('run', 'pyterrier')
    """
    wanted = [key] if key else [seen.file_format, *seen.rivals] if seen else []
    named = [one.key for one in formats_by_name(name, RUNS)]
    return next((one for keys in (wanted, named) for one in RUN_FORMATS if one.key in keys), DEFAULT)


def formats_by_name(name: str, holds: str) -> list[Format]:
    """Return the formats of a kind whose files end as this name does; of tables of judgments the one that wants least.

    >>> [one.key for one in formats_by_name("a.pairs.csv", "judgments")]
    ['pairs']
    >>> [one.key for one in formats_by_name("a.csv.gz", "judgments")]
    ['gold']
    """
    ending = without_compression(name)
    ends = {
        one.key: max((len(end) for end in one.extensions if ending.endswith(end)), default=0)
        for one in FORMATS
        if one.holds == holds
    }
    longest = max(ends.values(), default=0)
    found = [one for one in FORMATS if longest and ends.get(one.key) == longest]
    tables: list[Format] = [one for one in found if isinstance(one, JudgmentFormat) and one.has_probabilities]
    return tables if len(found) > 1 and tables else found


def run_format_keys() -> list[str]:
    return [one.key for one in RUN_FORMATS]


def without_compression(name: str) -> str:
    """Return a file's name without the ending of a compressed file."""
    return next((name.removesuffix(ending) for ending in COMPRESSED if name.endswith(ending)), name)


def name_of_file(name: str) -> str:
    """Return a file's name without folder and endings as one word.

    >>> name_of_file("runs/my bm25.json.gz")
    'my_bm25'
    """
    base = PurePath(without_compression(name)).name
    endings = [end for one in FORMATS if one.holds == RUNS for end in one.extensions]
    stem = next((base.removesuffix(end) for end in (*endings, ".txt") if base.endswith(end)), base)
    return "_".join(stem.split()) or UNNAMED
