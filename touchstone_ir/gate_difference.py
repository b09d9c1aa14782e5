"""The corrected difference of a gate's two runs, from labels and gold of those asked for: what `compare` reports."""

from dataclasses import replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from analytics.estimation.estimate import Estimate, Floats, Ints, Refusal
from analytics.methods import REPORTED
from analytics.numbers.targets import targets_of
from sampling.measures.families import Measure
from sampling.measures.kinds import Linear
from touchstone_ir.numbers import basis_of
from touchstone_ir.samples import FileArrays, Knowledge, arrays_of

RELEVANT_GRADE = 1  # the lowest, where the measure does not say its own
OF_PAIR = 2  # the place of the pair among the targets, behind both runs


def labelled_arrays(pairs: pl.DataFrame, measure: Measure[Linear]) -> FileArrays:
    """Return the labelled pairs of both runs as arrays, without gold.

    Parameters
    ----------
    pairs : table with columns topic, doc, rank_a, rank_b, label
        By topic and document; a rank is 0 where the run does not return the pair within the cutoff.
    """
    # B is the first run, so that the pair is B less A.
    ranks = [
        pairs.filter(pl.col(f"rank_{name}") > 0).select(
            pl.lit(name).alias("run"), "topic", "doc", pl.col(f"rank_{name}").alias("rank")
        )
        for name in ("b", "a")
    ]
    labels = pairs.select("topic", "doc", pl.col("label").alias("grade"))
    return arrays_of(pl.concat(ranks), Knowledge(labels, None, None), measure.last_rank, RELEVANT_GRADE)


def corrected_difference(
    arrays: FileArrays,
    measure: Measure[Linear],
    *,
    is_asked: NDArray[np.bool_],
    gold: Ints,
    probability: Floats,
) -> Estimate | Refusal:
    """Return B less A as the reported method corrects it, for these topics.

    Parameters
    ----------
    arrays : FileArrays
        `labelled_arrays`; the others have an entry for each of its pairs.
    is_asked : bool array
    gold : int array
        The true grade, read where a pair was asked for.
    probability : array
        The chance of being asked for so far, above 0.
    """
    grade = np.where(is_asked, gold, 0)
    with_gold = replace(
        arrays,
        n_grades=max(arrays.n_grades, int(grade.max()) + 1),
        audited=is_asked,
        audit_grade=grade,
        audit_probability=probability,
        fitted_gold=is_asked,
    )
    basis = basis_of(with_gold, np.arange(with_gold.n_grades, dtype=np.float64))
    return REPORTED.answer(basis.evidence, targets_of(basis, measure)).these_topics[OF_PAIR]
