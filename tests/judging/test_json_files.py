"""JSON arrays: an object at a time, places counted in the file, whatever the blocks are in which it comes."""

import io
import json
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judging.faults import Faults
from judging.json_files import json_object, open_objects
from judging.records import read_documents
from judging.textfiles import Limits, TrecFormatError

LEAVES = st.none() | st.booleans() | st.integers() | st.text(alphabet='ab"\\{}[],: \n\u00e9\u20ac')
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner), max_leaves=8
)
OBJECTS = st.lists(st.dictionaries(st.text(max_size=3), VALUES, max_size=4), min_size=1, max_size=6)


class Pieces:
    """A stream that gives so many bytes at a time."""

    def __init__(self, data: bytes, size: int) -> None:
        self.bytes, self.size = io.BytesIO(data), size

    def read(self, size: int = -1, /) -> bytes:
        return self.bytes.read(self.size if size < 0 else min(size, self.size))


def values(data: bytes, size: int = 1 << 16) -> list[Any]:
    return [json_object(one, "a") for one in open_objects(Pieces(data, size), "a", Limits())]


@given(objects=OBJECTS, size=st.integers(1, 40), indent=st.sampled_from([None, 0, 2]), is_ascii=st.booleans())
def test_every_object_comes_out_as_the_standard_library_reads_it(objects, size, indent, is_ascii):
    data = json.dumps(objects, indent=indent, ensure_ascii=is_ascii).encode()
    assert values(data, size) == objects


def test_a_place_is_that_of_the_file():
    lines = open_objects(io.BytesIO(b'[{"a": 1}, {"b": 2},\n  {"c": 3}]'), "a", Limits())
    assert [(one.number, one.column) for one in lines] == [(1, 2), (1, 12), (2, 3)]


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"[", "a:1:2: the JSON array is never closed"),
        (b'[{"_id": "a", "text": "x"}', "a:1:27: the JSON array is never closed"),
        (b'[{"_id": "b}', "a:1:2: the JSON array is never closed"),
        (b"[1]", "a:1:2: expected a JSON object"),
        (b'[{"id": "a", "text": ""} {}]', "a:1:26: expected a comma"),
        (b"[,{}]", "a:1:2: expected a JSON object"),
        (b'[{"id": "a", "text": ""}] {}', "a:1:27: expected nothing behind the JSON array"),
        (b'[\n{"_id": "a", "text": "\xff"}]', "a:1:1: not valid UTF-8 behind this place"),
        (b'[\n{"_id": "a", "text": tru}]', "a:2:22: malformed JSON (Expecting value)"),
        (b'[\n  {"_id": "a",\n "text": tru}]', "a:3:10: malformed JSON (Expecting value)"),
        (b"[]", "a:1:1: no documents in the file"),
    ],
)
def test_what_is_no_array_of_objects_is_named(data, fault):
    with pytest.raises(TrecFormatError) as caught:
        list(read_documents(io.BytesIO(data), "a", file_format="json"))
    assert str(caught.value) == fault


def test_a_malformed_object_is_one_fault_and_the_next_is_read():
    faults = Faults()
    data = b'[{"_id": "a", "text": tru},\n {"_id": "b", "text": "y"},\n {"_id": "c"}]'
    found = list(read_documents(io.BytesIO(data), "a", faults=faults))
    assert [one.doc_id for one in found] == ["b"]
    assert str(faults) == (
        "a:1:23: malformed JSON (Expecting value)\na:3:1: no field named text or contents or body\n2 faults"
    )


def test_a_deep_object_is_refused_and_not_the_end_of_the_process():
    deep = b'{"a":' * 100_000 + b"1" + b"}" * 100_000
    with pytest.raises(TrecFormatError, match="JSON refused"):
        values(b"[" + deep + b"]")


def test_an_object_may_be_as_long_as_a_line():
    data = b'[{"_id": "a", "text": "' + b"x" * 2_000 + b'"}]'
    lines = open_objects(Pieces(data, 100), "a", Limits(max_line=1_000))
    with pytest.raises(TrecFormatError, match="a:1:2: a JSON object longer than 1000 characters"):
        list(lines)


class Endless:
    """An array of many objects that is nowhere in memory."""

    def __init__(self, count: int) -> None:
        self.left, self.rest = count, b"["

    def read(self, size: int = -1, /) -> bytes:
        while len(self.rest) < size and self.left:
            self.left -= 1
            end = b"]" if not self.left else b","
            self.rest += b'{"_id": "%d", "text": "%s"}' % (self.left, b"word " * 200) + end
        data, self.rest = self.rest[:size], self.rest[size:]
        return data


def test_memory_does_not_grow_with_the_array():
    def peak(count: int) -> int:
        tracemalloc.start()
        assert sum(1 for _ in read_documents(Endless(count), "a")) == count
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    assert peak(20_000) < 1.5 * peak(1_000)  # 20 MB, 1 MB
