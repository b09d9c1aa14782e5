"""Runs, labels, gold and a draw as the arrays that numbers are computed from.

Which pairs make the frame, with which chance each was labelled and audited, follows from what is there:

- labels without a draw: every labelled pair, each with certainty;
- labels and a draw: every pair that a run returns or that was drawn, with the probabilities of the draw;
- gold alone, with probabilities: the same, and gold is both draw and label.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from analytics.numbers.arrays import Arrays, Floats, Ints
from sampling.gold_samples import UNIFORM, declaration_words
from sampling.measures.sparse import SparseRuns
from sampling.pooling import prior_utility
from sampling.prediction import folds
from sampling.selections import COMPLETE, Selection, selection_of
from touchstone_ir.columns import InputRefused
from touchstone_ir.fault_places import pair_refused

SEED = 20261121  # of folds and of the bootstrap: the same files give the same numbers every time
# Stands for a chance that nobody wrote down: only that it is above 0 is ever read of a pair that was not drawn.
UNKNOWN = 0.5
PAIR = ["topic", "doc"]
NOTHING = "nothing is known of any pair: give labels=, gold= or both"


@dataclass(frozen=True)
class FileDraw:
    """The only batch of what a file says."""

    selection_kind: Selection
    parameters: Mapping[str, Any]
    batch: int = 1
    has_whole_topics: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class FileArrays(Arrays):
    """Somebody's files as arrays. Runs are all pooled: nothing came later than anything else."""

    run_names: tuple[str, ...]
    n_topics_returned: tuple[int, ...]  # in how many of the topics each run returns something
    topics: tuple[str, ...]
    assessors: tuple[str, ...]

    @property
    def run_ids(self) -> Sequence[str]:
        """Return the tags of the runs, in their order."""
        return self.run_names

    @property
    def n_assessors(self) -> int:
        """Return how many assessors there are."""
        return len(self.assessors)

    @property
    def has_random_order(self) -> bool:
        """Return whether what is judged first is left to chance: of a file nobody knows."""
        return True

    @property
    def ranks_of_pool(self) -> SparseRuns:
        """Return the ranks [run, frame] of all runs."""
        return self.returned


@dataclass(frozen=True)
class Knowledge:
    """What is known of pairs, checked: labels, gold and the draw as tables, each None where it was not given."""

    labels: pl.DataFrame | None
    gold: pl.DataFrame | None
    draw: pl.DataFrame | None
    assumption: str = ""

    @property
    def has_gold_alone(self) -> bool:
        return self.labels is None

    @property
    def is_drawn(self) -> bool:
        """Return whether the labelled pairs are a sample of those that could have been labelled."""
        return self.draw is not None

    @property
    def main_name(self) -> str:
        """Return which argument brought the labels, or the gold that stands for them."""
        return "gold" if self.has_gold_alone else "labels"

    @property
    def main(self) -> pl.DataFrame:
        """Return the labels, or the gold that stands for them."""
        if self.labels is not None:
            return self.labels
        if self.gold is None:
            raise InputRefused(NOTHING)
        return self.gold


def knowledge_of(
    labels: pl.DataFrame | None,
    gold: pl.DataFrame | None,
    draw: pl.DataFrame | None,
    gold_chosen: str | None,
) -> Knowledge:
    """Return labels, gold and draw, checked against each other.

    Raises
    ------
    InputRefused
        Neither labels nor gold; gold of pairs that were never labelled or drawn; gold without probabilities, unless
        it is declared to be a random part of the labelled pairs.
    """
    if labels is None and gold is None:
        raise InputRefused(NOTHING)
    if gold_chosen not in (None, UNIFORM):
        raise InputRefused(f"gold_chosen must be {UNIFORM!r} or left out, got {gold_chosen!r}")
    if draw is not None:
        draw = _with_probabilities(draw)
        _require_within(labels, draw, "labels", "was not drawn")
    if gold is None:
        return Knowledge(None if labels is None else _graded_pairs(labels), None, draw)
    _require_once(gold)
    graded = _graded_pairs(gold)
    if labels is None:
        if "probability" not in gold.columns:
            raise InputRefused(
                "gold has no column probability: without labels nothing can stand for what was not checked"
            )
        return Knowledge(None, graded, draw if draw is not None else graded.select(*PAIR, "probability"))
    labels = _graded_pairs(labels)
    _require_within(gold, labels, "gold", "has no label")
    _require_filled(gold, labels)
    if "probability" in gold.columns and gold["probability"].null_count() == 0:
        if gold_chosen is not None:
            raise InputRefused("gold has probabilities of its own: leave out gold_chosen=")
        return Knowledge(labels, gold, draw)
    if gold_chosen is None:
        raise InputRefused(
            "gold has no column probability: nothing can be corrected unless it is known how its documents were "
            f"chosen. If they are a random part of the labelled ones, say gold_chosen={UNIFORM!r}"
        )
    n_labelled = labels.select(PAIR).n_unique()
    chance = graded.height / n_labelled
    uniform = graded.with_columns(probability=pl.lit(chance))
    return Knowledge(labels, uniform, draw, declaration_words(UNIFORM, graded.height, n_labelled))


