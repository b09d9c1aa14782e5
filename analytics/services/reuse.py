"""May a run be scored with a campaign's judgments, also one that came after the draw? How surely, and what is lacking.

Everything here is a property of what was drawn and of what the run returns: it can be said before a number is read.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

from analytics.estimation.estimate import FEWEST_ITEMS, Z95, Refusal, too_few
from analytics.estimation.reuse import Reusability, reusability
from analytics.frames import Floats, _first_drawn
from analytics.services.outlook import reuse_outlook, topics_of
from analytics.services.outside import JudgedPool, OutsideWorth, outside_worth
from judging.kinds import ITEM_COLUMNS
from judging.models import Campaign, Run
from judging.rankings import Rankings, read_rankings, top
from judging.services.errors import Refused
from sampling.frames import load_frame, mean_gains, newest_draw, runs_learned_from
from sampling.measures.families import Measure, grade_gains, run_weights
from sampling.measures.kinds import Linear
from sampling.measures.registry import parse_linear
from sampling.models import Draw
from sampling.pooling import ranks_in_pairs
from sampling.prediction import posterior_prior
from sampling.selections import NOT_BY_DOCUMENT, POOL_UNKNOWN
from touchstone.files import local

MOST_COMPARED = 12  # runs of the draw that say what half-width is usual
SHOWN_OUTSIDE = 5


class ReuseRefused(Refused):
    status = 409
    title = "These judgments cannot answer this question"


@dataclass(frozen=True)
class ReuseQuestion:
    """The value of one run in a linear measure, or how far it is above another run's."""

    run: str
    measure: str
    against: str = ""

    @property
    def runs(self) -> tuple[str, ...]:
        return (self.run, self.against) if self.against else (self.run,)


@dataclass(frozen=True)
class Answer:
    """What the judgments say of what is asked, under the prior of relevance that the draw recorded.

    A half-width is that of the 95 % confidence interval, judgments taken as free of error but in `corrected`;
    `half_width` once all that was drawn is judged, `half_width_now` with what is judged so far. None where `refusal`
    (or `refusal_now`) says why.
    """

    n_documents: int  # that the asked value depends on
    n_outside: int  # of these, how many could not be judged
    share_outside: float  # of the weight
    examples_outside: tuple[tuple[str, str], ...]
    n_drawn: int  # items drawn among the documents
    n_judged: int
    expected_judgments: float
    effective_judgments: float
    half_width: float | None
    half_width_now: float | None
    relative_variance: float | None
    relative_reason: str
    refusal: str
    refusal_now: str
    too_few: str  # drawn, for an interval: the results page would refuse
    usual_half_width: float | None  # of the runs that were there at the draw
    outside: (
        OutsideWorth | None
    )  # what the documents are worth that could not be judged; None where all could be
    corrected: dict[str, Any]  # the corrected number, assessors' errors included: `sampling.services.outlook`

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "examples_outside": [list(pair) for pair in self.examples_outside]}


