"""Memory given back: what nobody reaches any more is gone, whatever the C library can do."""

import ctypes
import gc
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
