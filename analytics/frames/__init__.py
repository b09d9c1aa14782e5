"""Rows to arrays: the only place. `campaign_arrays` reads all of a campaign, `current_arrays` only what is new."""

from analytics.frames.arrays import CampaignArrays
from analytics.frames.arrays import first_drawn as _first_drawn
from analytics.frames.facts import HARMLESS
from analytics.frames.kept import campaign_arrays, current_arrays, forget
from analytics.frames.screening import ScreeningEvidence, screening_evidence
from analytics.numbers.arrays import Floats, Ints

__all__ = [
    "HARMLESS",
    "CampaignArrays",
    "Floats",
    "Ints",
    "ScreeningEvidence",
    "_first_drawn",
    "campaign_arrays",
    "current_arrays",
    "forget",
    "screening_evidence",
]
