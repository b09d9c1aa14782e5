"""The corrected evaluation of retrieval systems: labels of any judge, few gold labels, numbers whose error is known.

>>> import touchstone_ir as ts
>>> ts.compare.__name__
'compare'

Names are loaded when they are first used, so that importing this package costs next to nothing.
"""

from importlib import import_module
from typing import Any

# Where each name comes from.
_MODULES = {
    "read_run": "readers",
    "read_qrels": "readers",
    "read_topics": "readers",
    "design": "draws",
    "draw": "draws",
    "audit": "draws",
    "estimate": "numbers",
    "compare": "numbers",
    "rank": "numbers",
    "evaluate": "releases",
    "verify": "releases",
    "plan": "plans",
    "aggregate": "judges",
    "agreement": "judges",
    "gate": "gates",
}
__all__ = [*_MODULES]  # noqa: PLE0604 (the names of the table)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import PackageNotFoundError, version

        for distribution in ("touchstone-ir", "touchstone"):
            try:
                return version(distribution)
            except PackageNotFoundError:
                continue
        return "0"
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
