import pytest
from ordered_campaign import make_ordered, make_undrawn_order
from small_campaign import make_assessor

from sampling.services.ordering import forget


@pytest.fixture(autouse=True)
def nothing_kept():
    """A process keeps what it worked out of a draw; tests share the process, not the draws."""
    forget()
    yield
    forget()


@pytest.fixture
def undrawn(tmp_path):
    return make_undrawn_order(tmp_path)


@pytest.fixture
def campaign(tmp_path):
    return make_ordered(tmp_path)


@pytest.fixture
def ann(campaign):
    return make_assessor(campaign, "ann")
