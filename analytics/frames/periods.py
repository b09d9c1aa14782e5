"""The topics of a campaign that were judged in a period, as a campaign of their own."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from analytics.frames.arrays import CampaignArrays
from analytics.frames.cuts import places_among, with_checks, with_judged
from analytics.numbers.arrays import Ints
from sampling.measures.sparse import SparseRuns

NO_GOLD = -1


def topics_of_period(arrays: CampaignArrays, since: float | None, until: float | None) -> NDArray[np.bool_]:
    """Return which topics were judged within [since, until), in seconds since 1970; None is no limit.

    All labels of a topic must lie within, so that no topic is of two periods that follow each other. Labels of
    documents with a gold answer count only where a topic has no other: they are shown again to every new assessor.
    """
    of_item = arrays.topic_index[arrays.judged]
    has_answer = arrays.gold_grade[arrays.judged] != NO_GOLD
    has_other = np.bincount(of_item[~has_answer], minlength=arrays.n_topics) > 0
    counts = ~has_answer[arrays.label_item] | ~has_other[of_item[arrays.label_item]]
    topic, time = of_item[arrays.label_item][counts], arrays.label_time[counts]
    first, last = np.full(arrays.n_topics, np.inf), np.full(arrays.n_topics, -np.inf)
    np.minimum.at(first, topic, time)
    np.maximum.at(last, topic, time)
    inside = np.isfinite(first)
    if since is not None:
        inside &= first >= since
    if until is not None:
        inside &= last < until
    return np.asarray(inside)


def part_of_topics(
    arrays: CampaignArrays, kept: NDArray[np.bool_], since: float | None, until: float | None
) -> CampaignArrays:
    """Return the campaign as if it had the kept topics alone, and the gold checks of the period.

    A run that returns, in whatever topic, documents that could not be drawn keeps them: which topics they belong to
    was not recorded.
    """
    rows = np.flatnonzero(kept[arrays.topic_index])
    place = places_among(rows, arrays.frame.height)
    is_judged = place[arrays.judged] >= 0
    checks = np.ones(arrays.check_time.size, dtype=bool)
    checks &= arrays.check_time >= since if since is not None else checks
    checks &= arrays.check_time < until if until is not None else checks
    left = with_checks(
        with_judged(arrays, np.flatnonzero(is_judged), np.flatnonzero(is_judged[arrays.label_item])), checks
    )
    topic_place = places_among(np.flatnonzero(kept), arrays.n_topics)
    return replace(
        left,
        n_topics=int(kept.sum()),
        frame=arrays.frame[rows],
        returned=_of_items(arrays.returned, place, rows.size),
        topic_index=topic_place[arrays.topic_index[rows]],
        gold_grade=arrays.gold_grade[rows],
        judged=place[left.judged],
        first_probability=arrays.first_probability[:, rows],
        n_drawn=arrays.n_drawn[:, kept],
    )


def _of_items(runs: SparseRuns, place: Ints, n_items: int) -> SparseRuns:
    entries = np.flatnonzero(place[runs.item] >= 0)
    return SparseRuns(
        runs.n_runs,
        n_items,
        runs.run[entries],
        place[runs.item[entries]].astype(np.int32),
        runs.value[entries],
    )
