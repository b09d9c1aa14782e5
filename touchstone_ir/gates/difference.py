"""The corrected difference of a gate's two runs, from labels and gold of those asked for: what `compare` reports."""

import numpy as np
import polars as pl

from analytics.estimation.estimate import Estimate, Refusal
from analytics.methods import REPORTED
from analytics.numbers.targets import targets_of
from sampling.measures.families import Measure
from sampling.measures.kinds import Linear
from touchstone_ir.numbers import basis_of
from touchstone_ir.samples import Knowledge, arrays_of

RELEVANT_GRADE = 1  # the lowest, where the measure does not say its own
OF_PAIR = 2  # the place of the pair among the targets, behind both runs


def corrected_difference(
    pairs: pl.DataFrame, gold: pl.DataFrame, measure: Measure[Linear]
) -> Estimate | Refusal:
    """Return B less A as the reported method corrects it, for these topics.

    Parameters
    ----------
    pairs : table with columns topic, doc, rank_a, rank_b, label
        Every labelled pair; a rank is 0 where the run does not return it within the cutoff.
    gold : table with columns topic, doc, grade, probability
        Of the same pairs: the chance of being asked for so far, above 0; the grade is null where a pair was not.
    """
    # B is the first run, so that the pair is B less A.
    ranks = [
        pairs.filter(pl.col(f"rank_{name}") > 0).select(
            pl.lit(name).alias("run"), "topic", "doc", pl.col(f"rank_{name}").alias("rank")
        )
        for name in ("b", "a")
    ]
    labels = pairs.select("topic", "doc", pl.col("label").alias("grade"))
    arrays = arrays_of(pl.concat(ranks), Knowledge(labels, gold, None), measure.last_rank, RELEVANT_GRADE)
    basis = basis_of(arrays, np.arange(arrays.n_grades, dtype=np.float64))
    return REPORTED.answer(basis.evidence, targets_of(basis, measure)).these_topics[OF_PAIR]
