"""Imported draws: samples drawn elsewhere, with the probability of every pair; files that are all there is."""

import hashlib
import secrets
from collections.abc import Sequence

import numpy as np
import polars as pl
from django.core.files.base import ContentFile
from django.db import connection, transaction

from judging.kinds import ITEM_COLUMNS
from judging.services.errors import ImportRefused
from judging.services.imported_samples import ImportedSample
from judging.services.sources import tell_planner
from sampling.design_options import FOREIGN as FOREIGN_SAMPLE
from sampling.draws import permanent_random_numbers
from sampling.frames import columns_file
from sampling.measures.spelling import MAX_CUTOFF
from sampling.models import Draw, DrawEntry
from sampling.prediction import folds
from sampling.selections import COMPLETE, FOREIGN
from touchstone.files import store
from touchstone.models import record

MEASURE = "DCG@10"  # what adjudication weighs items by; a foreign sample was drawn for no measure of ours
NO_SEED = 0
EVEN_PRIOR = 0.5  # of a complete file nothing is known before its judgments


def record_foreign_draw(sample: ImportedSample) -> Draw:
    """Record the sample as the only draw of its campaign, with an entry for each of its items.

    The frame has the pairs of the file and no others. Each counts as drawn independently, with its recorded
    probability, as nobody knows better; predictions are 0. Of a file that is all there is every pair is certain, and
    has a fold: what audits bring is predicted across folds.
    """
    campaign = sample.campaign
    with transaction.atomic():
        if campaign.draws.exists():
            raise ImportRefused("this campaign has a draw: a sample is the only draw of its campaign")
        if not campaign.has_random_order:
            raise ImportRefused(
                "this campaign judges by what it tells, and a sample is judged already: choose the random order"
            )
        seed = secrets.randbits(62) if sample.is_complete else NO_SEED
        frame = _frame(sample, seed)
        content = columns_file(frame)
        n_drawn = int(frame["drawn_in"].sum())
        made = Draw.objects.create(
            campaign=campaign,
            batch=1,
            question=FOREIGN_SAMPLE.key,
            method=FOREIGN_SAMPLE.key,
            selection=COMPLETE.key if sample.is_complete else FOREIGN.key,
            parameters={
                "file_format": sample.file_format,
                "method_codes": sample.method_codes,
                "source": sample.source_name,
                "measure": MEASURE,
                "depth": MAX_CUTOFF,  # nobody knows how deep the pool was: no rank is too deep to look at
                "runs": [],
                "topics": frame["topic_id"].unique().sort().to_list(),
                "pooled": _known_runs(sample),
                **({"judgments": sample.n_judgments} if sample.is_complete else {}),
            },
            seed=seed,
            frame=store("frames", ContentFile(content), ".parquet"),
            frame_sha256=hashlib.sha256(content).hexdigest(),
            n_frame=frame.height,
            n_drawn=n_drawn,
            drawn_by=sample.actor,
        )
        _add_entries(made, sample)
        record("drawn", campaign, actor=sample.actor, n_drawn=n_drawn, design=made.question, batch=1)
    return made


def _known_runs(sample: ImportedSample) -> list[str]:
    """Return the runs that were there before a complete file was imported: only they may tell of its documents."""
    return (
        list(sample.campaign.collection.runs.values_list("run_id", flat=True)) if sample.is_complete else []
    )


def _frame(sample: ImportedSample, seed: int) -> pl.DataFrame:
    """Return the frame, topic by topic; a column that says nothing here is 0."""
    nothing = np.zeros(len(sample.topic_ids))
    prior, number, fold = nothing, nothing, nothing.astype(np.int64)
    if sample.is_complete:
        prior = np.full(nothing.size, EVEN_PRIOR)
        fold = folds(sample.topic_ids, sample.doc_ids, seed)
        number = permanent_random_numbers(sample.topic_ids, sample.doc_ids, seed)
    is_drawn = np.array([item is not None for item in sample.item_ids])
    probability = np.array(sample.inclusion_probability, dtype=np.float64)
    frame = pl.DataFrame(
        {
            "topic_id": pl.Series(list(sample.topic_ids), dtype=pl.String),
            "doc_id": pl.Series(list(sample.doc_ids), dtype=pl.String),
            "prior": prior,
            "fold": fold.astype(np.uint8),
            "random_number": number,
            "batch_1": probability,
            "times_1": is_drawn.astype(np.uint32),
            "inclusion_probability": probability,
            "drawn_in": is_drawn.astype(np.uint16),
        }
    )
    return frame.sort(ITEM_COLUMNS)


def _add_entries(draw: Draw, sample: ImportedSample) -> None:
    """Record the probability of every drawn item, by COPY: a sample may have a million."""
    names: Sequence[str] = ("draw_id", "item_id", "inclusion_probability", "times")
    sql = f"COPY {DrawEntry._meta.db_table} ({', '.join(names)}) FROM STDIN"
    pairs = zip(sample.item_ids, sample.inclusion_probability, strict=True)
    with connection.wrap_database_errors, connection.cursor() as cursor, cursor.copy(sql) as copy:
        for item_id, probability in pairs:
            if item_id is not None:
                copy.write_row((draw.pk, item_id, probability, 1))
    tell_planner(DrawEntry)
