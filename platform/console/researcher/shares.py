"""The share of relevant documents on the page of results: in all and by topic, by every method."""

from typing import Any

from analytics.models import Computation, ShareEstimate
from analytics.services.shares import METHODS


def share_context(computation: Computation | None) -> dict[str, Any]:
    """Return the shares of a computation: `all` and `topics`, each with its estimates in the order of the methods.

    Empty of a campaign that has none.
    """
    rows = list(ShareEstimate.objects.filter(computation=computation).order_by("pk")) if computation else []
    if not rows:
        return {"shares": None}
    known = {(row.topic, row.method): row for row in rows}
    topics = [topic for topic in dict.fromkeys(row.topic for row in rows) if topic]
    everything = [known["", method.key] for method in METHODS]
    return {
        "shares": {
            "methods": METHODS,
            "measure": rows[0].measure,
            "n_items": everything[0].n_items,
            "all": list(zip(METHODS, everything, strict=True)),
            "reported": everything[0],
            "range": _range(everything),
            "topics": [
                {"name": topic, "estimates": [known[topic, method.key] for method in METHODS]}
                for topic in topics
            ],
        }
    }


def _range(everything: list[ShareEstimate]) -> tuple[float, float] | None:
    """Return the two ends without a corrected number: as judged, and by the matrix inverse."""
    corrected, *ends = everything
    values = [row.value for row in ends if row.value is not None]
    return (min(values), max(values)) if corrected.value is None and len(values) == 2 else None
