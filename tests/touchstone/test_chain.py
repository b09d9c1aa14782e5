"""The hash chain: what its head is, and what changes it."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from touchstone.chain import BEGINNING, extend

LINES = st.lists(st.text(st.characters(codec="utf-8"), max_size=5), max_size=5)


@pytest.mark.parametrize(
    ("lines", "begins"), [(["a", "b"], "153d5381929b5079"), (["b", "a"], "c1c5916f2ce8f7a6")]
)
def test_the_head_depends_on_the_lines_and_their_order(lines, begins):
    assert extend(BEGINNING, lines).hex().startswith(begins)


def test_the_head_of_one_line_by_hand():
    one = hashlib.sha256("ä".encode()).hexdigest()
    assert extend(BEGINNING, ["ä"]).hex() == hashlib.sha256(bytes.fromhex("00" * 32 + one)).hexdigest()


@given(LINES, LINES)
def test_lines_may_come_in_parts_and_others_have_another_head(first, second):
    assert extend(extend(BEGINNING, first), iter(second)) == extend(BEGINNING, first + second)
    assert (extend(BEGINNING, first) == extend(BEGINNING, second)) == (first == second)


def test_a_head_of_another_length_is_refused():
    with pytest.raises(ValueError, match="32 bytes, not 31"):
        extend(bytes(31), ["a"])
