"""A client of the Touchstone API: it needs httpx alone, which `pip install "touchstone-ir[client]"` brings."""

try:
    import httpx  # noqa: F401  # named here, so that who lacks it is told what to install
except ImportError as lack:
    raise ImportError('touchstone_ir.client needs httpx: pip install "touchstone-ir[client]"') from lack

from touchstone_ir.client.answers import (
    Answer,
    Comparison,
    Estimate,
    Item,
    Job,
    Judgment,
    Measures,
    Outcome,
    Pair,
    Ranking,
    Release,
    RunEstimate,
    Submission,
)
from touchstone_ir.client.client import Client
from touchstone_ir.client.faults import ApiError, DownloadDamaged, JobFailed, JobTimeout
from touchstone_ir.client.transport import Transport

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
    "Judgment",
    "Measures",
    "Outcome",
    "Pair",
    "Ranking",
    "Release",
    "RunEstimate",
    "Submission",
    "Transport",
]
