"""Results that are no table of runs have no sentence, and are printed as a table of all they hold."""

import pytest

import touchstone_ir as ts

LABELS = {"topic": ["1"] * 4, "doc": ["a", "a", "b", "b"], "assessor": ["x", "y"] * 2, "grade": [0, 0, 1, 1]}


@pytest.mark.parametrize(
    ("kind", "cells"),
    [("cohen", ["cohen", "x", "y", "1.0000"]), ("alpha", ["alpha", "1.0000", "-", "-", "2"])],
)
def test_agreement_is_printed_with_whom_it_is_of(kind, cells):
    found = ts.agreement(LABELS, kind=kind)
    assert found.sentence() == ""
    names, row, *_ = str(found).splitlines()
    assert names.split()[:2] == ["kind", "assessor" if kind == "cohen" else "value"]
    assert row.split()[: len(cells)] == cells
