"""The answers as they come, typed. Fields that a newer server adds are in the dictionaries, too."""

from typing import Any, Literal, TypedDict

Answer = dict[str, Any]  # of what has no type of its own here


class Job(TypedDict):
    """Background work: `state` is queued, running, done, failed or cancelled."""

    id: str
    kind: str
    state: str
    done: int
    total: int
    note: str
    result: Answer
    error: str


class Estimate(TypedDict):
    """A value with its 95 % confidence interval, or the reason why there is none. With `against`: run minus against."""

    run: str
    against: str | None
    measure: str
    method: str
    value: float | None
    standard_error: float | None
    low: float | None
    high: float | None
    p_value: float | None
    unbounded_value: float | None  # before it was cut off at the measure's range
    unbounded_low: float | None
    unbounded_high: float | None
    n: int
    n_positive: int | None
    judged_share: float | None
    gold_share: float | None
    outside_low: float | None  # of the ends, what documents that could not be judged may be worth
    outside_high: float | None
    refusal: str
    warning: str


class Measure(TypedDict):
    name: str
    kind: str
    ir_measures: str  # its name there, for the same value of the qrels
    is_usual: bool


class Measures(TypedDict):
    campaign: str
    measures: list[Measure]
    computation: Answer | None


class ClaimOfPair(TypedDict):
    """What one claim says of a difference: `p_adjusted` is for the comparisons of the family."""

    claim: str
    interval_low: float | None
    interval_high: float | None
    t: float | None
    degrees_of_freedom: float | None
    p: float | None
    p_adjusted: float | None
    significant: bool
    effect_size: float | None
    effect_size_refusal: str


class Pair(ClaimOfPair):
    """The corrected difference of two runs: the claim that is made, and the other one."""

    run: str
    against: str
    measure: str
    value: float | None
    low: float | None
    high: float | None
    p_value: float | None  # for these topics, as low and high
    family: str
    n_family: int
    other: ClaimOfPair
    n: int
    verdict: str
    refusal: str


class Comparison(ClaimOfPair):
    measure: str
    run: str
    against: str
    verdict: str
    family: str
    n_family: int
    other: ClaimOfPair
    estimates: list[Estimate]


class RankedRun(TypedDict):
    run: str
    value: float
    low: float
    high: float
    rank: int
    rank_low: int
    rank_high: int
    rank_alone_low: int
    rank_alone_high: int
    probabilities: list[float]


class Ranking(TypedDict):
    measure: str
    method: str
    runs: list[RankedRun]
    tau: dict[str, float] | None
    refusal: str


class RunEstimate(ClaimOfPair):
    run: str
    measure: str
    against: str | None
    as_of: int | None
    is_from_upload: bool
    values: list[Estimate]
    differences: list[Estimate]
    verdict: str
    family: str
    n_family: int
    other: ClaimOfPair


class Release(TypedDict):
    id: str
    version: str
    title: str
    state: str
    job: str | None
    n_bytes: int | None
    sha256: str
    merkle_root: str
    withdrawn_at: str | None


class NamedTopic(TypedDict):
    title: str


class Topic(NamedTopic, total=False):
    description: str
    narrative: str


class NamedDocument(TypedDict):
    title: str


class Document(NamedDocument, total=False):
    text: str


class Item(TypedDict):
    """What to judge: answer it under its `token` within `lease_seconds`."""

    token: str
    topic: Topic
    document: Document
    lease_seconds: int


Obstacle = Literal["", "unreadable", "language", "topic", "harmful", "other", "failed"]


class SubmissionKey(TypedDict):
    """The lease that a judgment answers, and a name of your own for it: sent again it is the same judgment."""

    token: str
    client_token: str


class Submission(SubmissionKey, total=False):
    """A judgment to send: a grade, or the obstacle that kept it from being judged."""

    grade: int | None
    obstacle: Obstacle
    comment: str
    active_milliseconds: int


class Status(TypedDict):
    """200: it is stored."""

    token: str | None
    status: int


class Outcome(Status, total=False):
    """What became of a judgment that was sent; where `status` is not 200, `type`, `title` and `detail` say why."""

    grade: int | None
    obstacle: Obstacle
    type: str
    title: str
    detail: str


class Judgment(TypedDict):
    """A row of the log: who gave which grade to which document. None ever changes; the highest `sequence` counts."""

    id: int
    item: str
    topic_id: str
    doc_id: str
    assessor: str  # the user name for managers, for researchers a pseudonym
    tier: str
    kind: str
    purpose: str | None
    sequence: int
    grade: int | None
    obstacle: Obstacle
    comment: str
    active_milliseconds: int
    document_version: int | None
    topic_version: int | None
    created_at: str
