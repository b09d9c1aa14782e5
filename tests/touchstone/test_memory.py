"""Memory given back: what nobody reaches any more is gone, whatever the C library can do."""

import ctypes
import gc
import subprocess
import sys
import weakref

import pytest

from touchstone import memory


class Ring:
    """Reaches itself, so that only a collection ends it."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture
def no_collection():
    gc.disable()
    yield
    gc.enable()


@pytest.mark.parametrize("fault", [None, OSError, AttributeError])
def test_a_ring_is_gone_after_memory_was_given_back(no_collection, monkeypatch, fault):
    if fault is not None:

        def refuse(name):
            raise fault

        monkeypatch.setattr(ctypes, "CDLL", refuse)
    ring = weakref.ref(Ring())
    assert ring() is not None  # the control: nothing else ends it
    memory.give_back()
    assert ring() is None


PROGRAM = """
import ctypes, sys
from touchstone import memory

class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in
                ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keep")]

libc, size = ctypes.CDLL(None), 24 << 20
libc.mallinfo2.restype, libc.malloc.restype = Info, ctypes.c_void_p
libc.malloc.argtypes, libc.free.argtypes = [ctypes.c_size_t], [ctypes.c_void_p]
if sys.argv[1] == "returned":
    memory.return_large()
libc.free(libc.malloc(size))  # the library learns that this process frees such pieces
before = libc.mallinfo2().hblkhd  # bytes that go back to the system when they are freed
libc.malloc(size)
print(libc.mallinfo2().hblkhd - before >= size)
"""


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="another C library")
@pytest.mark.parametrize(("how", "goes_back"), [("returned", "True"), ("left alone", "False")])
def test_a_large_piece_goes_back_also_after_one_was_freed(how, goes_back):
    done = subprocess.run([sys.executable, "-c", PROGRAM, how], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == goes_back


def test_a_library_that_knows_no_such_setting_is_left_alone(monkeypatch):
    asked = []

    def refuse(name):
        asked.append(name)
        raise OSError

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    memory.return_large()
    assert asked == [None]
