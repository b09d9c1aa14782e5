"""The tests of the ledger share a world with rows in every sealed table."""

import pytest
from ledger_world import seal_three_times


@pytest.fixture
def sealed(db):
    seal_three_times()
