"""What a key may do: read, judge in its person's name, change what its person may change."""

from typing import Any


def scope_of(view: Any, method: str) -> str:
    """Return the scope that a key needs for this: what the view says, else by whether something may change."""
    return getattr(view, "scope", None) or ("read" if method in ("GET", "HEAD", "OPTIONS") else "write")
