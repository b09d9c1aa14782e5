"""Files of judgments over the API: what the command writes, to the byte, and no more of it in memory than a part."""

from collections.abc import Iterator
from io import StringIO
from types import SimpleNamespace

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from file_campaign import judged_campaign
from made_releases import audited

from analytics.services.exports import EXPORTS, ExportFormat
from console.researcher import downloads
from touchstone.api.schema import description
from touchstone.models import User

pytestmark = pytest.mark.django_db
LINES = 10_000


@pytest.fixture
def rhea() -> Client:
    client = Client()
    client.force_login(User.objects.create(username="rhea", role="researcher"))
    return client


def address(campaign, key: str) -> str:
    return reverse(f"console:api-{key}", args=[campaign.pk])


def written(campaign, *arguments: str) -> bytes:
    stream = StringIO()
    call_command("export", str(campaign.pk), *arguments, stdout=stream)
    return stream.getvalue().encode()


@pytest.mark.parametrize("one", EXPORTS, ids=lambda one: one.key)
def test_the_api_gives_what_the_command_writes(one, tmp_path, rhea):
    campaign = audited(tmp_path)
    plain = rhea.get(address(campaign, one.key))
    assert plain.streaming
    assert plain["Content-Type"] == one.content_type
    assert (
        plain["Content-Disposition"] == f'attachment; filename="{one.file_name.format(campaign=campaign.pk)}"'
    )
    content = plain.getvalue()
    assert content.count(b"\n") > 20
    assert content == written(campaign, one.key)
    of_assessors = rhea.get(address(campaign, one.key), {"prefers_gold": "false"}).getvalue()
    assert of_assessors == written(campaign, one.key, "--without-gold")


def test_an_audit_stands_before_the_assessors_or_not(rhea):
    """10 d1 was graded 2, the audit says 1."""
    campaign = judged_campaign()
    for asked, line in (("true", b"10 0 d1 1\n"), ("false", b"10 0 d1 2\n")):
        assert line in rhea.get(address(campaign, "qrels"), {"prefers_gold": asked}).getvalue()


def test_items_that_nobody_drew_have_no_prels_and_a_query_that_nobody_knows_is_refused(rhea):
    campaign = judged_campaign()
    refused = rhea.get(address(campaign, "prels"))
    assert (refused.status_code, refused["Content-Type"]) == (409, "application/problem+json")
    assert "were not drawn" in refused.json()["title"]
    for asked in ({"gold": "no"}, {"prefers_gold": "maybe"}):
        answer = rhea.get(address(campaign, "qrels"), asked)
        assert (answer.status_code, list(answer.json()["errors"])) == (400, list(asked))


def test_lines_are_made_as_they_are_sent():
    made: list[int] = []

    def lines(_: object, __: bool) -> Iterator[str]:
        for n in range(LINES):
            made.append(n)
            yield f"{n} 0 d {n % 3}\n"

    one = ExportFormat("many", "Many", "Many lines.", "{campaign}.many", lines)
    answer = downloads.export_file(one, SimpleNamespace(pk="c"))
    parts = iter(answer.streaming_content)
    first = next(parts)
    assert len(made) == downloads.LINES_AT_ONCE < LINES
    assert first + b"".join(parts) == "".join(lines(None, True)).encode()


def test_the_description_has_a_file_for_every_format():
    paths = description()["paths"]
    for one in EXPORTS:
        operation = paths[f"/api/v1/campaigns/{{campaign_id}}/{one.key}"]["get"]
        assert operation["x-scope"] == "read"
        assert operation["description"] == one.help
        content = operation["responses"]["200"]["content"]
        assert list(content) == ["application/octet-stream", one.content_type.partition(";")[0]]
        assert all(part == {"schema": {"type": "string", "format": "binary"}} for part in content.values())
