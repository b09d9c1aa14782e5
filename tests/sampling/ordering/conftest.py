import pytest
from ordered_campaign import make_ordered, make_undrawn_order
from small_campaign import make_assessor


@pytest.fixture
def undrawn(tmp_path):
    return make_undrawn_order(tmp_path)


@pytest.fixture
def campaign(tmp_path):
    return make_ordered(tmp_path)


@pytest.fixture
def ann(campaign):
    return make_assessor(campaign, "ann")
