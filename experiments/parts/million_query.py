"""Counts and sums of the judgments of the Million Query track of 2009, from its files of the prels format."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from experiments.parts.rows import Row, row
from judging.trec import PrelRecord, read_prels

SIX = 5e-7
BOTH_OR_FIRST = (0, 2)  # the codes of documents that the track's other method selected, alone or as well


def records(files: Iterable[Path]) -> Iterator[PrelRecord]:
    for file in files:
        with file.open("rb") as source:
            yield from read_prels(source, file.name)


def prels_rows(files: Iterable[Path]) -> list[Row]:
    """Return the rows: counts, and the sums of R-hat = sum x / pi over topics.

    The paper has 638 topics; the published file has more. What the codes of the methods mean is not documented, so both
    readings of the probability are given: as printed, and 1 for documents that another method than sampling selected.
    """
    estimates: dict[str, float] = defaultdict(float)
    certain: dict[str, float] = defaultdict(float)
    n_lines, n_relevant = 0, 0
    found: set[str] = set()
    for record in records(files):
        n_lines += 1
        is_relevant = record.grade > 0
        n_relevant += is_relevant
        if is_relevant:
            found.add(record.topic_id)
        estimates[record.topic_id] += is_relevant / record.inclusion_probability
        chance = 1.0 if record.method in BOTH_OR_FIRST else record.inclusion_probability
        certain[record.topic_id] += is_relevant / chance
    return [
        row("judgments", None, n_lines, expected=34_534, tolerance=0),
        row("topics", None, len(estimates), expected=687, tolerance=0, note="the paper has 638"),
        row("relevant", None, n_relevant, expected=8_948, tolerance=0),
        row("share relevant", 0.26, n_relevant / max(1, n_lines), expected=0.2591, tolerance=5e-5),
        row("topics without a relevant document", None, len(estimates) - len(found), expected=95, tolerance=0),
        row("sum of R-hat", None, sum(estimates.values()), expected=79_991.459987, tolerance=SIX),
        row("sum of R-hat, methods 0 and 2 at probability 1", None, sum(certain.values()),
            expected=78_526.653205, tolerance=SIX),
        row("R-hat of topic 20001", None, estimates["20001"], expected=220.290989, tolerance=SIX),
        row("R-hat of topic 20002", None, estimates["20002"], expected=98.990450, tolerance=SIX),
    ]  # fmt: skip
