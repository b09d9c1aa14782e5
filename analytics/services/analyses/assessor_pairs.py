"""Who disagrees with whom about relevance, by the names that files and analyses give to assessors."""

import math
from typing import Any

import numpy as np

from analytics.agreement.overlap import LEAST_DOCUMENTS, assessor_pairs
from analytics.frames import CampaignArrays
from analytics.releases.pseudonyms import pseudonym
from analytics.services.exports import pseudonym_key
from judging.models import Campaign

SHOWN_PAIRS = 50


def disagreeing_assessors(campaign: Campaign, arrays: CampaignArrays) -> dict[str, Any]:
    """Return the pairs of bronze assessors with documents in common, those who agree least beyond chance first."""
    pairs = assessor_pairs(arrays.labels)
    n = pairs.n_documents.size
    if n == 0:
        return {"refusal": f"no two assessors have judged {LEAST_DOCUMENTS} documents in common"}
    order = np.lexsort((pairs.agreement, np.nan_to_num(pairs.kappa, nan=2.0)))
    shown = pairs.part(order[:SHOWN_PAIRS])
    key = pseudonym_key(campaign.pk)
    names = {
        place: pseudonym(key, arrays.assessors[place].pk)
        for place in np.unique([shown.first, shown.second]).tolist()
    }
    rows = zip(
        shown.first.tolist(),
        shown.second.tolist(),
        shown.counts.tolist(),
        shown.agreement.tolist(),
        shown.kappa.tolist(),
        strict=True,
    )
    return {
        "refusal": "",
        "n": n,
        "n_left": n - min(n, SHOWN_PAIRS),
        "pairs": [
            {
                "of": [names[first], names[second]],
                "n": sum(map(sum, counts)),
                "first_alone": counts[1][0],
                "second_alone": counts[0][1],
                "agreement": agreement,
                "kappa": None if math.isnan(kappa) else kappa,
            }
            for first, second, counts, agreement, kappa in rows
        ],
    }


def names_behind(campaign: Campaign) -> dict[str, str]:
    """Return the user names of the campaign's assessors by the names above: for managers alone."""
    key = pseudonym_key(campaign.pk)
    people = campaign.assessors.select_related("user")
    return {pseudonym(key, one.pk): one.user.get_username() for one in people}
