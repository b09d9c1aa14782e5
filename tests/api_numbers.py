"""What the API of results is asked."""

from typing import Any


def newest(campaign: Any) -> Any:
    return campaign.computations.order_by("-id").first()
