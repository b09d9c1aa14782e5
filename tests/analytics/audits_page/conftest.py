"""A campaign and its manager."""

import pytest
from audit_plans import client_of
from small_campaign import make_campaign


@pytest.fixture
def campaign(tmp_path):
    return make_campaign(tmp_path, kind="pair")


@pytest.fixture
def manager(client):
    return client_of("manager")
