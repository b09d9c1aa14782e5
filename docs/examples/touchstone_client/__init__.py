"""A client of the Touchstone API in a few files: copy this folder into your project. It needs httpx alone."""

from touchstone_client.answers import (
    Answer,
    Comparison,
    Estimate,
    Item,
    Job,
    Measures,
    Pair,
    Ranking,
    Release,
    RunEstimate,
)
from touchstone_client.client import Client
from touchstone_client.faults import ApiError, DownloadDamaged, JobFailed, JobTimeout
from touchstone_client.transport import Transport

__all__ = [
    "Answer",
    "ApiError",
    "Client",
    "Comparison",
    "DownloadDamaged",
    "Estimate",
    "Item",
    "Job",
    "JobFailed",
    "JobTimeout",
    "Measures",
    "Pair",
    "Ranking",
    "Release",
    "RunEstimate",
    "Transport",
]
