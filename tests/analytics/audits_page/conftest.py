"""A campaign and its manager."""

from copy import deepcopy

import pytest
from audit_plans import client_of
from small_campaign import make_campaign


@pytest.fixture(scope="module")
def made_once(module_world, tmp_path_factory):
    return make_campaign(tmp_path_factory.mktemp("world"), kind="pair")


@pytest.fixture
def campaign(made_once, db):
    return deepcopy(made_once)


@pytest.fixture
def manager(client):
    return client_of("manager")
