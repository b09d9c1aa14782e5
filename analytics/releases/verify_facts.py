"""The facts of a release as arrays: what could be drawn, what was, who said what, and what the runs return.

Part of every release, beside verify.py; NumPy is all it needs.
"""

import gzip
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

if __package__:
    from analytics.releases.verify_looks import declared_bound
else:  # in a release, the files lie beside each other
    from verify_looks import declared_bound  # type: ignore

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Row = dict[str, Any]
Pair = tuple[str, str]
FACT_FILES = ("items.jsonl", "judgments.jsonl", "assessors.jsonl", "runs.json")


@dataclass(frozen=True, eq=False)
class GoldColumns:
    """The gold gain that is predicted of each pair, by what was known before it was judged, and after."""

    before: Floats  # [frame]
    after: Floats  # [item], of those that were open to audits
    spread: Floats  # [item], the variance that is predicted of the gold gain


@dataclass(frozen=True, eq=False)
class FittedWith:
    """What predictions of gold gains were fitted with, but for the judgments; arrays are [frame]."""

    features: Floats  # [frame, column]
    ridge: Floats  # [column]
    fold: Ints
    prior: Floats
    n_learned: int  # batches that fits learn from
    fewest_learned: int  # what the record of the draws allows
    most_learned: int
    gold: Mask  # audited pairs whose gold grade they may learn from


@dataclass(frozen=True, eq=False)
class Facts:
    """What a release says, as arrays: of the frame (all pairs that could be drawn), of judged items, of labels."""

    gains: Floats  # [grade]
    relevant_grade: int
    topics: list[str]
    runs: list[str]  # those whose file is in the release: of the others nothing can be computed again
    all_runs: bool  # no run is missing
    places: dict[Pair, int]  # of the frame's pairs (topic, document)
    topic: Ints  # [frame], places in topics
    drawn_in: Ints  # [frame], the first batch that drew the pair, from 1; 0 = none
    first_probability: Floats  # [batch, frame], the chance that this batch is the first to draw it
    single: Floats  # [batch, frame], Q of one draw with replacement; of other draws there is none
    times: Ints  # [batch, frame], how often it was drawn so
    predictions: dict[str, Floats]  # [frame]: the gain expected of each pair, made without its own judgments
    gold_answer: Ints  # [frame], -1 where none is known
    returned: list[tuple[Ints, Ints]]  # [run], places in the frame and their ranks
    outside: list[Ints]  # [run], ranks at which it returns what could not be drawn
    item: Ints  # [item], judged pairs: places in the frame
    bronze_class: Ints  # [item], what its judgments say together, in classes
    audited: Mask  # [item]
    audit_grade: Ints  # [item], 0 where not audited
    audit_probability: Floats  # [item], 0 where no audit could take it
    label_item: Ints  # [label], judgments that count: places in item
    label_grade: Ints
    label_assessor: Ints  # places in assessors
    label_is_check: Mask  # a gold check counts it, so that no audit counts it again for its assessor
    check_assessor: Ints  # [check], judgments of pairs whose right grade was known: places in assessors
    check_true: Ints
    check_given: Ints
    assessors: list[str]  # pseudonyms of all whose errors are measured
    tiers: list[str]  # [assessor]
    is_foreign: bool  # the sample was imported without its pool: what is not in it counts as 0
    fixed_size: bool  # a fixed number was drawn of every topic; else each pair by itself
    order_is_random: bool  # what is judged so far is a random part of what was drawn
    n_planned: int  # items that audits will take in all
    declared_bound: float | None  # at a declared look: of all of them, in standard errors
    is_by_gold_judges: (
        bool  # every judgment that counts is of the gold tier: the numbers rest on them, and on no audit
    )
    gold: dict[str, GoldColumns] = field(default_factory=dict)  # by number; none of an older release
    fitted_with: FittedWith | None = None
    has_whole_topics: bool = (
        False  # topics were drawn, and with each all of its documents that were to be judged
    )


# -- reading -----------------------------------------------------------------------------------------------------


