"""Short waits, and a model on loopback."""

import pytest
from machine_campaign import make_campaign

from judging.management import machine_run
from judging.services import machines


@pytest.fixture(autouse=True)
def short_waits(monkeypatch):
    monkeypatch.setattr(machine_run, "FIRST_WAIT", 0.01)


@pytest.fixture
def robot():
    return machines.add_machine(campaign=make_campaign(), username="robot")
