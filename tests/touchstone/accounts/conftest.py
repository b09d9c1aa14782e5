"""The company's log-in: a provider for all tests of a file, and a site that uses it."""

import openid_provider
import pytest

from touchstone import openid


@pytest.fixture(scope="module")
def started_provider():
    with openid_provider.running() as provider:
        yield provider


@pytest.fixture
def provider(started_provider, settings, monkeypatch):
    """The provider, which tells the truth again; the site knows nothing of it yet, as after a start."""
    started_provider.lie()
    for name, value in started_provider.register().items():
        setattr(settings, name, value)
    monkeypatch.setattr(openid, "_known", openid._Memory())
    return started_provider
