"""A client of a test has the static files of its settings, though nobody looks at them for each client."""

import pytest
from django.http import HttpResponse
from whitenoise.base import WhiteNoise
from whitenoise.middleware import WhiteNoiseMiddleware


@pytest.fixture
def looks(monkeypatch, settings, tmp_path):
    """Give the folders that were looked at; a folder of two files is the site's."""
    (tmp_path / "a.css").write_text("a {}")
    (tmp_path / "b.js").write_text("b")
    settings.STATIC_ROOT = tmp_path
    settings.STORAGES = {
        **settings.STORAGES,
        "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
    }
    found = []
    look = WhiteNoise.update_files_dictionary
    monkeypatch.setattr(
        WhiteNoise,
        "update_files_dictionary",
        lambda server, root, prefix: (found.append(root), look(server, root, prefix)),
    )
    return found


def table():
    server = WhiteNoiseMiddleware(lambda request: HttpResponse())
    return {
        url: (file.alternatives, file.not_modified_response.headers) for url, file in server.files.items()
    }


def test_a_folder_is_looked_at_once_and_every_client_has_its_files(looks):
    first = table()
    assert sorted(first) == ["/static/a.css", "/static/b.js"]
    assert table() == first
    assert len(looks) == 1


def test_with_other_settings_it_is_looked_at_anew(looks, settings, tmp_path_factory):
    first = table()
    settings.WHITENOISE_MAX_AGE = 7
    again = table()
    assert again.keys() == first.keys()
    assert again != first
    other = tmp_path_factory.mktemp("other")
    (other / "c.css").write_text("c {}")
    settings.STATIC_ROOT = other
    assert list(table()) == ["/static/c.css"]
    assert len(looks) == 3
