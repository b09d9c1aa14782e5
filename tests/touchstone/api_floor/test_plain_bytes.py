"""Files of the API as plain bytes: named first in the description, and answered to who asks for just that."""

import pytest
from django.test import Client
from made_releases import audited, released

from touchstone.api.plain_bytes import PLAIN_BYTES
from touchstone.api.schema import description


def file_answers():
    """Yield the types that every answer with a file has, by operation."""
    for methods in description()["paths"].values():
        for operation in methods.values():
            for answer in operation["responses"].values():
                if any(
                    part["schema"].get("format") == "binary" for part in answer.get("content", {}).values()
                ):
                    yield operation["operationId"], list(answer["content"])


def test_every_file_is_described_as_plain_bytes_first_and_then_as_what_it_is():
    found = dict(file_answers())
    assert found.keys() >= {
        "releases_download",
        "draw_frames_retrieve",
        "plots_retrieve",
        "qrels_retrieve",
        "tables_retrieve",
    }
    assert {types[0] for types in found.values()} == {PLAIN_BYTES}
    assert all(len(types) > 1 and PLAIN_BYTES not in types[1:] for types in found.values())
    assert found["releases_download"][1:] == ["application/zip"]


@pytest.mark.django_db
def test_the_bytes_are_the_same_whatever_they_are_called(mara, tmp_path):
    release = released(audited(tmp_path))
    asker = Client()
    asker.force_login(mara)
    campaign = f"/api/v1/campaigns/{release.campaign_id}"
    usual = {
        f"{campaign}/releases/{release.pk}/download": "application/zip",
        f"{campaign}/draws/1/frame": "application/vnd.apache.parquet",
        f"{campaign}/qrels": "text/plain; charset=utf-8",
        f"{campaign}/plots/forest?format=vega": "application/vnd.vegalite+json",
    }
    for address, kind in usual.items():
        bodies = []
        for accept, expected in ((PLAIN_BYTES, PLAIN_BYTES), ("*/*", kind), (kind, kind)):
            answer = asker.get(address, headers={"accept": accept})
            assert (answer.status_code, answer["Content-Type"]) == (200, expected), address
            assert "Accept" in answer["Vary"]
            bodies.append(answer.getvalue())
        assert bodies[0] == bodies[1] == bodies[2] != b""
    part = asker.get(next(iter(usual)), headers={"accept": PLAIN_BYTES, "range": "bytes=0-3"})
    assert (part.status_code, part["Content-Type"], part.getvalue()) == (206, PLAIN_BYTES, b"PK\x03\x04")
    for address, kind in ((campaign, "application/json"), ("/api/v1/", "text/html; charset=utf-8")):
        assert asker.get(address, headers={"accept": PLAIN_BYTES})["Content-Type"] == kind
    assert asker.get(f"{campaign}/draws/9/frame", headers={"accept": PLAIN_BYTES})["Content-Type"] == (
        "application/problem+json"
    )
