"""A sample of judgments that was drawn elsewhere, on its way from the import to whoever records probabilities.

What was drawn, and how, is recorded by an app that imports this one. So it registers its recorder here when it is
loaded, and the import calls it before it commits.
"""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from judging.models import Campaign
from judging.samples import MethodCodes
from touchstone.models import User


@dataclass(frozen=True, eq=False)
class ImportedSample:
    """All pairs of a sample, in the order of its file, and where it came from.

    `item_ids` are those of the drawn pairs, which have their judgments; None where a pair was not drawn.
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


Recorder = Callable[[ImportedSample], None]
_recorders: list[Recorder] = []


def record_samples_with(recorder: Recorder) -> None:
    """Let this function record every imported sample, in the transaction of the import."""
    if recorder not in _recorders:
        _recorders.append(recorder)


def record_sample(sample: ImportedSample) -> None:
    if not _recorders:
        raise RuntimeError("no app records the probabilities of samples")
    for recorder in _recorders:
        recorder(sample)
