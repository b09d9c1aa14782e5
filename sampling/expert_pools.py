"""The consensus of runs in every topic: the pools of topics, and the prior that a design can take of it."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sampling.arrays import FloatArray
from sampling.experts import Preferences, RankedPool, calibration_by_prevalence, consensus
from sampling.measures.sparse import SparseRuns

LARGEST_POOL = 4000  # documents of a topic: the fit has a table of all pairs of them

Ints = NDArray[np.int64]


def topic_pools(
    returned: SparseRuns, topic_index: Ints, largest: int = LARGEST_POOL
) -> Iterator[tuple[RankedPool, Ints]]:
    """Yield for every topic the pool of its documents, and their places.

    A topic of which no run returns a document is left out.

    Parameters
    ----------
    returned
        Ranks [run, document].
    topic_index : (n_documents,) array
    largest
        The most documents of a topic.

    Raises
    ------
    ValueError
        For a topic with more documents.
    """
    n_topics = int(topic_index.max(initial=-1)) + 1
    by_document = np.argsort(topic_index, kind="stable")
    ends = np.searchsorted(topic_index[by_document], np.arange(n_topics + 1))
    entry_topic = topic_index[returned.item]
    by_entry = np.argsort(entry_topic, kind="stable")
    entry_ends = np.searchsorted(entry_topic[by_entry], np.arange(n_topics + 1))
    within = np.empty(topic_index.size, dtype=np.int64)
    for topic in range(n_topics):
        places = by_document[ends[topic] : ends[topic + 1]]
        entries = by_entry[entry_ends[topic] : entry_ends[topic + 1]]
        if not entries.size:
            continue
        if places.size > largest:
            raise ValueError(
                f"a topic must have at most {largest:,} pooled documents for the consensus of the runs, "
                f"got {places.size:,}"
            )
        within[places] = np.arange(places.size)
        ranks = np.full((returned.n_runs, places.size), np.inf)
        ranks[returned.run[entries], within[returned.item[entries]]] = returned.value[entries]
        yield RankedPool.of(ranks), places


def prior_of_experts(returned: SparseRuns, topic_index: Ints, prior: FloatArray) -> FloatArray:
    """Return the probability of relevance by the consensus of the runs, calibrated to another prior.

    In every topic the log odds are shifted until their probabilities have the mean of `prior` there: the consensus
    says which documents are likelier, not how many are relevant.

    Parameters
    ----------
    returned, topic_index
        As in `topic_pools`.
    prior : (n_documents,) array
        Within (0, 1); kept where no run returns a document of the topic.
    """
    made = np.array(prior, dtype=np.float64)
    for pool, places in topic_pools(returned, topic_index):
        theta = consensus(Preferences.of(pool)).theta
        made[places] = calibration_by_prevalence(theta, float(prior[places].mean())).probability(theta)
    return made
