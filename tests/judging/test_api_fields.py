"""Nothing is written or filtered by that is not listed: every field of every model, and every way through relations."""

import json
import uuid
from collections.abc import Iterator

import pytest
from api_tools import api_client
from django.apps import apps
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin
from small_campaign import give, lease, make_assessor, make_campaign, slots
from worlds import look_at_topics

from console.api.urls import urlpatterns
from judging.models import GoldAnswer, Invitation, Message, Participant
from judging.serializers.strict import Token
from touchstone.models import Event, Job

pytestmark = pytest.mark.django_db

# The resources that write and list the facts of judging.
FACTS = {
    "assessors", "campaigns", "collections", "contents", "corrections", "crowd", "imports", "jobs", "judgments",
    "leases", "me", "old_words", "opening", "questions", "taking_back", "training",
}  # fmt: skip
# What may be sent to whom; `None`: the request has no body. Written by hand, from what the screens may change.
COLLECTION = {"name", "description", "shows_html", "source", "licence", "may_publish_documents"}
RULES = {
    "name", "guidelines", "lease_seconds", "break_minutes", "highlights_terms", "machine_prompt", "bronze_score",
    "cost_per_judgment", "cost_per_gold", "pause_below", "judging_order", "check_grades",
}  # fmt: skip
WRITABLE: dict[str, set[str] | None] = {
    "api-collections post": COLLECTION,
    "api-collection patch": COLLECTION,
    "api-collection-delete post": {"confirmation"},
    "api-collection-restore post": None,
    "api-members put": {"is_restricted", "members"},
    "api-document-versions post": {"why", "title", "text", "is_html"},
    "api-topic-versions post": {"why", "title", "description", "narrative"},
    "api-gold-versions post": {"why", "grade"},
    "api-document-old-words post": {"campaigns"},
    "api-topic-old-words post": {"campaigns"},
    "api-import-remove post": {"why"},
    "api-import-keep post": {"files"},
    "api-import-replace post": {"files", "why", "with"},
    "api-import-take-back post": {"why"},
    "api-run-set-aside post": {"why"},
    "api-run-take-in post": None,
    "api-run patch": {"description", "may_publish", "is_manual", "group"},
    "api-campaigns post": RULES | {
        "collection", "grades", "relevant_grade", "judgments_per_item", "gold_check_rate", "gold_check_exposures",
        "decoys_per_check",
    },
    "api-campaign patch": RULES,
    "api-campaign-state post": {"state"},
    "api-campaign-delete post": {"confirmation"},
    "api-campaign-restore post": None,
    "api-topic-teams post": {"team", "topics"},
    "api-assessors post": {"username", "tier", "kind"},
    "api-assessor patch": {"quota", "team", "first_topics"},
    "api-assessor-status post": {"status"},
    "api-assessor-requeue post": {"confirmation"},
    "api-assessor-messages post": {"text"},
    "api-training-attempts post": None,
    "api-invitations post": {"note", "tier", "team", "quota", "max_uses", "days"},
    "api-invitation-revoke post": None,
    "api-market put": {
        "entry", "judgments_per_participant", "market_origin", "completion_code", "completion_url",
    },
    "api-participants-erase post": {"sure"},
    "api-codes post": {"codes"},
    "api-consent put": {"text"},
    "api-training-items post": {"n", "seed"},
    "api-training-rules put": {"attempts", "pass_share"},
    "api-training-explanations put": {"explanations"},
    "api-adjudications post": {"item", "grade", "reason", "verdict"},
    "api-leases-release-expired post": None,
    "api-lease-release post": None,
    "api-question-answer post": {"text", "is_sure"},
    "api-question-close post": None,
    "api-job-cancel post": None,
    "api-my-consent post": {"agrees"},
    "api-my-training post": {"position", "attempt", "grade"},
    "api-my-message-read post": None,
}  # fmt: skip
# What may be said of one of an import's `files`.
FILE_CHOICES = {
    "name", "kind", "file_format", "encoding", "delimiter", "mapping", "numbers_rows", "joins_ids", "is_html",
    "description", "is_manual", "group", "list_name", "assessor_kind", "campaign", "skips_unknown", "grade_map",
    "as_gold", "source_name", "method_codes", "complete", "repeats", "gold_chosen", "by_topic",
}  # fmt: skip
UPLOADS = {"api-imports post"}  # a form of several parts: below
FILTERS: dict[str, set[str]] = {
    "api-collections": {"name", "search", "is_restricted", "order"},
    "api-deleted-collections": {"order"},
    "api-deleted-campaigns": {"collection", "order"},
    "api-document-versions": {"number", "order"},
    "api-topic-versions": {"number", "order"},
    "api-gold-versions": {"number", "order"},
    "api-topics": {"topic_id", "q", "order"},
    "api-documents": {"doc_id", "q", "order"},
    "api-runs": {"run_id", "may_publish", "is_manual", "group", "order"},
    "api-runs-set-aside": {"run_id", "order"},
    "api-scores": {"name", "order"},
    "api-gold-answers": {"topic_id", "doc_id", "source", "grade", "order"},
    "api-imports": {"state", "order"},
    "api-collection-events": {"verb", "actor", "since", "until", "order"},
    "api-campaigns": {"state", "collection", "name", "search", "order"},
    "api-topic-teams": {"team", "topic", "order"},
    "api-campaign-events": {"verb", "actor", "since", "until", "order"},
    "api-assessors": {"tier", "kind", "status", "team", "username", "judged_at_least", "order"},
    "api-assessor-messages": {"order"},
    "api-assessor-events": {"verb", "actor", "since", "until", "order"},
    "api-invitations": {"tier", "state", "order"},
    "api-participants": {"participant", "assessor", "is_unfinished", "order"},
    "api-items": {
        "topic_id", "doc_id", "q", "state", "purpose", "grade", "spread", "assessor", "obstacle", "comment",
        "comment_words", "since", "before", "order",
    },
    "api-judgment-log": {
        "topic_id", "doc_id", "q", "state", "purpose", "grade", "spread", "assessor", "obstacle", "comment",
        "comment_words", "since", "before", "seconds_below", "seconds_above", "tier", "kind", "item", "order",
    },
    "api-adjudications": {"item", "topic_id", "decided_by", "order"},
    "api-leases": {"assessor", "is_expired", "order"},
    "api-questions": {"is_unread", "is_from_assessor", "assessor", "item", "order"},
    "api-jobs": {"kind", "state", "since", "requested_by", "order"},
    "api-my-campaigns": {"order"},
    "api-my-judgments": {"order"},
    "api-my-messages": {"is_unread", "campaign", "order"},
}  # fmt: skip
PAGES = {"cursor", "page_size"}
AT_ONCE = 120  # names in one request: a body has at most 10 kB
FILTERS_AT_ONCE = 500  # a query has at most 1000 names
ALL_ROWS = "SELECT md5(coalesce(string_agg(t::text, '|' ORDER BY t::text), '')) FROM {table} t"
MADE_BY_REQUESTS = {"touchstone_ratecounter", "touchstone_idempotentrequest", "django_session"}


