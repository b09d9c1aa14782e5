"""What filters find, as files: alike from pages, API and command, and nothing that a researcher may not see."""

import csv
import io
import json
import uuid

import polars as pl
import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from small_campaign import lease, make_assessor, make_campaign, slots

from analytics.releases.pseudonyms import pseudonym
from analytics.services.exports import pseudonym_key
from analytics.services.judgment_log import FIELDS
from judging.models import Adjudication, Lease
from judging.services.assign import revise, submit
from sampling.models import DrawEntry
from touchstone.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def campaign(db, tmp_path):
    """Bob gave 1 with a comment, then 2; Dora gave another document back."""
    made = make_campaign(tmp_path)
    bob, dora = make_assessor(made, "bob"), make_assessor(made, "dora")
    first, other = slots(made)[0], slots(made)[2]
    token = lease(bob, first)
    submit(
        assessor=bob,
        token=token,
        client_token=uuid.uuid4(),
        grade=1,
        comment="=sum(A1)",
        active_milliseconds=2500,
    )
    revise(assessor=bob, token=token, client_token=uuid.uuid4(), grade=2)
    submit(assessor=dora, token=lease(dora, other), client_token=uuid.uuid4(), grade=None, obstacle="topic")
    alice = User.objects.create(username="alice", role="manager")
    Adjudication.objects.create(item_id=first.item_id, grade=3, decided_by=alice)
    return made


def client_of(name, role):
    client = Client()
    client.force_login(User.objects.get_or_create(username=name, role=role)[0])
    return client


def read(payload: bytes, file_format: str) -> list[dict]:
    if file_format == "parquet":
        return pl.read_parquet(payload).to_dicts()
    if file_format == "jsonl":
        return [json.loads(line) for line in payload.decode().splitlines()]
    return list(csv.DictReader(io.StringIO(payload.decode())))


def sent(client, name, campaign, *arguments, **asked) -> bytes:
    answer = client.get(reverse(f"console:{name}", args=[campaign.pk, *arguments]), asked)
    assert answer.status_code == 200, answer.content
    return b"".join(answer.streaming_content)


@pytest.mark.parametrize("file_format", ["csv", "jsonl", "parquet"])
def test_pages_api_and_command_write_the_same(campaign, tmp_path, file_format):
    alice = client_of("alice", "manager")
    of_page = sent(alice, "judgments", campaign, assessor="bob", format=file_format)
    of_api = sent(alice, "api-judgment-file", campaign, file_format, assessor="bob")
    file = tmp_path / "judgments"
    call_command(
        "export",
        campaign.name,
        "judgments",
        f"--format={file_format}",
        f"--output={file}",
        "--filter=assessor=bob",
    )
    rows = read(of_page, file_format)
    assert rows == read(of_api, file_format) == read(file.read_bytes(), file_format)
    assert len(rows) == 2
    assert list(rows[0]) == list(FIELDS)


def test_every_field_says_what_is_stored(campaign):
    """By hand, from what the fixture did."""
    rows = read(sent(client_of("alice", "manager"), "judgments", campaign, format="parquet"), "parquet")
    first, second, third = rows
    item = campaign.items.get(pk=first["item"])
    drawn = DrawEntry.objects.get(item=item)
    assert (first["topic_id"], first["doc_id"]) == (item.topic.topic_id, item.document.doc_id)
    assert (first["assessor"], first["tier"], first["kind"], first["purpose"]) == (
        "bob",
        "bronze",
        "human",
        "judge",
    )
    assert (first["sequence"], second["sequence"]) == (1, 2)
    assert (first["grade"], second["grade"], third["grade"]) == (1, 2, None)
    assert (first["obstacle"], third["obstacle"]) == ("", "topic")
    assert (first["comment"], first["active_milliseconds"]) == ("=sum(A1)", 2500)
    assert (first["document_version"], first["topic_version"]) == (1, 1)
    assert [row["is_latest"] for row in rows] == [False, True, True]
    leased = Lease.objects.get(slot__item=item).leased_at
    assert first["leased_at"] == second["leased_at"] == leased.isoformat()
    assert first["created_at"] <= second["created_at"]
    assert {row["batch"] for row in rows} == {1}
    assert first["inclusion_probability"] == pytest.approx(drawn.inclusion_probability)
    assert [row["decision"] for row in rows] == [3, 3, None]


def test_a_file_for_spreadsheets_runs_nothing(campaign):
    alice = client_of("alice", "manager")
    rows = read(sent(alice, "api-judgment-file", campaign, "csv"), "csv")
    assert rows[0]["comment"] == "'=sum(A1)"
    assert read(sent(alice, "api-judgment-file", campaign, "jsonl"), "jsonl")[0]["comment"] == "=sum(A1)"


def test_researchers_get_pseudonyms_and_no_comments(campaign):
    rita = client_of("rita", "researcher")
    name = pseudonym(pseudonym_key(campaign.pk), campaign.assessors.get(user__username="bob").pk)
    rows = read(sent(rita, "api-judgment-file", campaign, "jsonl"), "jsonl")
    assert {row["comment"] for row in rows} == {""}
    assert name in {row["assessor"] for row in rows}
    assert "bob" not in {row["assessor"] for row in rows}
    assert len(read(sent(rita, "api-judgment-file", campaign, "csv", assessor=name), "csv")) == 2
    refused = rita.get(reverse("console:api-judgment-file", args=[campaign.pk, "csv"]), {"comment": "yes"})
    assert refused.status_code == 400


def test_what_is_no_format_or_no_filter_is_refused(campaign):
    alice = client_of("alice", "manager")
    assert alice.get(reverse("console:api-judgment-file", args=[campaign.pk, "xml"])).status_code == 404
    for asked in ({"grade": "12"}, {"colour": "red"}):
        answer = alice.get(reverse("console:api-judgment-file", args=[campaign.pk, "csv"]), asked)
        assert answer.status_code == 400
        assert list(answer.json()["errors"]) == list(asked)
