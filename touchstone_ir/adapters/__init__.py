"""The library inside of other tools: ir_measures, PyTerrier, ir_datasets. See docs/pyterrier.md.

None of these packages is needed before a name is used. Importing this package makes releases known to ir_datasets,
where that is installed.
"""

from importlib import import_module
from typing import Any

import touchstone_ir.adapters.ir_datasets_provider  # noqa: F401 (it registers itself)

_MODULES = {"ir_measure": "measures", "experiment": "experiments"}
__all__ = [*_MODULES]  # noqa: PLE0604 (the names of the table)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES})
