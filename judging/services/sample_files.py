"""Samples in: judgments with the probability of every pair become a campaign's judgments and its draw."""

from collections.abc import Iterator, Mapping
from typing import Any

from django.db import connection, transaction

from judging.faults import Faults
from judging.file_options import FileOptions
from judging.formats.kinds import JudgmentFormat
from judging.models import IMPORTED_JUDGMENTS, Campaign, Import
from judging.samples import MethodCodes, SampledPair, SampleReader, UnsampledStratum
from judging.services.errors import ImportRefused
from judging.services.imported_samples import ImportedSample, record_sample
from judging.services.imports import add_table, made_now
from judging.services.judgment_formats import REJECT, JudgmentFile
from judging.services.judgment_rows import (
    INCOMING,
    add_assessors,
    add_judgments,
    find_pairs,
    grade_on_scale,
)
from judging.services.sources import EVERY, Progress, begin_import, copy_rows, open_source, refuse_faults
from judging.textfiles import Source
from touchstone.models import User, record

NOT_EMPTY = (
    "this campaign has items already, from a draw or from judgments: a sample is the only draw of its campaign; "
    "create a new campaign for it"
)
NOT_DRAWN = "DELETE FROM found WHERE grade IS NULL"
PAIRS = """
SELECT i.topic_id, i.doc_id, i.probability, w.item_id
  FROM incoming i LEFT JOIN wanted w ON w.ordinal = i.ordinal ORDER BY i.ordinal
"""


def import_sample(
    *,
    campaign: Campaign,
    source: Source,
    name: str,
    form: JudgmentFormat,
    source_name: str,
    grade_map: Mapping[int, int | None] | None,
    repeats: str,
    kind: str,
    method_codes: MethodCodes,
    options: FileOptions,
    progress: Progress | None,
    actor: User | None,
    made: Import | None,
) -> int:
    """Add a sample's judgments to an empty campaign, with its probabilities; return how many judgments there are.

    No line names an assessor: all of them are of one, who bears the name of the source.
    """
    if form.sample is None:
        raise ImportRefused(f"{form.key} is no format of samples")
    if repeats != REJECT:
        raise ImportRefused("a sample names every document once: repeats cannot be kept")
    with transaction.atomic(), open_source(source, name) as stream:
        begin_import(campaign.collection)
        made = made_now(
            made, collection=campaign.collection, campaign=campaign, kind="judgments", actor=actor
        )
        if campaign.items.exists():
            raise ImportRefused(NOT_EMPTY)
        file = JudgmentFile(stream, name, form, options)
        rows = _rows(file, form.sample, grade_map, set(campaign.scale.values()), source_name, method_codes)
        copy_rows(
            "incoming", f"{INCOMING}, probability double precision", _with_progress(rows, file, progress)
        )
        find_pairs(file, campaign.collection)
        with connection.cursor() as cursor:
            cursor.execute(NOT_DRAWN)
        assessors = add_assessors(campaign, source_name, kind)
        count, span = add_judgments(file, campaign)
        if not count:
            raise ImportRefused(f"{name}: no judgments in the file")
        facts = {"file": name, "sha256": stream.digest.hexdigest(), "n_bytes": stream.done}
        facts["import"] = str(made.pk)
        facts |= {"source": source_name, "file_format": form.key, "method_codes": method_codes}
        record(IMPORTED_JUDGMENTS, campaign, actor=actor, n_judgments=count, assessors=assessors, **facts)
        sample = _sample(campaign, form.key, method_codes, source_name, actor)
        record_sample(sample)
        add_table(made, file, "judgments", count, span)
        if progress:
            progress(stream.total, stream.total, f"{count:,} judgments")
    return count


Row = tuple[int, str, str, str, int | None, float]


def _rows(
    file: JudgmentFile,
    sample: SampleReader,
    grade_map: Mapping[int, int | None] | None,
    allowed: set[int],
    source_name: str,
    method_codes: MethodCodes,
) -> Iterator[Row]:
    """Yield what is copied into the database; what is not on the scale, or has no probability, is refused here."""
    faults = Faults()
    try:
        for pair in sample.read(file.stream, file.name, method_codes, faults, file.options):
            grade = _grade(pair, file, grade_map, allowed)
            yield pair.index, pair.topic_id, pair.doc_id, source_name, grade, pair.inclusion_probability
        refuse_faults(faults)
    except UnsampledStratum as fault:
        file.refuse(fault.index, "stratum", str(fault))


def _grade(
    pair: SampledPair, file: JudgmentFile, grade_map: Mapping[int, int | None] | None, allowed: set[int]
) -> int | None:
    if pair.grade is None:
        return None
    grade = grade_on_scale(pair.grade, pair.index, file, grade_map, allowed)
    if grade is None:
        file.refuse(pair.index, "grade", f"grade {pair.grade} was drawn: a sample cannot leave it out")
    return grade


def _with_progress(rows: Iterator[Row], file: JudgmentFile, progress: Progress | None) -> Iterator[Any]:
    """Yield the rows, and report progress in bytes of the file."""
    for number, row in enumerate(rows):
        if progress and number % EVERY == 0:
            progress(file.stream.done, file.stream.total, f"{number:,} pairs")
        yield row


def _sample(
    campaign: Campaign, file_format: str, method_codes: MethodCodes, source_name: str, actor: User | None
) -> ImportedSample:
    """Return what was copied, with the items that were made of it."""
    with connection.cursor() as cursor:
        cursor.execute(PAIRS)
        topic_ids, doc_ids, chances, items = zip(*cursor.fetchall(), strict=True)
    return ImportedSample(
        campaign, file_format, method_codes, source_name, topic_ids, doc_ids, chances, items, actor
    )