def json_lines(path: Path) -> Iterator[Row]:
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def read_facts(folder: Path, estimates: Row, *, with_runs: bool = True) -> Facts:
    """Return the arrays from FACT_FILES, the runs, and what estimates.json says."""
    draw, scale = estimates["draw"], estimates["scale"]
    topics = {topic: place for place, topic in enumerate(draw["topics"])}
    frame = _columns(row for row in json_lines(folder / "items.jsonl") if row["in_frame"])
    pairs = list(zip(frame["topic_id"], frame["doc_id"], strict=True))
    places = {pair: place for place, pair in enumerate(pairs)}
    judged = np.flatnonzero(_numbers(frame["judged"], 0))
    items = {pairs[place]: number for number, place in enumerate(judged.tolist())}
    runs = json.loads((folder / "runs.json").read_text("utf-8"))
    files = [run for run in runs if run["file"] and with_runs]
    ranks = [_ranks(folder / run["file"], places, topics, draw["depth"]) for run in files]
    judgments = _judgments(folder, items)
    tiers = np.array(judgments["tiers"])[judgments["label_assessor"]]
    return Facts(
        gains=np.array([grade["gain"] for grade in scale["grades"]], dtype=np.float64),
        relevant_grade=scale["relevant_grade"],
        topics=list(topics),
        runs=[run["run_id"] for run in files],
        all_runs=len(files) == len(runs) + estimates.get("unpublished_runs", 0),
        places=places,
        topic=np.array([topics[topic] for topic in frame["topic_id"]], dtype=np.int64),
        drawn_in=_numbers(frame["drawn_in"], 0),
        first_probability=_first_probability(frame, draw),
        single=_of_batches(frame, "single", 0.0),
        times=_of_batches(frame, "times", 0),
        predictions={name: _numbers(frame[name], 0.0) for name in frame if name.startswith("prediction_")},
        gold_answer=_numbers(frame.get("gold_answer", [None] * len(pairs)), -1),
        returned=[inside for inside, _ in ranks],
        outside=[outside for _, outside in ranks],
        item=judged,
        bronze_class=_numbers(frame["bronze_class"], 0)[judged],
        audited=_numbers(frame["audited"], 0)[judged] > 0,
        audit_grade=_numbers(frame["audit_grade"], 0)[judged],
        audit_probability=_numbers(frame["audit_probability"], 0.0)[judged],
        **judgments,
        is_foreign=draw["selection"] == "foreign",
        fixed_size=draw["selection"] == "pareto",
        order_is_random=draw["order_is_random"],
        n_planned=estimates["n_planned"],
        declared_bound=declared_bound(estimates.get("looks", [])),
        is_by_gold_judges=estimates.get("is_by_gold_judges", False) and bool((tiers == "gold").all()),
        gold={
            name.removeprefix("gold_before_"): GoldColumns(
                _numbers(frame[name], 0.0),
                *(_numbers(frame[name.replace("before", part)], 0.0)[judged] for part in ("after", "spread")),
            )
            for name in frame
            if name.startswith("gold_before_")
        },
        fitted_with=_fitted_with(frame, estimates.get("fitted_with"), folder),
        has_whole_topics=bool(estimates.get("whole_topics")),
    )


def _fitted_with(frame: dict[str, list[Any]], told: Row | None, folder: Path) -> FittedWith | None:
    if told is None:
        return None
    features = _of_batches(frame, "feature", 0.0).T
    ridge, n_learned = np.array(told["ridge"], dtype=np.float64), told["n_learned"]
    gold = _numbers(frame.get("fitted_gold", frame["audited"]), 0) > 0
    fold, prior = _numbers(frame["fold"], 0), _numbers(frame["prior"], 0.0)
    allowed = batches_to_learn_from(folder, frame, n_learned)
    return FittedWith(features, ridge, fold, prior, n_learned, *allowed, gold)


def batches_to_learn_from(folder: Path, frame: dict[str, list[Any]], told: int) -> tuple[int, int]:
    """Return the fewest and the most batches that predictions may learn from, by the record of the draws.

    All, where no batch learned. Else those before the first that learned; and, where each that learned says "refit",
    those that follow and are judged: without a gap at least, all at most (nobody may be able to judge an item).
    """
    draws = [json.loads(path.read_text("utf-8")) for path in (folder / "draws").glob("draw-*.json")]
    if not draws:
        return told, told
    learned = [draw for draw in sorted(draws, key=lambda draw: draw["batch"]) if draw.get("learned_from")]
    if not learned:
        return len(draws), len(draws)
    first = learned[0]["learned_from"]
    if any(draw["parameters"].get("learning") != "refit" for draw in learned):
        return first, first
    drawn_in, judged = _numbers(frame["drawn_in"], 0), _numbers(frame["judged"], 0)
    waiting = drawn_in[(drawn_in > 0) & (judged == 0)]
    complete = int(waiting.min()) - 1 if waiting.size else len(draws)
    return max(first, complete), len(draws)


def _columns(rows: Iterable[Row]) -> dict[str, list[Any]]:
    """Return the values by column; every row has all columns."""
    columns: dict[str, list[Any]] = defaultdict(list)
    for row in rows:
        for name, value in row.items():
            columns[name].append(value)
    return columns


def _numbers(values: list[Any], empty: int | float) -> NDArray[Any]:
    """Return a column as numbers; `empty` stands where there is none, and its type is the column's."""
    known = (empty if value is None else value for value in values)
    return np.fromiter(known, dtype=np.float64 if isinstance(empty, float) else np.int64, count=len(values))


def _of_batches(frame: dict[str, list[Any]], name: str, empty: int | float) -> NDArray[Any]:
    """Return the columns name_1, name_2, ... as [batch, frame]."""
    columns = [column for column in frame if column.startswith(f"{name}_")]
    columns.sort(key=lambda column: int(column.removeprefix(f"{name}_")))
    rows = [_numbers(frame[column], empty) for column in columns]
    return np.array(rows).reshape(len(rows), len(frame["topic_id"]))


