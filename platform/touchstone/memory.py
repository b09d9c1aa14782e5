"""Memory that a long-lived process has freed, given back to the system."""

import contextlib
import ctypes
import gc


def give_back() -> None:
    """Return to the system what a large step has left behind: the next one need not come on top of it."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # a libc that does not know of it keeps it
        ctypes.CDLL(None).malloc_trim(0)