def answer(*, campaign: Campaign, asked: ReuseQuestion) -> Answer:
    """Return what the campaign's judgments say of the run, or raise `ReuseRefused`."""
    draw, measure, runs = check_question(campaign, asked)
    gain = relevant_gain(campaign, measure)
    frame = load_frame(draw)
    prior = _prior(draw, frame)
    frame = frame.with_columns(spread=pl.Series(np.sqrt(prior * (1 - prior)) * gain))
    rankings = [_rankings(run) for run in runs]
    table = _with_documents_of(frame, rankings, measure.last_rank, draw.parameters["topics"])
    weights = _difference(measure, [table[f"rank_{n}"].to_numpy() for n in range(len(runs))], _n_topics(draw))
    if not weights.any():
        raise ReuseRefused(_no_weight(asked, measure))
    weighed = weights != 0
    probability, spread = table["inclusion_probability"].to_numpy(), table["spread"].to_numpy()
    complete = reusability(weights[None], probability, spread)[0]
    judged, given = _judged_gains(campaign, measure, table)
    now = _current_probability(draw, table, judged)
    outside = table.filter(pl.Series(weighed & (probability == 0))).sort(ITEM_COLUMNS)
    present = complete if now is None else reusability(weights[None], now, spread)[0]
    drawn = weighed & (table["drawn_in"].to_numpy() > 0)
    n_drawn = int(drawn.sum())
    worth = None
    if complete.refusal is not None:
        chance = probability if now is None else now
        pool = _judged_pool(campaign, draw, measure, frame, judged, given, chance)
        worth = outside_worth(
            asked=runs,
            weight=_weights_outside(draw, measure, table, frame.height, len(runs)),
            forecast=_forecast_inside(weights, probability, spread),
            pool=pool,
        )
    return Answer(
        n_documents=int(weighed.sum()),
        n_outside=outside.height,
        share_outside=complete.share_outside,
        examples_outside=tuple(outside.select(ITEM_COLUMNS).head(SHOWN_OUTSIDE).iter_rows()),
        n_drawn=n_drawn,
        n_judged=int((drawn & judged).sum()),
        expected_judgments=complete.expected_judgments,
        effective_judgments=complete.effective_judgments,
        half_width=_number(complete.half_width),
        half_width_now=_number(present.half_width),
        relative_variance=_number(complete.relative_variance),
        relative_reason=complete.relative_variance.reason
        if isinstance(complete.relative_variance, Refusal)
        else "",
        refusal=complete.refusal.reason if complete.refusal and worth and worth.is_refused else "",
        refusal_now=_refusal_now(draw, table, weights, complete, present, judged),
        too_few=too_few(n_drawn, noun="drawn items").reason if n_drawn < FEWEST_ITEMS else "",
        usual_half_width=_median_half_width(draw, frame, measure, asked, campaign),
        outside=worth,
        corrected=reuse_outlook(
            campaign,
            draw,
            frame,
            weights=np.where(probability > 0, weights, 0.0)[: frame.height],
            prior=prior,
            gains=_gains(campaign, measure),
            relevant=measure.relevant_grade or campaign.scale.relevant_grade,
            topics=topics_of(campaign, measure.name, [(asked.run, asked.against or None)]),
        ),
    )


def _judged_pool(
    campaign: Campaign,
    draw: Draw,
    measure: Measure[Linear],
    frame: pl.DataFrame,
    judged: np.ndarray,
    given: Floats,
    probability: Floats,
) -> JudgedPool:
    """Return the pairs that could have been drawn, which come first in the arrays, with what is known of them."""
    n, drawn = frame.height, frame["drawn_in"].to_numpy() > 0
    return JudgedPool(
        campaign,
        draw,
        measure,
        frame,
        largest_gain=float(_gains(campaign, measure).max()),
        gain=given[:n],
        judged=judged[:n] & drawn,  # a gold check may lie outside the draw
        probability=probability[:n],
        predicted=frame["prior"].to_numpy() * relevant_gain(campaign, measure),
    )


def _weights_outside(
    draw: Draw, measure: Measure[Linear], table: pl.DataFrame, n_frame: int, n_runs: int
) -> list[float]:
    """Return by asked run the weight of its documents that could not be judged.

    What both of two runs return at one rank cancels where it is of the frame, which comes first in the table.
    """
    weights = np.stack(
        [run_weights(measure, table[f"rank_{place}"].to_numpy(), _n_topics(draw)) for place in range(n_runs)]
    )
    if n_runs > 1:
        weights[:, :n_frame] -= weights[:, :n_frame].min(axis=0)
    never = table["inclusion_probability"].to_numpy() == 0
    return [float(one) for one in weights[:, never].sum(axis=1)]


def _forecast_inside(weights: Floats, probability: Floats, spread: Floats) -> float | None:
    """Return the forecast of half the interval for what could be judged alone; None where there is nothing."""
    within = np.where(probability > 0, weights, 0.0)
    return _number(reusability(within[None], probability, spread)[0].half_width) if within.any() else None


# -- what is asked ------------------------------------------------------------------------------------------


