"""A quick heartbeat, and Redis away."""

import pytest
from job_kinds import gate

from touchstone import jobs


@pytest.fixture(autouse=True)
def quick_heartbeat(monkeypatch):
    gate.clear()
    monkeypatch.setattr(jobs, "HEARTBEAT_SECONDS", 0.05)
    yield
    gate.set()


@pytest.fixture
def no_redis(monkeypatch):
    """For tests about rows alone: nobody is woken up, `jobs.run` is called by the test."""
    monkeypatch.setattr(jobs, "poke", lambda lane: True)
