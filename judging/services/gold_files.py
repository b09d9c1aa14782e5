"""Gold answers in, and how the documents with one were chosen among the judged documents of a campaign.

A gold answer of a judged item is a check of its labels. Where it is known, or declared, how these items were chosen,
the gold grades are also the judgments of an audit: they get slots of their own, judged by one assessor of the gold
tier, who bears the name of the source.
"""

import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from django.db import connection, transaction

from judging.faults import Faults
from judging.file_options import FileOptions
from judging.formats.kinds import JudgmentFormat
from judging.gold_choices import PROBABILITIES, UNKNOWN, gold_choice_keys
from judging.models import Assessor, Campaign, Collection, GoldAnswer, Import, Slot
from judging.services.complete_files import has_all
from judging.services.errors import ImportRefused
from judging.services.imported_samples import ImportedGold, record_gold
from judging.services.imports import add_table, made_now, rows_of
from judging.services.judgment_formats import DIGITS, JudgmentFile
from judging.services.judgment_rows import (
    INCOMING,
    add_assessors,
    add_audit_grades,
    add_gold,
    find_pairs,
    grade_on_scale,
    keep_one,
)
from judging.services.sources import Progress, begin_import, copy_rows, numbered_records, open_source
from judging.textfiles import Source
from judging.trec_tables import CHOSEN_METHOD, DRAWN_METHOD
from touchstone.models import User, record

NOT_COMPLETE = (
    "gold can be declared an audit only where the judgments of the campaign were imported as all there is; in other "
    "campaigns the gold tier audits a random sample"
)
AUDITED = (
    "an audit of this campaign was drawn, and its corrected numbers rest on that: gold cannot be declared an audit "
    "too"
)
DECLARED = "gold was declared an audit of this campaign already: it stays as declared"
OF_CAMPAIGN = """
CREATE TEMPORARY TABLE chosen ON COMMIT DROP AS
SELECT DISTINCT ON (n.id) n.id AS item_id, f.grade, i.probability, f.ordinal
  FROM found f JOIN incoming i ON i.ordinal = f.ordinal
  JOIN judging_item n ON n.campaign_id = %s AND n.topic_id = f.topic_id AND n.document_id = f.document_id
 ORDER BY n.id, f.ordinal
"""
NOT_CHOSEN = "DELETE FROM found WHERE grade IS NULL"
CHANCES = "SELECT item_id, probability, grade IS NOT NULL FROM chosen ORDER BY ordinal"
TWO_CHANCES = """
SELECT min(f.ordinal) FROM found f JOIN incoming i ON i.ordinal = f.ordinal
 GROUP BY f.topic_id, f.document_id
HAVING count(DISTINCT coalesce(i.probability, 0)) > 1 OR bool_or(f.grade IS NULL) AND bool_or(f.grade IS NOT NULL)
 ORDER BY 1 LIMIT 1
"""


def import_gold(
    *,
    collection: Collection,
    campaign: Campaign | None,
    source: Source,
    name: str,
    form: JudgmentFormat,
    source_name: str,
    grade_map: Mapping[int, int | None] | None,
    repeats: str,
    chosen: str,
    by_topic: bool,
    skips_unknown: bool,
    options: FileOptions,
    progress: Progress | None,
    actor: User | None,
    made: Import | None,
    say: Callable[[str], None],
) -> int:
    """Add a file's gold answers to the collection; return how many were new.

    `chosen` says how the documents with gold were chosen among the judged ones of the campaign: by known probabilities,
    uniformly (in every topic, if `by_topic`), or nobody knows. Unless nobody knows they become an audit of it.
    """
    is_audit = refuse_choice(campaign, chosen, by_topic=by_topic, form=form)
    allowed = set(campaign.scale.values() if campaign else DIGITS)
    with transaction.atomic(), open_source(source, name) as stream:
        begin_import(collection)
        made = made_now(made, collection=collection, campaign=campaign, kind="gold", actor=actor)
        if campaign is not None and is_audit:
            _refuse_second(campaign)
        file = JudgmentFile(stream, name, form, options)
        faults = Faults()
        repeating = (
            {} if form.sample else {"allows_repeats": repeats != "reject"}
        )  # no sample names a pair twice
        records = form.read(stream, name, **repeating, faults=faults, options=options)
        found = numbered_records(records, stream, progress, "gold answers", faults)
        rows = _rows(found, file, grade_map, allowed)
        copy_rows("incoming", f"{INCOMING}, probability double precision", rows)
        n_repeats = keep_one(repeats)
        n_unknown = find_pairs(file, collection, skips_unknown=skips_unknown)
        _refuse_two_chances(file)
        if campaign is not None and is_audit:
            _run("DROP TABLE IF EXISTS pg_temp.chosen")
            _run(OF_CAMPAIGN, campaign.pk)
        _run(NOT_CHOSEN)
        count, span = add_gold(file, made, source_name)
        facts = {
            "file": name,
            "sha256": stream.digest.hexdigest(),
            "n_bytes": stream.done,
            "source": source_name,
            "import": str(made.pk),
        }
        if n_unknown:
            facts["n_unknown"] = n_unknown
        if n_repeats:
            facts |= {"repeats": repeats, "n_repeats": n_repeats}
        record("imported gold answers", collection, actor=actor, n_gold_answers=count, **facts, **span)
        ids = span.get("rows", [None, None])
        add_table(made, file, "gold", count, rows_of(GoldAnswer, *ids))
        if campaign is not None and is_audit:
            say(_declare(campaign, file, source_name, chosen, by_topic, actor))
    return count


