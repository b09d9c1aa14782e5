"""The sample that a file of somebody else's judgments holds: with which probability each of its pairs was drawn."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from judging.faults import Faults
from judging.file_options import PLAIN, FileOptions
from judging.textfiles import Source
from judging.trec import NOT_SAMPLED, PrelRecord, StratifiedRecord, read_prels, read_stratified

MethodCodes = Literal["recorded", "track"]
METHOD_CODES: tuple[MethodCodes, ...] = get_args(MethodCodes)
# In prels: 0 chosen as a minimal test collection, 1 sampled, 2 both, 4 sampled.
CHOSEN, CHOSEN_AND_SAMPLED = 0, 2


@dataclass(frozen=True, slots=True)
class SampledPair:
    """A pair that could be drawn, with its probability in (0, 1] and its place in the file.

    `grade` is None where the pair was not drawn.
    """

    index: int
    topic_id: str
    doc_id: str
    grade: int | None
    inclusion_probability: float


class UnsampledStratum(ValueError):
    """A stratum of a topic without a sampled document; `index` is the place of its first document."""

    def __init__(self, index: int, topic_id: str, stratum: int) -> None:
        super().__init__(
            f"stratum {stratum} of topic {topic_id} has no sampled document: its probability would be 0"
        )
        self.index = index


def prel_probabilities(
    records: Sequence[PrelRecord], method_codes: MethodCodes = "recorded"
) -> list[float | None]:
    """Return the probability of every record, None where its topic is left out.

    "recorded" takes every probability as it stands. "track" does as the Million Query track's program: what has method
    0 or 2 is certain whatever the file says, and topics that have method 0 alone are left out.

    Examples
    --------
    >>> records = [PrelRecord("1", "a", 1, 2, 0.5), PrelRecord("2", "a", 1, 0, 1.0)]
    >>> prel_probabilities(records), prel_probabilities(records, "track")
    ([0.5, 1.0], [1.0, None])
    """
    if method_codes not in METHOD_CODES:
        raise ValueError(f"method_codes must be one of {METHOD_CODES}, got {method_codes!r}")
    if method_codes == "recorded":
        return [record.inclusion_probability for record in records]
    sampled = {record.topic_id for record in records if record.method != CHOSEN}
    certain = (CHOSEN, CHOSEN_AND_SAMPLED)
    return [
        (1.0 if record.method in certain else record.inclusion_probability)
        if record.topic_id in sampled
        else None
        for record in records
    ]


def read_prel_sample(
    source: Source,
    name: str,
    method_codes: MethodCodes,
    faults: Faults | None = None,
    options: FileOptions = PLAIN,
) -> Iterator[SampledPair]:
    """Yield the pairs of prels; topics that the method codes leave out are not among them."""
    records = list(read_prels(source, name, faults=faults, options=options))
    if faults:
        return  # the probabilities of a part would be others
    for index, (record, chance) in enumerate(
        zip(records, prel_probabilities(records, method_codes), strict=True)
    ):
        if chance is not None:
            yield SampledPair(index, record.topic_id, record.doc_id, record.grade, chance)


def read_stratified_sample(
    source: Source, name: str, faults: Faults | None = None, options: FileOptions = PLAIN
) -> Iterator[SampledPair]:
    """Yield the pairs of a pool in strata: the probability is the part of its topic's stratum that was sampled.

    Raises UnsampledStratum.

    >>> import io
    >>> data = io.BytesIO(b"1 0 a 1 2\\n1 0 b 1 -1")
    >>> [(pair.doc_id, pair.grade, pair.inclusion_probability) for pair in read_stratified_sample(data, "example")]
    [('a', 2, 0.5), ('b', None, 0.5)]
    """
    records = list(read_stratified(source, name, faults=faults, options=options))
    if faults:
        return
    for index, (record, chance) in enumerate(zip(records, stratum_probabilities(records), strict=True)):
        grade = None if record.grade == NOT_SAMPLED else record.grade
        yield SampledPair(index, record.topic_id, record.doc_id, grade, chance)


def stratum_probabilities(records: Sequence[StratifiedRecord]) -> list[float]:
    """Return of every record the part of its topic's stratum that was sampled. Raises UnsampledStratum."""
    size = Counter((record.topic_id, record.stratum) for record in records)
    drawn = Counter((record.topic_id, record.stratum) for record in records if record.grade != NOT_SAMPLED)
    chances = []
    for index, record in enumerate(records):
        cell = record.topic_id, record.stratum
        if not drawn[cell]:
            raise UnsampledStratum(index, *cell)
        chances.append(drawn[cell] / size[cell])
    return chances


@dataclass(frozen=True)
class SampleReader:
    """How a format of samples is read; `has_method_codes`: its lines say by which method a pair was chosen."""

    read: Callable[
        ..., Iterator[SampledPair]
    ]  # (source, name, method codes, faults, options), as in `judging.trec`
    has_method_codes: bool


PRELS = SampleReader(read_prel_sample, has_method_codes=True)
STRATA = SampleReader(
    lambda source, name, _, faults=None, options=PLAIN: read_stratified_sample(source, name, faults, options),
    has_method_codes=False,
)