def names() -> list[str]:
    """Return every field of every model, and every field behind a relation, some with a lookup."""
    found = set()
    for model in apps.get_models():
        for field in model._meta.get_fields():
            found |= {field.name, getattr(field, "attname", field.name)}
            if field.related_model is not None and not field.auto_created:
                found |= {f"{field.name}__{other.name}" for other in field.related_model._meta.fields}
    return sorted(
        found | {"pk", "user__password__startswith", "assessor__user__password__regex", "name__contains"}
    )


NAMES = names()


@pytest.fixture
def world(db, tmp_path):
    """Return the people, and what the addresses name."""
    alice = api_client("alice")
    campaign = make_campaign(tmp_path)
    bob = make_assessor(campaign, "bob")
    give(bob, slots(campaign)[0], 1)
    token = lease(bob, slots(campaign)[2])
    Participant.objects.create(campaign=campaign, assessor=bob, participant="worker")
    collection = campaign.collection
    named = {
        "campaign_id": campaign.pk,
        "collection_id": collection.pk,
        "file_format": "csv",
        "document_pk": collection.documents.first().pk,
        "run_pk": collection.runs.first().pk,
        "assessor_id": bob.pk,
        "invitation_id": alice.post(f"/campaigns/{campaign.pk}/invitations", 201)["id"],
        "item_id": slots(campaign)[0].item_id,
        "token": token,
        "topic_pk": collection.topics.first().pk,
        "answer_pk": GoldAnswer.objects.filter(topic__collection=collection).first().pk,
        "import_id": look_at_topics(collection, alice.user).pk,
        "api-import-remove import_id": Event.objects.filter(verb="imported topics").latest("pk").pk,
        "job_id": Job.objects.create(kind="estimate", payload={"campaign": str(campaign.pk)}).pk,
        **dict.fromkeys(
            ["api-question-answer message_id", "api-question-close message_id"],
            Message.objects.create(assessor=bob, sender=bob.user, text="?", is_from_assessor=True).pk,
        ),
        "message_id": Message.objects.create(assessor=bob, sender=alice.user, text="x").pk,
    }
    assert Invitation.objects.exists()
    return {"alice": alice, "bob": api_client("bob", "assessor"), "named": named}


