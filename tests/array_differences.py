"""In which fields the arrays of two campaigns differ."""

from dataclasses import fields

import numpy as np


def differences(one, other):
    """Return the names of the fields in which two campaigns' arrays differ."""
    return [
        field.name for field in fields(one) if not same(getattr(one, field.name), getattr(other, field.name))
    ]


def same(a, b):
    if isinstance(a, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b)
    if isinstance(a, list):
        return len(a) == len(b) and all(same(*pair) for pair in zip(a, b, strict=True))
    if hasattr(a, "equals"):
        return a.equals(b)
    if hasattr(a, "value") and hasattr(a, "item"):  # sparse ranks
        return all(same(getattr(a, name), getattr(b, name)) for name in ("run", "item", "value"))
    return a == b
