"""How much of what a run returns first was judged: Judged@k, and the part of it that has a gold label."""

import numpy as np
from numpy.typing import NDArray

from analytics.estimation.estimate import Floats, Ints
from sampling.measures.sparse import SparseRuns


def judged_share(
    returned: SparseRuns, last_rank: int, topic_index: Ints, n_topics: int, is_judged: NDArray[np.bool_]
) -> Floats:
    """Return by run the mean over topics of the share of judged documents among the first k that it returns.

    This is Judged@k as ir_measures has it; a topic for which a run returns nothing counts 0. It assumes nothing, and
    says nothing of what was not judged.

    Parameters
    ----------
    returned : SparseRuns
        A run's rank of each item of the frame.
    last_rank : int
        k.
    topic_index : int array [frame]
    n_topics : int
    is_judged : bool array [frame]
    """
    near = returned.value <= last_rank
    run, item = returned.run[near].astype(np.int64), returned.item[near]
    place = run * n_topics + topic_index[item]
    n_returned, n_judged = (
        np.bincount(place, weight, returned.n_runs * n_topics).astype(np.float64)
        for weight in (None, is_judged[item])
    )
    share = np.divide(n_judged, n_returned, out=np.zeros_like(n_judged), where=n_returned > 0)
    return np.asarray(share.reshape(returned.n_runs, n_topics).mean(axis=1))