def views() -> Iterator[tuple[str, type, list[str]]]:
    for pattern in urlpatterns:
        view = getattr(pattern.callback, "view_class", None)
        if view and view.__module__.removeprefix("console.api.") in FACTS:
            yield str(pattern.name), view, list(pattern.pattern.converters)


def writes() -> list[str]:
    methods = ("post", "put", "patch", "delete")
    return [f"{name} {method}" for name, view, _ in views() for method in methods if hasattr(view, method)]


def address(world, name):
    wanted = next(keys for other, _, keys in views() if other == name)
    named = world["named"]
    return reverse(f"console:{name}", kwargs={key: named.get(f"{name} {key}", named[key]) for key in wanted})


def whose(world, name):
    return world["bob" if name.startswith("api-my-") else "alice"].client


def snapshot() -> dict[str, str]:
    with connection.cursor() as cursor:
        tables = {model._meta.db_table for model in apps.get_models()} - MADE_BY_REQUESTS
        found = {}
        for table in sorted(tables & set(connection.introspection.table_names())):
            cursor.execute(ALL_ROWS.format(table=table))
            found[table] = cursor.fetchone()[0]
    return found


def test_every_request_that_writes_and_every_list_is_in_the_tables():
    assert set(writes()) == WRITABLE.keys() | UPLOADS
    assert {name for name, view, _ in views() if issubclass(view, ListModelMixin)} == FILTERS.keys()


def test_no_field_is_written_that_is_not_listed(world):
    before = snapshot()
    for entry, listed in WRITABLE.items():
        if listed is None:
            continue
        name, method = entry.split()
        unknown = set()
        for start in range(0, len(NAMES), AT_ONCE):
            body = dict.fromkeys(NAMES[start : start + AT_ONCE], 1) | {"nothing": 1}
            answer = whose(world, name).generic(
                method.upper(), address(world, name), json.dumps(body), content_type="application/json"
            )
            assert answer.status_code == 400, (entry, answer.status_code, answer.content[:300])
            faults = answer.json()["errors"]
            unknown |= {key for key, reasons in faults.items() if reasons == ["there is no such field"]}
        assert unknown == {*NAMES, "nothing"} - listed, entry
    assert snapshot() == before


def test_an_upload_takes_no_other_field_either(world):
    before = snapshot()
    listed = {
        "kind", "files", "file_format", "is_html", "description", "is_manual", "group", "list_name", "as_gold",
        "source_name", "grade_map", "assessor_kind", "campaign", "method_codes",
        "look", "complete", "repeats", "gold_chosen", "by_topic",
    }  # fmt: skip
    unknown = set()
    for start in range(0, len(NAMES), AT_ONCE):
        body = dict.fromkeys(NAMES[start : start + AT_ONCE], "1") | {"nothing": "1"}
        answer = world["alice"].client.post(address(world, "api-imports"), body)
        assert answer.status_code == 400
        faults = answer.json()["errors"]
        unknown |= {key for key, reasons in faults.items() if reasons == ["there is no such field"]}
    assert unknown == {*NAMES, "nothing"} - listed
    assert snapshot() == before