def _require_once(gold: pl.DataFrame) -> None:
    twice = gold.select(PAIR).is_duplicated()
    if twice.any():
        row = gold.filter(twice).row(0, named=True)
        words = (
            f"document {row['doc']} of topic {row['topic']} has several grades: join them, as aggregate does"
        )
        raise pair_refused("gold", (row["topic"], row["doc"]), words)


def _require_filled(gold: pl.DataFrame, labels: pl.DataFrame) -> None:
    """Refuse gold that is not filled in. A file of all labelled pairs says with empty grades which were not chosen."""
    empty = gold.filter(pl.col("grade").is_null())
    if not empty.height or not labels.join(gold, on=PAIR, how="anti").height:
        return
    row = empty.row(0, named=True)
    words = (
        f"document {row['doc']} of topic {row['topic']} was chosen and has no grade yet ({empty.height} in all): "
        "fill them in, for those that are filled in first are no random part"
    )
    raise pair_refused("gold", (row["topic"], row["doc"]), words)


def _graded_pairs(labels: pl.DataFrame) -> pl.DataFrame:
    """Return the labels that hold a grade: an empty one is a pair that waits for it."""
    return labels.filter(pl.col("grade").is_not_null())


def _with_probabilities(draw: pl.DataFrame) -> pl.DataFrame:
    if "probability" not in draw.columns or draw["probability"].null_count():
        raise InputRefused("the draw has a pair without a probability")
    return draw


def _require_within(some: pl.DataFrame | None, others: pl.DataFrame, what: str, words: str) -> None:
    if some is None:
        return
    beyond = some.join(others.select(PAIR).unique(), on=PAIR, how="anti", maintain_order="left")
    if beyond.height:
        row = beyond.row(0, named=True)
        rest = f" ({beyond.height} such lines)" if beyond.height > 1 else ""
        words = f"document {row['doc']} of topic {row['topic']} {words}{rest}"
        raise pair_refused(what, (row["topic"], row["doc"]), words)


def arrays_of(runs: pl.DataFrame, known: Knowledge, depth: int, relevant_grade: int) -> FileArrays:
    """Return the arrays of some runs, down to a depth.

    Raises
    ------
    InputRefused
        No topic that both the runs and the judgments have.
    """
    returned_topics = set(runs["topic"].unique())
    topics = sorted(known.main["topic"].unique())
    if not topics:
        raise InputRefused(f"{known.main_name}: there is no judgment")
    if not set(topics) & returned_topics:
        topic, doc = known.main.select(PAIR).row(0)
        words = (
            "the runs and the judgments have no common topic: are their ids spelled alike? "
            f"{topic!r} is one here, {min(returned_topics)!r} one of the runs"
        )
        raise pair_refused(known.main_name, (topic, doc), words)
    alike = set(runs.filter(pl.col("topic").is_in(topics))["run"].unique())
    if strange := sorted(set(runs["run"].unique()) - alike):
        raise InputRefused(
            f"the run {strange[0]} and the judgments have no common topic: are their ids spelled alike?"
        )
    if known.draw is not None:  # a topic of which nothing was drawn is one of the mean all the same
        topics = sorted(returned_topics | set(known.draw["topic"].unique()))
    names = runs["run"].unique(maintain_order=True).to_list()
    shared = runs.filter(pl.col("topic").is_in(topics)).group_by("run").agg(pl.col("topic").n_unique())
    n_shared = dict(shared.iter_rows())
    near = runs.filter((pl.col("rank") <= depth) & pl.col("topic").is_in(topics)).select("run", *PAIR, "rank")
    _require_ranks(near)
    frame = _frame(near, known)
    placed = near.join(frame.select(*PAIR, "item"), on=PAIR, how="left", maintain_order="left")
    run_place = pl.DataFrame({"run": names}).with_row_index("run_index")
    placed = placed.join(run_place, on="run", how="left", maintain_order="left")
    inside = placed.filter(pl.col("item").is_not_null()).sort("item", "run_index")
    returned = SparseRuns(
        len(names),
        frame.height,
        inside["run_index"].to_numpy().astype(np.int32),
        inside["item"].to_numpy().astype(np.int32),
        inside["rank"].to_numpy().astype(np.int32),
    )
    outside = placed.filter(pl.col("item").is_null()).sort("run_index", "topic", "rank")
    beyond = [outside.filter(pl.col("run_index") == place)["rank"].to_numpy() for place in range(len(names))]
    place_of = {topic: place for place, topic in enumerate(topics)}
    topic_index = frame["topic"].replace_strict(place_of, return_dtype=pl.Int64).to_numpy()
    chances = frame["chance"].to_numpy()
    frame = frame.with_columns(
        prior=prior_utility(returned, depth),
        fold=folds(frame["topic"], frame["doc"], SEED),
        inclusion_probability=chances,
        drawn_in=frame["drawn"].cast(pl.Int64),
    )
    labels = _labels(frame, known)
    judged = labels.judged
    audit = _audit(frame, judged, known)
    drawn = frame["drawn"].to_numpy()
    n_drawn = np.bincount(topic_index[drawn], minlength=len(topics))[None]
    grades = [int(labels.grade.max(initial=0)), int(audit.grade.max(initial=0)), relevant_grade, 1]
    return FileArrays(
        draw=FileDraw(
            selection_of("poisson") if known.is_drawn else COMPLETE,
            {"depth": depth, "pooled": tuple(names) if known.is_drawn else (), "topics": topics},
        ),
        n_topics=len(topics),
        n_grades=max(grades) + 1,
        relevant_grade=relevant_grade,
        frame=frame,
        returned=returned,
        ranks_outside=[ranks.astype(np.int64) for ranks in beyond],
        topic_index=topic_index,
        gold_grade=np.full(frame.height, -1, dtype=np.int64),
        judged=judged,
        batch=np.zeros(judged.size, dtype=np.int64),
        first_probability=chances[None],
        n_drawn=n_drawn,
        n_learned=1,
        label_item=labels.item,
        label_assessor=labels.assessor,
        label_grade=labels.grade,
        audited=audit.audited,
        audit_grade=audit.grade,
        audit_probability=audit.probability,
        fitted_gold=audit.audited,
        n_audits_planned=None,
        n_audit_pending=0,
        order_is_random=False,
        last_judgment_id=SEED,
        audit_assumption=known.assumption,
        is_by_gold_judges=known.has_gold_alone,
        run_names=tuple(names),
        n_topics_returned=tuple(n_shared.get(name, 0) for name in names),
        topics=tuple(topics),
        assessors=labels.names,
    )


