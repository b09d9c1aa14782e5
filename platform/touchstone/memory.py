"""Memory that a long-lived process has freed, given back to the system."""

import contextlib
import ctypes
import gc

MMAP_THRESHOLD, LARGE = -3, 4 << 20  # mallopt's number of the setting, and its value in bytes


def give_back() -> None:
    """Return to the system what a large step has left behind: the next one need not come on top of it."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):  # a libc that does not know of it keeps it
        ctypes.CDLL(None).malloc_trim(0)


def return_large() -> None:
    """From now on give every large array back when it is freed; the same memory stays for what is small.

    Left alone, the libc raises this limit by itself with the arrays that a process frees, and keeps up to twice as much
    in holes between smaller ones.
    """
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(MMAP_THRESHOLD, LARGE)