@pytest.mark.parametrize("name", ["api-import-keep", "api-import-replace"])
def test_no_field_of_a_kept_file_is_written_that_is_not_listed(world, name):
    before = snapshot()
    unknown = set()
    for start in range(0, len(NAMES), AT_ONCE):
        choice = dict.fromkeys(NAMES[start : start + AT_ONCE], 1) | {"nothing": 1}
        answer = world["alice"].client.post(
            address(world, name), json.dumps({"files": [choice]}), content_type="application/json"
        )
        assert answer.status_code == 400
        faults = answer.json()["errors"]["files"]["0"]
        unknown |= {key for key, reasons in faults.items() if reasons == ["there is no such field"]}
    assert unknown == {*NAMES, "nothing"} - FILE_CHOICES
    assert snapshot() == before


def test_what_has_no_body_passes_over_what_is_sent(world):
    """It acts, but nothing in the body says on what: the same happens with a body of foreign names as without."""
    for entry in (entry for entry, listed in WRITABLE.items() if listed is None):
        name, method = entry.split()
        outcomes = []
        for body in ({}, dict.fromkeys(NAMES[:AT_ONCE], str(uuid.uuid4()))):
            answer = whose(world, name).generic(
                method.upper(), address(world, name), json.dumps(body), content_type="application/json"
            )
            assert answer.status_code in (200, 400), (entry, answer.content[:300])
            outcomes.append(answer.status_code)
        assert outcomes[0] == 200, entry


def test_no_list_is_filtered_by_what_is_not_listed(world):
    asked = [*NAMES, "nothing"]
    for name, listed in FILTERS.items():
        unknown: set[str] = set()
        for start in range(0, len(asked), FILTERS_AT_ONCE):
            query = dict.fromkeys(asked[start : start + FILTERS_AT_ONCE], "1")
            answer = whose(world, name).get(address(world, name), query)
            assert answer.status_code == 400, name
            unknown |= answer.json()["errors"].keys()
        assert unknown == set(asked) - listed - PAGES, name


def test_no_list_is_ordered_by_what_is_not_listed(world):
    for name in FILTERS:
        for order in ("nothing", "-assessor__user__password", "password", "user__password", "?", "pk,pk", ""):
            answer = whose(world, name).get(address(world, name), {"order": order})
            assert answer.status_code == 400, (name, order)


def test_what_is_read_alone_knows_no_query(world):
    for name, view, _ in views():
        if hasattr(view, "get") and name not in FILTERS:
            assert whose(world, name).get(address(world, name), {"campaign__name": "x"}).status_code == 400, (
                name
            )
            assert whose(world, name).get(address(world, name)).status_code == 200, name


def test_every_read_takes_at_most_twelve_statements(world):
    for name, view, _ in views():
        if hasattr(view, "get"):
            with CaptureQueriesContext(connection) as run:
                assert whose(world, name).get(address(world, name)).status_code == 200
            assert len(run) <= 12, name


def test_every_list_refuses_numbers_that_no_column_holds(world):
    for name in FILTERS:
        for key in FILTERS[name] - {"order"}:
            answer = whose(world, name).get(address(world, name), {key: str(2**80)})
            assert answer.status_code in (200, 400), (name, key)
            answer = whose(world, name).get(address(world, name), {key: "\U0001f600" * 3})
            assert answer.status_code in (200, 400), (name, key)


@pytest.mark.parametrize("sent", [1, 1.5, True, ["1"], None])
def test_a_token_is_text(sent):
    field = Token()
    with pytest.raises(serializers.ValidationError):
        field.run_validation(sent)
    assert field.run_validation("00000000-0000-0000-0000-000000000001").int == 1
