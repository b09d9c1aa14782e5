"""The topics of a campaign that were judged in a period, as a campaign of their own."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from analytics.frames.arrays import CampaignArrays, Ints
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
    place = _places(rows, arrays.frame.height)
    items = np.flatnonzero(place[arrays.judged] >= 0)
    item_place = _places(items, arrays.judged.size)
    labels = np.flatnonzero(item_place[arrays.label_item] >= 0)
    silver = np.flatnonzero(item_place[arrays.silver_label_item] >= 0)
    checks = np.ones(arrays.check_time.size, dtype=bool)
    checks &= arrays.check_time >= since if since is not None else checks
    checks &= arrays.check_time < until if until is not None else checks
    topic_place = _places(np.flatnonzero(kept), arrays.n_topics)
    return replace(
        arrays,
        n_topics=int(kept.sum()),
        frame=arrays.frame[rows],
        returned=_of_items(arrays.returned, place, rows.size),
        topic_index=topic_place[arrays.topic_index[rows]],
        gold_grade=arrays.gold_grade[rows],
        judged=place[arrays.judged[items]],
        batch=arrays.batch[items],
        first_probability=arrays.first_probability[:, rows],
        n_drawn=arrays.n_drawn[:, kept],
        label_item=item_place[arrays.label_item[labels]],
        label_assessor=arrays.label_assessor[labels],
        label_grade=arrays.label_grade[labels],
        label_time=arrays.label_time[labels],
        label_judgment=arrays.label_judgment[labels],
        audited=arrays.audited[items],
        audit_grade=arrays.audit_grade[items],
        audit_probability=arrays.audit_probability[items],
        fitted_gold=arrays.fitted_gold[items],
        check_assessor=arrays.check_assessor[checks],
        check_true=arrays.check_true[checks],
        check_given=arrays.check_given[checks],
        check_time=arrays.check_time[checks],
        check_judgment=arrays.check_judgment[checks],
        silver_label_item=item_place[arrays.silver_label_item[silver]],
        silver_label_assessor=arrays.silver_label_assessor[silver],
        silver_label_grade=arrays.silver_label_grade[silver],
        silver_probability=arrays.silver_probability[items],
    )


def _places(kept: Ints, size: int) -> Ints:
    """Return by place where it is among those kept, -1 where it is not."""
    place = np.full(size, -1, dtype=np.int64)
    place[kept] = np.arange(kept.size)
    return place


def _of_items(runs: SparseRuns, place: Ints, n_items: int) -> SparseRuns:
    entries = np.flatnonzero(place[runs.item] >= 0)
    return SparseRuns(
        runs.n_runs,
        n_items,
        runs.run[entries],
        place[runs.item[entries]].astype(np.int32),
        runs.value[entries],
    )