def refuse_choice(campaign: Campaign | None, chosen: str, *, by_topic: bool, form: JudgmentFormat) -> bool:
    """Return whether gold so chosen is an audit; raise ImportRefused for what contradicts itself."""
    if chosen not in gold_choice_keys():
        raise ImportRefused(f"gold_chosen must be one of {', '.join(gold_choice_keys())}, not {chosen!r}")
    if by_topic and chosen != "uniform":
        raise ImportRefused("by_topic belongs to gold that was chosen uniformly")
    if chosen == UNKNOWN.key:
        return False
    if campaign is None:
        raise ImportRefused("how gold was chosen is said of the judged documents of a campaign: name it")
    if chosen == PROBABILITIES.key and not form.has_probabilities:
        raise ImportRefused(f"{form.key} has no column of probabilities: use the format gold")
    return True


def _refuse_second(campaign: Campaign) -> None:
    if not has_all(campaign):
        raise ImportRefused(NOT_COMPLETE)
    of_gold = Slot.objects.filter(campaign=campaign, purpose=Slot.Purpose.AUDIT)
    if of_gold.exists():
        is_declared = of_gold.filter(assessor__user__username__startswith="imported-").exists()
        raise ImportRefused(DECLARED if is_declared else AUDITED)


Row = tuple[int, str, str, str, int | None, float | None]


def _rows(
    found: Iterator[tuple[int, Any]],
    file: JudgmentFile,
    mapping: Mapping[int, int | None] | None,
    allowed: set[int],
) -> Iterator[Row]:
    """Yield what is copied into the database: an empty grade is a document that was not chosen."""
    for index, one in found:
        grade = None if one.grade is None else grade_on_scale(one.grade, index, file, mapping, allowed)
        if grade is None and one.grade is not None:
            continue  # left out
        who = getattr(one, "assessor", "")
        if getattr(one, "method", DRAWN_METHOD) == CHOSEN_METHOD:
            file.refuse(
                index, "method", "method 0 was chosen, not drawn: its probability is not that of an audit"
            )
        yield index, one.topic_id, one.doc_id, who, grade, _chance(one)


def _chance(one: Any) -> float | None:
    """Return the probability of a record of gold, or of a sample; None where it says none."""
    chance: float | None = getattr(one, "inclusion_probability", None) or getattr(one, "probability", None)
    return chance


def _refuse_two_chances(file: JudgmentFile) -> None:
    with connection.cursor() as cursor:
        cursor.execute(TWO_CHANCES)
        row = cursor.fetchone()
    if row:
        file.refuse(
            row[0], "document", "the document occurs again with another probability, or without a grade"
        )


def _declare(
    campaign: Campaign, file: JudgmentFile, source_name: str, chosen: str, by_topic: bool, actor: User | None
) -> str:
    """Make the gold grades of the campaign's items the judgments of an audit; return what is said of it."""
    with connection.cursor() as cursor:
        cursor.execute(CHANCES)
        rows: list[tuple[uuid.UUID, float | None, bool]] = cursor.fetchall()
    gold = [item for item, _, is_gold in rows if is_gold]
    if not gold:
        raise ImportRefused(f"{file.name}: no judged document of the campaign has a gold grade in the file")
    _run("UPDATE incoming SET assessor = %s", f"gold of {source_name}")
    add_assessors(campaign, source_name, Assessor.Kind.HUMAN, tier=Assessor.Tier.GOLD)
    add_audit_grades(campaign)
    return record_gold(
        ImportedGold(
            campaign=campaign,
            chosen=chosen,
            by_topic=by_topic,
            source_name=source_name,
            gold_items=gold,
            probability={item: chance for item, chance, _ in rows if chance is not None},
            lists_all=file.format.sample is None,
            actor=actor,
        )
    )


def _run(sql: str, *parameters: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters or None)