def _require_ranks(near: pl.DataFrame) -> None:
    """Refuse ranks that do not count from 1, each document and each rank once."""
    wrong = near["rank"].min() is not None and int(near["rank"].min()) < 1  # type: ignore[arg-type]  # whole numbers
    for names in (["run", *PAIR], ["run", "topic", "rank"]):
        wrong = wrong or near.select(names).is_duplicated().any()
    if wrong:
        raise InputRefused(
            "runs: a topic's ranks must count from 1, each once: read_run makes them from the scores"
        )


def _frame(near: pl.DataFrame, known: Knowledge) -> pl.DataFrame:
    """Return the pairs of the frame, by topic and document: item, drawn, and chance of being labelled."""
    if known.draw is None:
        pairs = known.main.select(PAIR).unique().sort(PAIR)
        certain = pairs.with_columns(drawn=pl.lit(value=True), chance=pl.lit(1.0))
        return certain.with_row_index("item")
    drawn = known.draw.select(*PAIR, "probability")
    pairs = pl.concat([near.select(PAIR), drawn.select(PAIR)]).unique().sort(PAIR)
    frame = pairs.join(drawn, on=PAIR, how="left", maintain_order="left")
    return frame.select(
        *PAIR,
        drawn=pl.col("probability").is_not_null(),
        chance=pl.col("probability").fill_null(UNKNOWN),
    ).with_row_index("item")


@dataclass(frozen=True, eq=False)
class _LabelArrays:
    judged: Ints
    item: Ints
    assessor: Ints
    grade: Ints
    names: tuple[str, ...]


def _labels(frame: pl.DataFrame, known: Knowledge) -> _LabelArrays:
    given = known.main
    if "assessor" not in given.columns:
        given = given.with_columns(assessor=pl.lit("judge"))
    rows = given.join(frame.select(*PAIR, "item"), on=PAIR, how="inner", maintain_order="left")
    judged, item = np.unique(rows["item"].to_numpy().astype(np.int64), return_inverse=True)
    names, assessor = np.unique(rows["assessor"].fill_null("").to_numpy(), return_inverse=True)
    return _LabelArrays(
        judged,
        item.astype(np.int64),
        assessor.astype(np.int64),
        rows["grade"].to_numpy(),
        tuple(names.tolist()),
    )


@dataclass(frozen=True, eq=False)
class _AuditArrays:
    audited: Any
    grade: Ints
    probability: Floats


def _audit(frame: pl.DataFrame, judged: Ints, known: Knowledge) -> _AuditArrays:
    """Return what the gold says of the judged items.

    A file of gold may leave out the pairs that were not checked. That they could have been is then taken for granted,
    unless all that are in the file were certain to be checked: then the others had no chance.
    """
    nothing = np.zeros(judged.size)
    if known.gold is None or known.has_gold_alone:
        return _AuditArrays(nothing > 0, nothing.astype(np.int64), nothing)
    pairs = frame.select(PAIR)[judged]
    rows = pairs.join(
        known.gold.select(*PAIR, "grade", "probability"), on=PAIR, how="left", maintain_order="left"
    )
    listed = known.gold["probability"]
    unlisted = 0.0 if bool((listed == 1).all()) else UNKNOWN
    return _AuditArrays(
        rows["grade"].is_not_null().to_numpy(),
        rows["grade"].fill_null(0).to_numpy().astype(np.int64),
        rows["probability"].fill_null(unlisted).to_numpy(),
    )