def check_question(campaign: Campaign, asked: ReuseQuestion) -> tuple[Draw, Measure[Linear], list[Run]]:
    """Return the newest batch, the measure and the runs that are asked about."""
    draw = newest_draw(campaign)
    if draw is None:
        raise ReuseRefused("nothing is drawn in this campaign yet, so there are no judgments to use")
    if draw.selection_kind.no_top_up:
        raise ReuseRefused(POOL_UNKNOWN if draw.selection_kind.is_foreign else draw.selection_kind.no_top_up)
    if draw.has_whole_topics:
        raise ReuseRefused(NOT_BY_DOCUMENT)
    try:
        measure = parse_linear(asked.measure)
        relevant_gain(campaign, measure)
    except ValueError as error:
        raise ReuseRefused(str(error)) from error
    if asked.run == asked.against:
        raise ReuseRefused(
            f"{asked.run} and {asked.against} are the same run: choose another run to compare with"
        )
    known = {run.run_id: run for run in campaign.collection.runs.filter(run_id__in=asked.runs)}
    for run_id in asked.runs:
        if run_id not in known:
            raise ReuseRefused(f"the collection has no run {run_id!r}")
    return draw, measure, [known[run_id] for run_id in asked.runs]


def relevant_gain(campaign: Campaign, measure: Measure[Linear]) -> float:
    """Return the mean gain of a relevant document: what a prior of 1 is worth in the measure."""
    relevant = measure.relevant_grade or campaign.scale.relevant_grade
    return float(_gains(campaign, measure)[relevant:].mean())


def _gains(campaign: Campaign, measure: Measure[Linear]) -> Floats:
    relevant = measure.relevant_grade or campaign.scale.relevant_grade
    return grade_gains(measure, campaign.scale.gains(), relevant)


def _no_weight(asked: ReuseQuestion, measure: Measure[Linear]) -> str:
    if asked.against:
        return (
            f"{asked.run} and {asked.against} rank alike inside the cutoff of {measure.name}: the difference is "
            "exactly 0, and there is nothing to judge"
        )
    return f"{asked.run} returns nothing for the topics of this campaign: its value is 0"


def _rankings(run: Run) -> Rankings:
    return read_rankings(local(run.rankings))


def _n_topics(draw: Draw) -> int:
    return len(draw.parameters["topics"])


# -- the table ----------------------------------------------------------------------------------------------


def _prior(draw: Draw, frame: pl.DataFrame) -> Floats:
    """Return the prior probability of relevance with which each pair of the frame was drawn."""
    prior, parameters = frame["prior"].to_numpy(), draw.parameters
    is_in_it = "calibration" in parameters  # then the recorded prior has the scores in it
    if "score" in frame.columns and parameters["prior"] != "runs" and not is_in_it:
        score = frame["score"].fill_null(float("nan")).to_numpy()
        known = ~np.isnan(score)
        prior = prior.copy()
        rates = {name: parameters[name] for name in ("sensitivity", "specificity")}
        prior[known] = posterior_prior(prior[known], score[known], **rates)
    return np.asarray(prior)


def _with_documents_of(
    frame: pl.DataFrame, rankings: Sequence[Rankings], cutoff: int, topic_ids: Sequence[str]
) -> pl.DataFrame:
    """Return the frame with rank_0, rank_1: where the runs return its pairs, 0 nowhere; and below it, with probability
    0, the documents down to the cutoff that are not in it."""
    table = frame
    for number, run in enumerate(rankings):
        rows = top(run, cutoff).filter(pl.col("topic_id").is_in(list(topic_ids)))
        rows = rows.select(*ITEM_COLUMNS, pl.col("rank").cast(pl.Int64).alias(f"rank_{number}"))
        table = table.join(rows, on=ITEM_COLUMNS, how="full", coalesce=True, maintain_order="left_right")
    # How uncertain a document outside is matters to no number: with one of them there is a refusal instead.
    return table.with_columns(pl.col("spread").fill_null(1.0)).fill_null(0)


def _difference(measure: Measure[Linear], ranks: Sequence[np.ndarray], n_topics: int) -> Floats:
    weights = [run_weights(measure, row, n_topics) for row in ranks]
    return weights[0] if len(weights) == 1 else np.asarray(weights[0] - weights[1])


def _judged_gains(
    campaign: Campaign, measure: Measure[Linear], table: pl.DataFrame
) -> tuple[np.ndarray, Floats]:
    """Return for every pair whether it has a grade, and its mean gain in the measure (0 where it has none)."""
    graded = mean_gains(campaign, _gains(campaign, measure))
    joined = table.select(ITEM_COLUMNS).join(graded, on=ITEM_COLUMNS, how="left", maintain_order="left")
    value = joined["value"]
    return value.is_not_null().to_numpy(), value.fill_null(0.0).to_numpy()


