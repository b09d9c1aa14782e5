"""A campaign's arrays with less evidence: some of the judged items, labels or gold checks."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from analytics.frames.arrays import CampaignArrays
from analytics.numbers.arrays import Ints


def with_judged(arrays: CampaignArrays, items: Ints, labels: Ints) -> CampaignArrays:
    """Return the arrays with these judged items alone, in this order, and these of their labels."""
    place = places_among(items, arrays.judged.size)
    silver = place[arrays.silver_label_item] >= 0
    return replace(
        arrays,
        judged=arrays.judged[items],
        batch=arrays.batch[items],
        label_item=place[arrays.label_item[labels]],
        label_assessor=arrays.label_assessor[labels],
        label_grade=arrays.label_grade[labels],
        label_time=arrays.label_time[labels],
        label_judgment=arrays.label_judgment[labels],
        audited=arrays.audited[items],
        audit_grade=arrays.audit_grade[items],
        audit_probability=arrays.audit_probability[items],
        fitted_gold=arrays.fitted_gold[items],
        silver_label_item=place[arrays.silver_label_item[silver]],
        silver_label_assessor=arrays.silver_label_assessor[silver],
        silver_label_grade=arrays.silver_label_grade[silver],
        silver_probability=arrays.silver_probability[items],
    )


def with_checks(arrays: CampaignArrays, kept: NDArray[np.bool_]) -> CampaignArrays:
    """Return the arrays with these gold checks [check] alone."""
    return replace(
        arrays,
        check_assessor=arrays.check_assessor[kept],
        check_true=arrays.check_true[kept],
        check_given=arrays.check_given[kept],
        check_time=arrays.check_time[kept],
        check_judgment=arrays.check_judgment[kept],
    )


def places_among(kept: Ints, size: int) -> Ints:
    """Return by place [size] where it is among those kept, -1 where it is not."""
    place = np.full(size, -1, dtype=np.int64)
    place[kept] = np.arange(kept.size)
    return place
