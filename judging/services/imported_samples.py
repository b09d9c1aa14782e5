"""Samples of judgments and gold that were chosen elsewhere, on their way from the import to whoever records them.

What was drawn, and how, is recorded by an app that imports this one. So it registers its recorder here when it is
loaded, and the import calls it before it commits.
"""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from judging.models import Campaign
from judging.samples import MethodCodes
from touchstone.models import User


@dataclass(frozen=True, eq=False)
class ImportedSample:
    """All pairs of a sample, in the order of its file, and where it came from.

    `item_ids` are those of the drawn pairs, which have their judgments; None where a pair was not drawn. `is_complete`:
    no sample, but all there is; every pair has its judgments, with certainty.
    """

    campaign: Campaign
    file_format: str
    method_codes: MethodCodes
    source_name: str
    topic_ids: Sequence[str]
    doc_ids: Sequence[str]
    inclusion_probability: Sequence[float]
    item_ids: Sequence[uuid.UUID | None]
    actor: User | None
    is_complete: bool = False
    n_judgments: int | None = None  # of a complete file


@dataclass(frozen=True, eq=False)
class ImportedGold:
    """Gold grades of judged items, which have their judgments already, and how these items were chosen.

    `chosen` is the key of a `judging.gold_choices.GoldChoice`; `probability` that of items, chosen or not, as the file
    says. With `lists_all` it must say so of every judged item; a sample lists the chosen ones alone.
    """

    campaign: Campaign
    chosen: str
    by_topic: bool
    source_name: str
    gold_items: Sequence[uuid.UUID]
    probability: Mapping[uuid.UUID, float]
    lists_all: bool
    actor: User | None


Recorder = Callable[[ImportedSample], None]
_recorders: list[Recorder] = []
_gold_recorders: list[Callable[[ImportedGold], str]] = []


def record_samples_with(recorder: Recorder) -> None:
    """Let this function record every imported sample, in the transaction of the import."""
    if recorder not in _recorders:
        _recorders.append(recorder)


def record_sample(sample: ImportedSample) -> None:
    if not _recorders:
        raise RuntimeError("no app records the probabilities of samples")
    for recorder in _recorders:
        recorder(sample)


def record_gold_with(recorder: Callable[[ImportedGold], str]) -> None:
    """Let this function record gold that is declared an audit, in the transaction of the import, and say so."""
    if recorder not in _gold_recorders:
        _gold_recorders.append(recorder)


def record_gold(gold: ImportedGold) -> str:
    """Have the gold recorded; return what is to be said of it."""
    if not _gold_recorders:
        raise RuntimeError("no app records audits")
    return " ".join(recorder(gold) for recorder in _gold_recorders)
