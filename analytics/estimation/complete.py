"""Measures of completely judged ranks: known where all of a run's first documents are judged, elsewhere refused.

Nothing is estimated from a sample here: for these topics the value is exact, but for the judges' errors. Its interval
is that of the topics as a sample.
"""

import numpy as np
from numpy.typing import NDArray

from analytics.estimation.estimate import Estimates, Floats, Ints, Refusal, estimates
from analytics.estimation.targets import TargetWeights
from analytics.estimation.topics import over_topics_of
from sampling.measures.families import Measure
from sampling.measures.kinds import Complete
from sampling.measures.sparse import SparseRuns


def first_documents(measure: Measure[Complete], returned: SparseRuns) -> TargetWeights:
    """Return 1/rank of the documents that the measure looks at, from ranks [run, frame]: runs differ where ranks do."""
    rank = returned.value.astype(np.float64)
    return TargetWeights(returned.with_values(np.where(rank <= measure.last_rank, 1 / rank, 0.0)))


def complete_estimates(
    measure: Measure[Complete],
    documents: TargetWeights,
    gain: Floats,
    is_judged: NDArray[np.bool_],
    topic_index: Ints,
    n_topics: int,
) -> tuple[Estimates, Estimates]:
    """Return the measure of every run and pair for these topics, and with the topics as a sample.

    Assumption: an item's gain is the mean gain of its grades. The measure is linear in each gain, so that this is the
    mean over which of an item's independent judgments is taken. The first standard error is 0, because nothing was
    sampled; how judges err is in neither interval.

    Refused: a run that returns, within the cutoff, a document that nobody judged; and its pairs.

    Parameters
    ----------
    documents : of `first_documents`
    gain, is_judged : arrays [frame]
        The gain is read where the item is judged.
    topic_index : int array [frame]
    """
    near = documents.runs
    topic, rank = topic_index[near.item], np.rint(1 / near.value).astype(np.int64)
    missing = ~is_judged[near.item]
    refusals = _refusals(measure, documents, missing, topic, n_topics)
    values = np.zeros((near.n_runs, n_topics))
    gains = np.where(missing, 0.0, gain[near.item])
    for run in range(near.n_runs):
        own = near.run == run
        table = np.zeros((n_topics, int(rank.max(initial=0))))
        table[topic[own], rank[own] - 1] = gains[own]
        values[run] = measure.kind.of_topic(measure, table)
    made = estimates(
        documents.of_targets(values.mean(axis=1)),
        {},
        degrees_of_freedom=np.inf,
        n=documents.n_weighed(),
        refusals=refusals,
        warning=lambda _: "",
    )
    return made, over_topics_of(documents, values / n_topics, ("topics",), refusals)


def _refusals(
    measure: Measure[Complete],
    documents: TargetWeights,
    missing: NDArray[np.bool_],
    topic: Ints,
    n_topics: int,
) -> dict[int, Refusal]:
    """Return by target why a run, or one of a pair, has no number; `missing` and `topic` are of the runs' entries."""
    near = documents.runs
    n_documents = np.bincount(near.run, minlength=near.n_runs)
    n_missing = np.bincount(near.run, missing, near.n_runs).astype(np.int64)
    lacking = np.unique(near.run[missing].astype(np.int64) * n_topics + topic[missing])
    n_lacking = np.bincount(lacking // n_topics, minlength=near.n_runs)
    of_runs = {
        run: Refusal(
            f"{measure.name} needs a judgment of every document of the first {measure.last_rank} ranks: "
            f"{n_missing[run]} of {n_documents[run]} have none, in {n_lacking[run]} of {n_topics} topics",
            int(n_missing[run]),
        )
        for run in np.flatnonzero(n_missing).tolist()
    }
    of_pairs = {}
    for target, pair in enumerate(
        zip(*(index.tolist() for index in documents.pairs), strict=True), near.n_runs
    ):
        worse = max(pair, key=lambda run: int(n_missing[run]))
        if worse in of_runs:
            of_pairs[target] = of_runs[worse]
    return of_runs | of_pairs