def _current_probability(draw: Draw, table: pl.DataFrame, judged: np.ndarray) -> Floats | None:
    """Return the chance of every pair to be drawn and judged so far; None where all that was drawn is judged.

    What is judged so far is a random part of a topic's items, batch by batch (analytics/frames/).
    """
    drawn_in = table["drawn_in"].to_numpy().astype(np.int64)
    if judged[drawn_in > 0].all():
        return None
    topic = table["topic_id"].rank("dense").to_numpy().astype(np.int64) - 1
    first = _first_drawn(draw, table)
    now = np.zeros(table.height)
    for batch in range(1, draw.batch + 1):
        mine = drawn_in == batch
        n_drawn = np.bincount(topic[mine], minlength=topic.max() + 1)
        n_judged = np.bincount(topic[mine & judged], minlength=topic.max() + 1)
        share = np.divide(n_judged, n_drawn, out=np.zeros(n_drawn.size), where=n_drawn > 0)
        now += first[batch - 1] * share[topic]
    return np.minimum(now, 1.0)


def _refusal_now(
    draw: Draw,
    table: pl.DataFrame,
    weights: Floats,
    complete: Reusability,
    now: Reusability,
    judged: np.ndarray,
) -> str:
    if complete.refusal is not None or now.refusal is None:
        return complete.refusal.reason if complete.refusal else ""
    wanted = table.filter(pl.Series((weights != 0) & (table["inclusion_probability"].to_numpy() > 0)))
    seen = table.filter(pl.Series(judged & (table["drawn_in"].to_numpy() > 0)))["topic_id"].unique()
    waiting = set(wanted["topic_id"].unique()) - set(seen)
    if waiting:
        return f"{len(waiting)} of {_n_topics(draw)} topics have no judgment yet"
    return "a part of the newest batch has no judgment yet"


def _number(value: float | Refusal) -> float | None:
    return None if isinstance(value, Refusal) else value


# -- what is usual ------------------------------------------------------------------------------------------


def _median_half_width(
    draw: Draw, frame: pl.DataFrame, measure: Measure[Linear], asked: ReuseQuestion, campaign: Campaign
) -> float | None:
    """Return the median half-width that the judgments give the other runs of the draw: a sensible thing to ask for.

    Asked against a run: of the others against it, or against each other if it came later. None without such runs.
    """
    pooled = runs_learned_from(draw)
    asked_about = {run.run_id: run for run in campaign.collection.runs.filter(run_id__in=asked.runs)}
    keys = {run.pk for run in asked_about.values()}
    others = [run for run in pooled if run.pk not in keys]
    if len(others) > MOST_COMPARED:
        others = [others[place] for place in np.linspace(0, len(others) - 1, MOST_COMPARED).astype(int)]
    against = asked_about.get(asked.against)
    weights = _weights_in_frame(draw, frame, measure, [*others, *([against] if against else [])])
    late = weights.pop(against.pk, None) if against else None
    rival = late if against in pooled else None
    rows = list(weights.values())
    if asked.against:
        rows = [row - rival for row in rows] if rival is not None else [a - b for a, b in pairwise(rows)]
    probability, spread = frame["inclusion_probability"].to_numpy(), frame["spread"].to_numpy()
    widths = [_half_width(row, probability, spread) for row in rows if row.any()]
    known = [width for width in widths if width is not None]
    return float(np.median(known)) if known else None


def _weights_in_frame(
    draw: Draw, frame: pl.DataFrame, measure: Measure[Linear], runs: Sequence[Run]
) -> dict[int, Floats]:
    """Return run -> w over the frame, of the runs that return nothing else inside the cutoff."""
    if not runs:
        return {}
    topics = draw.parameters["topics"]
    found, outside = ranks_in_pairs(
        [_rankings(run) for run in runs], frame["topic_id"], frame["doc_id"], measure.last_rank, topics
    )
    inside = [place for place in range(len(runs)) if not outside[place].size]
    return {runs[place].pk: run_weights(measure, found.row(place), len(topics)) for place in inside}


def _half_width(weights: Floats, probability: Floats, spread: Floats) -> float | None:
    """Return half the width of a Poisson draw's 95 % interval; None where a document with weight has no chance."""
    mine = weights != 0
    pi = probability[mine]
    if (pi == 0).any():
        return None
    return float(Z95 * np.sqrt(((1 - pi) / pi * (weights[mine] * spread[mine]) ** 2).sum()))
