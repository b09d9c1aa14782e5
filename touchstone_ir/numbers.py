"""The numbers of runs: values, differences and ranks, corrected by gold labels as the results pages have them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from analytics import methods
from analytics.estimation.claims import CLAIMS, Claim, claim_of
from analytics.estimation.evidence import LinearTargets, Targets
from analytics.numbers.arrays import Floats
from analytics.numbers.basis import Basis
from analytics.numbers.estimates import method_columns
from analytics.numbers.predictions import Predictions
from analytics.numbers.targets import targets_of
from sampling.measures.families import Measure
from sampling.measures.kinds import Kind
from touchstone_ir.columns import InputRefused
from touchstone_ir.fault_places import told_with_places
from touchstone_ir.measures import distinct_measures, gains_of, printed_name
from touchstone_ir.readers import RUN, read_pairs, read_qrels, read_run
from touchstone_ir.results import Result, result_of
from touchstone_ir.rows import MeasuredRuns, ResultRows
from touchstone_ir.samples import FileArrays, Knowledge, arrays_of, knowledge_of

WHOLE_RANKING = 100_000
TOPIC_COLUMNS = {"measure": pl.String, "run": pl.String, "topic": pl.String, "value": pl.Float64}


def estimate(
    runs: Any,
    measures: Any,
    *,
    labels: Any = None,
    gold: Any = None,
    draw: Any = None,
    gold_chosen: str | None = None,
    gains: Mapping[int, float] | None = None,
    relevant: int = 1,
    claim: str | None = None,
    by_topic: bool = False,
) -> Result:
    """Return the value of every run in every measure, with 95 % confidence intervals.

    What is computed follows from what is given. Labels and gold: the number that the results pages report, corrected by
    the gold labels whatever the judges' errors depend on. With a draw besides, the labels are taken for the sample that
    they are. Gold alone, with probabilities: the same without labels. Labels alone: the grades as they are given, with
    a warning, for nothing says how judges err.

    Topics are those with a label; where labels or gold are a sample, those that the runs return, for a topic of which
    nothing was drawn is one of the mean all the same.

    Parameters
    ----------
    runs : table, path, or list of paths
        As `read_run` takes or returns them.
    measures : str, object or list
        As ir_measures spells them.
    labels, gold : table or path, optional
        As `read_qrels` takes or returns them. Gold needs a column probability, the chance with which each pair was
        chosen for it. A table with the columns judge and truth has both: given as labels alone, its truth is the gold.
    draw : table or path, optional
        Every pair that was drawn, with its probability: what `draw` returns.
    gold_chosen : "uniform", optional
        Gold without probabilities is a random part of the labelled pairs.
    gains : dict, optional
        Gain of every grade; by default the grade.
    relevant : int
        The lowest grade that counts as relevant.
    claim : "topics-like-these" or "these-topics", optional
        What intervals and p-values are about; by default as on the results pages, the first.
    by_topic : bool
        The values of topics as well: `Result.topics`.

    Raises
    ------
    InputRefused, ValueError
        What was given does not fit together, or cannot be read.
    """
    found = measured_runs(runs, measures, labels, gold, draw, gold_chosen, gains, relevant)
    rows = [_run_rows(one) for one in found]
    return result_of("estimate", rows, _claim(claim), topics=_topic_values(found) if by_topic else None)


def compare(
    runs: Any,
    measures: Any,
    *,
    labels: Any = None,
    gold: Any = None,
    draw: Any = None,
    gold_chosen: str | None = None,
    gains: Mapping[int, float] | None = None,
    relevant: int = 1,
    claim: str | None = None,
    of: str | None = None,
    against: str | None = None,
) -> Result:
    """Return the difference of every pair of runs in every measure, with intervals and p-values.

    p-values are adjusted by Holm over the rows of the result. A row is run minus against, the higher value first unless
    `of` or `against` says otherwise. All arguments but these two are as in `estimate`.

    Parameters
    ----------
    of, against : str, optional
        Only pairs with this run first, or second.

    Raises
    ------
    InputRefused, ValueError
        As `estimate`; a run that is not there, or fewer than two.
    """
    found = measured_runs(runs, measures, labels, gold, draw, gold_chosen, gains, relevant)
    names = found[0].arrays.run_names
    if len(names) < 2:
        raise InputRefused(f"a comparison needs at least two runs, got {', '.join(names)}")
    for name in (of, against):
        if name is not None and name not in names:
            raise InputRefused(f"the run {name} is not there: there are {', '.join(names)}")
    if of is not None and of == against:
        raise InputRefused(f"{of} against itself is no comparison")
    return result_of("compare", [_pair_rows(one, of, against) for one in found], _claim(claim))


def rank(
    runs: Any,
    measure: Any,
    *,
    labels: Any = None,
    gold: Any = None,
    draw: Any = None,
    gold_chosen: str | None = None,
    gains: Mapping[int, float] | None = None,
    relevant: int = 1,
    claim: str | None = None,
) -> Result:
    """Return the runs by their value in a measure, with the ranks that each may have.

    Arguments as `estimate`, with one measure.
    """
    from touchstone_ir.ranks import ranked_result

    (found,) = measured_runs(runs, [measure], labels, gold, draw, gold_chosen, gains, relevant)
    everything = np.flatnonzero(found.pairs[1] >= 0)
    names = found.arrays.run_names
    firsts, seconds = ([names[side[place]] for place in everything] for side in found.pairs)
    pairs = ResultRows(found, everything, firsts, seconds, np.ones(everything.size))
    return ranked_result(_run_rows(found), pairs, _claim(claim))


# -- what all of them compute -----------------------------------------------------------------------------------


def measured_runs(
    runs: Any,
    measures: Any,
    labels: Any,
    gold: Any,
    draw: Any,
    gold_chosen: str | None,
    gains: Mapping[int, float] | None,
    relevant: int,
) -> list[MeasuredRuns]:
    """Return every measure of all runs and pairs."""
    wanted = distinct_measures(measures, relevant)
    table = runs_of(runs)
    said = judgments_of(labels)
    checked = _truth(said) if gold is None else judgments_of(gold)
    if gold is not None and checked is not None and "truth" in checked.columns:
        checked = _truth(checked)
    drawn = judgments_of(draw, graded=False)
    deepest = max(WHOLE_RANKING if one.cutoff is None else one.last_rank for one in wanted)
    with told_with_places(labels=labels, gold=labels if gold is None else gold, draw=draw):
        known = knowledge_of(said, checked, drawn, gold_chosen)
        arrays = arrays_of(table, known, deepest, relevant)
    scale = gains_of(gains, arrays.n_grades, _grades_given(known))
    basis = basis_of(arrays, scale)
    return [_measured_runs(basis, arrays, known, measure) for measure in wanted]


def basis_of(arrays: FileArrays, scale_gains: Floats) -> Basis:
    """Return what all measures are estimated from; the class of an item is its mean grade, as it is by default."""
    n_grades = arrays.n_grades
    return Basis(
        arrays,
        Predictions(arrays),
        scale_gains=scale_gains,
        relevant_grade=arrays.relevant_grade,
        confusion_counts=np.zeros((arrays.n_assessors, n_grades, n_grades)),
        classes=arrays.labels.classes,
    )


def runs_of(runs: Any) -> pl.DataFrame:
    """Return runs as a table, read where they are not yet."""
    if isinstance(runs, pl.DataFrame) and tuple(runs.columns) == RUN:
        return runs
    many = runs if isinstance(runs, list | tuple) else [runs]
    return read_run(*many)


def judgments_of(given: Any, *, graded: bool = True) -> pl.DataFrame | None:
    """Return judgments, or pairs whose grades may be missing, as a table that was checked; None stays None."""
    if given is None:
        return None
    return read_qrels(given) if graded else read_pairs(given)


def _truth(table: pl.DataFrame | None) -> pl.DataFrame | None:
    """Return the gold of a table that has labels beside truth, empty where nobody looked; None where there is none."""
    if table is None or "truth" not in table.columns:
        return None
    looked = table.filter(pl.col("truth").is_not_null())
    return looked.with_columns(grade=pl.col("truth").cast(pl.Int64)).drop("truth") if looked.height else None


def _grades_given(known: Knowledge) -> list[int]:
    tables = [one for one in (known.labels, known.gold) if one is not None]
    return sorted({grade for one in tables for grade in one["grade"].drop_nulls().unique().to_list()})


def _measured_runs(
    basis: Basis, arrays: FileArrays, known: Knowledge, measure: Measure[Kind]
) -> MeasuredRuns:
    targets = targets_of(basis, measure)
    # Where there is no gold the grades as given are all that is known, and then they are tested.
    as_given = replace(methods.NAIVE, is_tested=True)
    rests_on_gold = known.gold is not None  # what it cannot correct has a refusal, not the labels' number
    reported = method_columns(basis, methods.REPORTED if rests_on_gold else as_given, targets)
    beside = None
    if rests_on_gold and not known.has_gold_alone:
        beside = method_columns(basis, methods.NAIVE, targets)
    elif not rests_on_gold:
        beside = reported
    name = printed_name(measure, arrays.relevant_grade)
    return MeasuredRuns(name, measure, reported, beside, _n_judged(targets, arrays), arrays, rests_on_gold)


def _n_judged(targets: Targets, arrays: FileArrays) -> Any:
    """Return by target how many labelled pairs carry it; of a ratio all, for it divides by what all of them say."""
    everything = np.arange(arrays.judged.size)
    if isinstance(targets, LinearTargets):
        return targets.n_weighed(everything)
    return np.full(len(targets), everything.size)


def _claim(key: str | None) -> Claim:
    try:
        return CLAIMS[0] if key is None else claim_of(key)
    except ValueError as error:
        raise InputRefused(str(error)) from error


# -- rows -------------------------------------------------------------------------------------------------------


def _run_rows(one: MeasuredRuns) -> ResultRows:
    places = np.flatnonzero(one.pairs[1] < 0)
    names = one.arrays.run_names
    return ResultRows(
        one, places, [names[one.pairs[0][place]] for place in places], None, np.ones(places.size)
    )


def _pair_rows(one: MeasuredRuns, of: str | None, against: str | None) -> ResultRows:
    """Return the pairs that are asked for, the higher run first unless it is said which is first."""
    names = one.arrays.run_names
    value = one.reported.numbers["value"]
    places, signs, firsts, seconds = [], [], [], []
    for place in np.flatnonzero(one.pairs[1] >= 0).tolist():
        first, second = names[one.pairs[0][place]], names[one.pairs[1][place]]
        if of is None and against is None:
            is_turned = bool(value[place] < 0)
        else:
            is_turned = second == of or (of is None and first == against)
        if is_turned:
            first, second = second, first
        if (of is not None and first != of) or (against is not None and second != against):
            continue
        places.append(place)
        signs.append(-1.0 if is_turned else 1.0)
        firsts.append(first)
        seconds.append(second)
    return ResultRows(one, np.array(places, dtype=np.int64), firsts, seconds, np.array(signs))


def _topic_values(found: Sequence[MeasuredRuns]) -> pl.DataFrame:
    """Return the value of every run, measure and topic, where there are such values."""
    parts = []
    for one in found:
        for run, values in enumerate(one.reported.topic_values[: len(one.arrays.run_names)]):
            if values is None:
                continue
            parts.append(
                pl.DataFrame(
                    {
                        "measure": [one.name] * len(values),
                        "run": [one.arrays.run_names[run]] * len(values),
                        "topic": list(one.arrays.topics),
                        "value": values,
                    }
                )
            )
    return pl.concat(parts) if parts else pl.DataFrame(schema=TOPIC_COLUMNS)
