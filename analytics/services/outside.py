"""What documents that could not be judged may be worth to a run, and whether its number can be reported all the same.

The bound is that of the reported numbers (`analytics.numbers.columns`); what is likely follows from what single
pooled runs alone brought in, with the grades as they were given.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from analytics.estimation.estimate import FEWEST_ITEMS
from analytics.estimation.outside import OutsideGain, Standing, likely_gain, unique_weights
from analytics.frames import Floats
from analytics.methods import reported_first
from analytics.models import before_cutting
from analytics.services.recomputation import latest_computation
from judging.models import Campaign, Run
from judging.rankings import read_rankings
from sampling.frames import runs_learned_from
from sampling.measures.families import Measure, weights_of_runs
from sampling.measures.kinds import Linear
from sampling.measures.sparse import SparseRuns
from sampling.models import Draw
from sampling.pooling import ranks_in_pairs
from touchstone.files import local


@dataclass(frozen=True)
class OutsideWorth:
    """How far a run's value (or a difference) may be from the one that is computed without some of its documents.

    Amounts in units of the measure. `above` and `below` hold whatever the documents are worth; `expected_*` and
    `cautious_*` take it that they are as often relevant as what one pooled run alone brought in, all together and at
    the most fruitful run (no guarantee); None where no run brought in anything alone, or too little of it is judged.
    `half_width` is what they are held against.
    """

    standing: str  # the name of a Standing
    words: str
    above: float
    below: float
    expected_above: float | None
    expected_below: float | None
    cautious_above: float | None
    cautious_below: float | None
    half_width: float | None

    @property
    def is_refused(self) -> bool:
        """Return whether the number cannot be reported yet."""
        return self.standing == Standing.NOT_YET.name.lower()


@dataclass(frozen=True, eq=False)
class JudgedPool:
    """The pairs that could have been drawn, and what is known of them in a measure: arrays over the frame."""

    campaign: Campaign
    draw: Draw
    measure: Measure[Linear]
    frame: pl.DataFrame
    largest_gain: float
    gain: Floats  # mean gain of the grades given; read where judged
    judged: np.ndarray
    probability: Floats  # of being drawn and judged so far
    predicted: Floats  # the gain that is expected before judging


def outside_worth(
    *, asked: Sequence[Run], weight: Sequence[float], forecast: float | None, pool: JudgedPool
) -> OutsideWorth:
    """Return what the documents of one run, or of two, that could not be judged may be worth.

    `weight` [run]: sum of their weights. Held against the reported half-width of the same question, else against the
    median of the others of its kind, else against the forecast.
    """
    weights = (*weight, 0.0)[:2]
    amounts = [one * pool.largest_gain for one in weights]
    half = _reported_half_width(pool.campaign, pool.measure.name, asked) or forecast
    bound = OutsideGain(down=np.array(amounts[1:]), up=np.array(amounts[:1]))
    standing = Standing.NOT_YET if half is None else Standing(int(bound.standings([half])[0]))
    pooled = _pooled_runs(pool)
    above, below = (
        _likely(pool, pooled, run, one) for run, one in zip((*asked, asked[0]), weights, strict=False)
    )
    return OutsideWorth(
        standing=standing.name.lower(),
        words=standing.words,
        above=amounts[0],
        below=amounts[1],
        expected_above=above[0],
        expected_below=below[0],
        cautious_above=above[1],
        cautious_below=below[1],
        half_width=half,
    )


def _reported_half_width(campaign: Campaign, measure: str, asked: Sequence[Run]) -> float | None:
    """Return half the interval of the question in the newest computation, else the median of its kind."""
    computed = latest_computation(campaign=campaign)
    if computed is None:
        return None
    kinds = computed.estimates.filter(measure=measure, run_b__isnull=len(asked) == 1, standard_error__gt=0)
    keys = {run.pk for run in asked}
    for method in reported_first():
        rows = kinds.filter(method=method.key).values_list(
            "run", "run_b", before_cutting("low"), before_cutting("high"), "outside_low", "outside_high"
        )
        halves = {
            frozenset({run, run_b} - {None}): (high - low - (below or 0.0) - (above or 0.0)) / 2
            for run, run_b, low, high, below, above in rows
        }
        if halves:
            return float(halves.get(frozenset(keys), np.median(list(halves.values()))))
    return None


@dataclass(frozen=True, eq=False)
class _PooledRuns:
    """The runs that made the pool, with their ranks and weights over the frame: read once for all that is asked."""

    runs: list[Run]
    ranks: SparseRuns
    weights: SparseRuns
    depth: int


def _pooled_runs(pool: JudgedPool) -> _PooledRuns:
    parameters, measure = pool.draw.parameters, pool.measure
    runs = runs_learned_from(pool.draw)
    depth = int(parameters["depth"])
    ranks, _ = ranks_in_pairs(
        [read_rankings(local(one.rankings)) for one in runs],
        pool.frame["topic_id"],
        pool.frame["doc_id"],
        max(depth, measure.last_rank),
        parameters["topics"],
    )
    return _PooledRuns(runs, ranks, weights_of_runs(measure, ranks, len(parameters["topics"])), depth)


def _likely(
    pool: JudgedPool, pooled: _PooledRuns, run: Run, weight: float
) -> tuple[float | None, float | None]:
    """Return the expected and the cautious worth of some weight, from what the pooled runs brought in alone.

    Neither is above what the documents can be worth at most: an estimated gain may be.
    """
    if weight == 0:
        return 0.0, 0.0
    others = [place for place, one in enumerate(pooled.runs) if one.pk != run.pk]
    if not others:
        return None, None
    groups = groups_without(run, [pooled.runs[place] for place in others])
    targets = unique_weights(pooled.weights.rows(others), pooled.ranks.rows(others), groups, pooled.depth)
    surprise = np.where(
        pool.judged, (pool.gain - pool.predicted) / np.where(pool.probability > 0, pool.probability, 1.0), 0.0
    )
    if int(targets.counts(pool.judged).sum()) < FEWEST_ITEMS:
        return None, None
    likely = likely_gain(
        weight, targets.totals(pool.predicted + surprise), targets.totals(np.ones(targets.n_items))
    )
    most = weight * pool.largest_gain
    return (min(likely.expected, most), min(likely.cautious, most)) if likely else (None, None)


def groups_without(run: Run, pooled: Sequence[Run]) -> list[str]:
    """Return by pooled run what is left out with it: its group, or itself where the asked run's group is pooled too.

    A run whose relatives were pooled misses what a single run brought in alone; one of a new group misses more.
    """
    has_relatives = bool(run.group) and any(one.group == run.group for one in pooled)
    return [one.run_id if has_relatives or not one.group else f"group {one.group}" for one in pooled]