def _first_probability(frame: dict[str, list[Any]], draw: Row) -> Floats:
    """Return [batch, frame] the chance that this batch is the first to draw a pair.

    Batches share one random number a pair, so together they draw with the largest of their probabilities; batches
    drawn with replacement are independent.
    """
    own = _of_batches(frame, "batch", 0.0)
    with_replacement = draw["selection"] == "replacement"
    together = 1 - np.cumprod(1 - own, axis=0) if with_replacement else np.maximum.accumulate(own, axis=0)
    return np.asarray(np.diff(together, axis=0, prepend=0.0))


def _ranks(
    path: Path, places: dict[Pair, int], topics: dict[str, int], depth: int
) -> tuple[tuple[Ints, Ints], Ints]:
    """Return the places in the frame that a run returns with their ranks, and its ranks outside; both to the depth."""
    inside: list[tuple[int, int]] = []
    outside: list[int] = []
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            topic, _, document, rank, _ = line.split(" ", 4)
            if int(rank) > depth or topic not in topics:
                continue
            place = places.get((topic, document))
            if place is None:
                outside.append(int(rank))
            else:
                inside.append((place, int(rank)))
    table = np.array(inside, dtype=np.int64).reshape(-1, 2)
    return (table[:, 0], table[:, 1]), np.array(outside, dtype=np.int64)


def _judgments(folder: Path, items: dict[Pair, int]) -> Row:
    """Return the labels and the gold checks."""
    people = {
        row["assessor"]: row["tier"] for row in json_lines(folder / "assessors.jsonl") if row["in_matrices"]
    }
    who = {assessor: place for place, assessor in enumerate(people)}
    labels: list[tuple[int, int, int, int]] = []
    checks: list[tuple[int, int, int]] = []
    for row in json_lines(folder / "judgments.jsonl"):
        if row["label"]:
            is_check = int(row["check_grade"] is not None)
            labels.append(
                (items[row["topic_id"], row["doc_id"]], row["grade"], who[row["assessor"]], is_check)
            )
        if row["check_grade"] is not None:
            checks.append((who[row["assessor"]], row["check_grade"], row["grade"]))
    of_labels = np.array(labels, dtype=np.int64).reshape(-1, 4).T
    of_checks = np.array(checks, dtype=np.int64).reshape(-1, 3).T
    return {
        **dict(zip(("label_item", "label_grade", "label_assessor"), of_labels[:3], strict=True)),
        "label_is_check": of_labels[3] > 0,
        **dict(zip(("check_assessor", "check_true", "check_given"), of_checks, strict=True)),
        "assessors": list(people),
        "tiers": list(people.values()),
    }


# -- chances -----------------------------------------------------------------------------------------------------


def draw_probability(facts: Facts, members: Mask) -> Floats:
    """Return for every pair of the frame the chance that it is drawn and among `members`, a mask over the items.

    What is judged so far is a random part of what each batch drew of a topic. So the chance is, summed over batches,
    that the batch is the first to draw the pair, times the part of its items of the topic that are members. Where a
    batch drew nothing of a topic, its part over all topics stands in; but where a topic has drawn items and no member
    yet, only a batch that is complete counts.
    """
    shape = (len(facts.first_probability), len(facts.topics))
    drawn, inside = facts.drawn_in > 0, facts.item[members]
    n_drawn, n = np.zeros(shape), np.zeros(shape)
    np.add.at(n_drawn, (facts.drawn_in[drawn] - 1, facts.topic[drawn]), 1)
    np.add.at(n, (facts.drawn_in[inside] - 1, facts.topic[inside]), 1)
    whole = n_drawn.sum(axis=1)
    everywhere = np.divide(n.sum(axis=1), whole, out=np.ones(shape[0]), where=whole > 0)[:, None]
    reached = (n.sum(axis=0) > 0) | (n_drawn.sum(axis=0) == 0)
    share = np.where(reached | (everywhere == 1), everywhere, 0.0)
    share = np.divide(n, n_drawn, out=share, where=n_drawn > 0)
    return np.asarray((facts.first_probability * share[:, facts.topic]).sum(axis=0))


def not_covered(facts: Facts, members: Mask, chance: Floats) -> bool:
    """Return whether the members cannot stand for the whole frame, so that nothing is estimated from them."""
    if ((facts.first_probability > 0).any(axis=0) & (chance <= 0)).any():
        return True
    topic, n = facts.topic, len(facts.topics)
    inside = np.bincount(topic[facts.item[members]], minlength=n)
    drawn = np.bincount(topic[facts.drawn_in > 0], minlength=n)
    return not facts.order_is_random and bool(((inside > 0) & (inside < drawn)).any())


def returned_by(facts: Facts) -> Ints:
    """Return by pair of the frame how many runs return it."""
    n = facts.topic.size
    return np.asarray(
        sum((np.bincount(place, minlength=n) for place, _ in facts.returned), np.zeros(n, dtype=np.int64))
    )
