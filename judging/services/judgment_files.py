"""Judgments in: as gold answers of a collection, as the judgments of a campaign's assessors, or as a sample."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from django.db import transaction

from judging.faults import Faults
from judging.file_options import PLAIN, FileOptions
from judging.formats.kinds import JudgmentFormat
from judging.gold_choices import PROBABILITIES, UNKNOWN
from judging.models import IMPORTED_JUDGMENTS, Assessor, Campaign, Collection, GoldAnswer, Import
from judging.samples import METHOD_CODES, MethodCodes
from judging.services.complete_files import record_all, refuse_what_is_there, wants_all
from judging.services.errors import ImportRefused
from judging.services.gold_files import import_gold, refuse_choice
from judging.services.imports import add_table, made_now
from judging.services.judgment_formats import (
    DEFAULT_FORMAT,
    REJECT,
    REPEATS,
    JudgmentFile,
    judgment_format,
    parse_grade_map,
)
from judging.services.judgment_rows import (
    INCOMING,
    add_assessors,
    add_judgments,
    find_pairs,
    grade_on_scale,
    keep_one,
)
from judging.services.other_kinds import telling_other_kinds
from judging.services.sample_files import import_sample
from judging.services.sources import (
    Progress,
    begin_import,
    copy_rows,
    longest,
    numbered_records,
    open_source,
    refuse,
)
from judging.textfiles import Source
from touchstone.models import User, record

AUDIT_OF_SAMPLE = (PROBABILITIES.key, METHOD_CODES[0])  # how a sample is read as gold


def import_judgments(
    *,
    source: Source,
    name: str,
    collection: Collection | None = None,
    campaign: Campaign | None = None,
    file_format: str = DEFAULT_FORMAT,
    as_gold: bool = False,
    source_name: str = "",
    grade_map: Mapping[int, int | None] | str | None = None,
    repeats: str = REJECT,
    kind: str = Assessor.Kind.HUMAN,
    method_codes: MethodCodes = METHOD_CODES[0],
    complete: bool | None = False,
    gold_chosen: str = UNKNOWN.key,
    by_topic: bool = False,
    skips_unknown: bool = False,
    options: FileOptions = PLAIN,
    warn: Callable[[str], None] = lambda _: None,
    progress: Progress | None = None,
    actor: User | None = None,
    made: Import | None = None,
) -> int:
    """Add a file's judgments; return how many were new.

    As gold: they become gold answers of the collection (of the campaign's collection, if only that is named); a pair
    whose known grade differs is an error. Otherwise they become judgments of a campaign, each a counted one of the k
    its item wants; `source_name` tells whose names they are: the same name of the same source is the same assessor.
    `repeats`: what becomes of an assessor's second grade of a pair in the file: "reject" refuses the file, "first" and
    "last" keep that one. A format of samples fills a campaign that has nothing yet, and records the probabilities of
    its pairs as a draw; `method_codes` as in `judging.samples.prel_probabilities`. `complete`: the file is all there
    is, whose items want as many judgments as they have there; None says so of a campaign that has nothing yet.
    `gold_chosen`, `by_topic`: how gold was chosen among the campaign's judged documents, `judging.gold_choices`; `warn`
    is told what that assumes. `skips_unknown`: rows of topics and documents that the collection lacks are left out, not
    refused. `options` say how the file is read; their grade map counts where no other is given.
    """
    if repeats not in REPEATS:
        raise ImportRefused(f"repeats must be one of {', '.join(REPEATS)}, not {repeats!r}")
    if as_gold and kind == Assessor.Kind.MACHINE:
        raise ImportRefused("a judgment of a machine assessor is never a gold answer")
    form = _checked_format(file_format, as_gold, campaign, name, method_codes, gold_chosen)
    if collection is None:
        if campaign is None:
            raise ImportRefused("name a collection or a campaign to import judgments into")
        collection = campaign.collection
    mapping = parse_grade_map(grade_map) if isinstance(grade_map, str) else grade_map
    source_name = (source_name or name)[: longest(GoldAnswer, "source")]
    common: dict[str, Any] = {
        "campaign": campaign,
        "source": source,
        "name": name,
        "form": form,
        "source_name": source_name,
        "grade_map": mapping or options.grade_map,
        "options": options,
        "repeats": repeats,
        "progress": progress,
        "actor": actor,
        "made": made,
    }
    is_all = wants_all(campaign, complete, as_gold=as_gold or form.sample is not None)
    is_audit = refuse_choice(campaign, gold_chosen, by_topic=by_topic, form=form)
    if is_audit and not as_gold:
        raise ImportRefused("how gold was chosen is said of gold answers alone")
    with telling_other_kinds([(source, name)], "judgments"):
        if form.sample is not None and not as_gold:
            if skips_unknown:
                raise ImportRefused("a sample is imported whole: nothing of it can be left out")
            return import_sample(kind=kind, method_codes=method_codes, **common)
        common["skips_unknown"] = skips_unknown
        if as_gold:
            return import_gold(
                collection=collection, chosen=gold_chosen, by_topic=by_topic, say=warn, **common
            )
        return _import_labels(kind=kind, is_all=is_all, **common)


def _import_labels(
    *,
    campaign: Campaign,
    source: Source,
    name: str,
    form: JudgmentFormat,
    source_name: str,
    grade_map: Mapping[int, int | None] | None,
    repeats: str,
    kind: str,
    is_all: bool,
    skips_unknown: bool,
    options: FileOptions,
    progress: Progress | None,
    actor: User | None,
    made: Import | None,
) -> int:
    """Add the judgments of a file that names assessors; return how many."""
    with transaction.atomic(), open_source(source, name) as stream:
        begin_import(campaign.collection)
        made = made_now(
            made, collection=campaign.collection, campaign=campaign, kind="judgments", actor=actor
        )
        refuse_what_is_there(campaign, is_all=is_all)
        file = JudgmentFile(stream, name, form, options)
        faults = Faults()
        records = form.read(stream, name, allows_repeats=repeats != REJECT, faults=faults, options=options)
        found = numbered_records(records, stream, progress, "judgments", faults)
        copy_rows("incoming", INCOMING, _rows(found, file, grade_map, set(campaign.scale.values())))
        n_repeats = keep_one(repeats)
        n_unknown = find_pairs(file, campaign.collection, skips_unknown=skips_unknown)
        facts: dict[str, Any] = {
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
        if is_all:
            facts["is_complete"] = True
        assessors = add_assessors(campaign, source_name, kind)
        count, span = add_judgments(file, campaign, is_complete=is_all)
        record(IMPORTED_JUDGMENTS, campaign, actor=actor, n_judgments=count, assessors=assessors, **facts)
        if is_all:
            record_all(campaign, file, source_name, count, actor)
        add_table(made, file, "judgments", count, span)
    return count


def _checked_format(
    file_format: str,
    as_gold: bool,
    campaign: Campaign | None,
    name: str,
    method_codes: str,
    gold_chosen: str,
) -> JudgmentFormat:
    form = judgment_format(file_format)
    if method_codes not in METHOD_CODES:
        raise ImportRefused(f"method_codes must be one of {', '.join(METHOD_CODES)}, not {method_codes!r}")
    if method_codes != METHOD_CODES[0] and not (form.sample and form.sample.has_method_codes):
        raise ImportRefused(f"method_codes are for prels: {file_format} has none")
    if as_gold and form.sample is not None and not form.has_probabilities:
        raise ImportRefused(
            f"{file_format} holds a sample: import it as the judgments of a campaign, not as gold answers"
        )
    if as_gold and form.sample is not None and (gold_chosen, method_codes) != AUDIT_OF_SAMPLE:
        raise ImportRefused(
            f"{file_format} holds a sample: import it as the judgments of a campaign, or as gold answers that were "
            "chosen with the probabilities in the file, as they are recorded"
        )
    if not as_gold and campaign is None:
        raise ImportRefused("judgments that are not gold answers need a campaign: name one")
    if not as_gold and not form.names_assessors and form.sample is None:
        refuse(name, (1, 1), f"{file_format} names no assessors: import it as gold answers")
    return form


Row = tuple[int, str, str, str, int]


def _rows(
    found: Iterator[tuple[int, Any]],
    file: JudgmentFile,
    mapping: Mapping[int, int | None] | None,
    allowed: set[int],
) -> Iterator[Row]:
    """Yield what is copied into the database; a grade that is not on the scale is refused, one left out is not here."""
    for index, one in found:
        grade = grade_on_scale(one.grade, index, file, mapping, allowed)
        if grade is not None:
            yield index, one.topic_id, one.doc_id, one.assessor, grade
