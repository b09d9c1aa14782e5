"""What every request of an API client goes through: scopes, filters, order, pages."""

import json
import uuid
from types import SimpleNamespace

import pytest
from api_requests import HOST, WEBHOOKS, client_of, post
from django.db.models import F
from django.test import Client
from rest_framework import generics, serializers
from rest_framework.exceptions import ValidationError
from rest_framework.test import APIRequestFactory

from touchstone.api.filters import field_of
from touchstone.models import ApiToken, Event, Job, User, Webhook, record

# -- scopes -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scopes", "reads", "writes", "judges"),
    [
        (("read",), 200, 403, 403),
        (("write",), 403, 201, 403),
        (("judge",), 403, 403, 404),  # it may judge, and there is no such campaign
        (("read", "judge", "write"), 200, 201, 404),
    ],
)
def test_a_key_does_what_its_scopes_say_and_nothing_else(scopes, reads, writes, judges, mara):
    client = client_of(mara, *scopes)
    claim = f"/api/v1/campaigns/{uuid.uuid4()}/claim"
    assert client.get("/api/v1/me").status_code == reads
    assert post(client).status_code == writes
    answer = post(client, path=claim, body={})
    assert answer.status_code == judges
    if judges == 403:
        assert answer.json()["type"] == "/problems/ScopeMissing"
        assert "judge" in answer.json()["title"]
    assert Webhook.objects.count() == (1 if writes == 201 else 0)


def test_the_page_of_keys_gives_what_was_ticked_and_at_least_something(mara):
    client = Client()
    client.force_login(mara)
    sent = {"name": "reader", "days": 5, "scopes": ["read"]}
    assert client.post("/account/tokens/", {**sent, "scopes": []}).status_code == 400
    assert client.post("/account/tokens/", {**sent, "scopes": ["all"]}).status_code == 400
    assert client.post("/account/tokens/", sent).status_code == 201
    assert ApiToken.objects.get().scopes == ["read"]


def test_me_says_who_asks_with_which_key(mara):
    answer = client_of(mara, "read", name="mine").get("/api/v1/me").json()
    assert (answer["username"], answer["role"]) == ("mara", "manager")
    assert (answer["key"]["name"], answer["key"]["scopes"]) == ("mine", ["read"])
    session = Client()
    session.force_login(mara)
    assert session.get("/api/v1/me").json()["key"] is None
    assert Client().get("/api/v1/me").status_code == 403


# -- queries, filters, order, pages -------------------------------------------------------------------------------


class EventRow(serializers.ModelSerializer):
    class Meta:
        model = Event
        fields = ("id", "verb")


class Events(generics.ListAPIView):
    authentication_classes = ()
    permission_classes = ()
    throttle_classes = ()
    serializer_class = EventRow
    filter_fields = {
        "verb": "verb",
        "verbs": "verb__in",
        "after": "at__gte",
        "by_somebody": "actor__isnull",
        "number": ("number", serializers.IntegerField(min_value=0)),
    }
    order_fields = ("verb", "actor")

    def get_queryset(self):
        return Event.objects.annotate(number=F("id") * 1)


class Jobs(generics.ListAPIView):
    authentication_classes = permission_classes = throttle_classes = ()
    serializer_class = type(
        "JobRow",
        (serializers.ModelSerializer,),
        {"Meta": type("Meta", (), {"model": Job, "fields": ("id",)})},
    )
    filter_fields = {
        "state": "state",
        "id": "id",
        "attempts": "attempts__gte",
        "cancelled": "cancel_requested",
    }
    order_fields = {"newest": "created_at", "finished": "finished_at"}
    default_order = "-created_at"
    queryset = Job.objects.all()


def ask(view, query=""):
    answer = view.as_view()(APIRequestFactory().get(f"/list{query}"))
    answer.render()
    return answer.status_code, answer.data


def walk(view, query=""):
    """Return what all pages have, each page's rows in a list, following `next`; and back again by `previous`."""
    pages, status_and_data = [], ask(view, query)
    while True:
        status, data = status_and_data
        assert status == 200, data
        pages.append([row["id"] for row in data["results"]])
        if data["next"] is None:
            break
        assert len(pages) < 50
        status_and_data = ask(view, "?" + data["next"].partition("?")[2])
    back = []
    while data["previous"] is not None:
        status, data = ask(view, "?" + data["previous"].partition("?")[2])
        assert status == 200, data
        back.append([row["id"] for row in data["results"]])
    return pages, back


@pytest.mark.django_db
@pytest.mark.parametrize("order", ["verb", "-verb", "actor", "-actor", "verb,-actor", "-actor,verb"])
@pytest.mark.parametrize("size", [1, 3, 7, 200])
def test_pages_have_every_row_once_in_order_both_ways_however_many_are_equal(order, size, mara):
    other = User.objects.create(username="max")
    Event.objects.bulk_create(
        Event(verb=f"verb {n % 3}", subject="x", actor=[None, mara, other][n % 5 % 3]) for n in range(22)
    )
    path = [name.replace("actor", "actor_id") for name in order.split(",")]
    expected = list(
        Event.objects.order_by(
            *[F(p[1:]).desc() if p[0] == "-" else F(p).asc() for p in path], "pk"
        ).values_list("pk", flat=True)
    )
    pages, back = walk(Events, f"?order={order}&page_size={size}")
    assert [one for page in pages for one in page] == expected
    assert all(len(page) == size for page in pages[:-1])
    assert back == pages[-2::-1]


@pytest.mark.django_db
def test_rows_that_come_meanwhile_neither_repeat_nor_hide_others():
    events = [record(f"v{n}", SimpleNamespace(_meta=SimpleNamespace(model_name="x"), pk=n)) for n in range(6)]
    _, first = ask(Events, "?order=verb&page_size=3")
    record("v0 again", SimpleNamespace(_meta=SimpleNamespace(model_name="x"), pk=9))
    _, second = ask(Events, "?" + first["next"].partition("?")[2])
    assert [row["id"] for row in first["results"] + second["results"]] == [event.pk for event in events]


@pytest.mark.django_db
def test_lists_are_filtered_by_what_the_view_lists(mara):
    for verb in ("opened", "closed", "drawn"):
        Event.objects.create(verb=verb, subject="x", actor=mara if verb == "drawn" else None)

    def verbs(query):
        return sorted(row["verb"] for row in ask(Events, query)[1]["results"])

    assert verbs("?verb=opened") == ["opened"]
    assert verbs("?verbs=opened,closed") == ["closed", "opened"]
    assert verbs("?by_somebody=false") == ["drawn"]
    assert verbs("?by_somebody=true&verb=closed") == ["closed"]
    assert verbs("?after=2099-01-01T00:00:00Z") == []
    assert len(verbs("?number=" + str(Event.objects.get(verb="drawn").pk))) == 1


@pytest.mark.django_db
@pytest.mark.parametrize(
    "query",
    [
        "?nope=1",
        "?verb__startswith=o",
        "?actor__password=x",
        "?verb=a&verb=b",
        "?after=yesterday",
        "?after=9999-12-31T23:59:59-23:59",
        "?by_somebody=perhaps",
        "?number=-1",
        "?number=1e3",
        "?verb=" + "v" * 201,
        "?verbs=" + ",".join("v" * 51),
        "?order=id",
        "?order=actor__password",
        "?order=verb,verb",
        "?order=",
        "?order=--verb",
        "?page_size=0",
        "?page_size=201",
        "?page_size=%C2%B2",
        "?page_size=1e1",
        "?page_size=99999999999999999999",
        "?cursor=",
        "?cursor=%00",
        "?cursor=bm9wZQ",
        "?cursor=" + "A" * 3000,
        "?cursor=WyJhZnRlciIsInBrIixbMV1d",
    ],
)
def test_what_a_list_does_not_know_is_refused_and_not_passed_over(query):
    view = type("Checked", (Events,), {"throttle_classes": [_known_query()]})
    status, data = ask(view, query)
    assert status == 400, data
    assert data["type"] == "/problems/Invalid"
    assert len(data["errors"]) == 1


def _known_query():
    from touchstone.api.queries import KnownQuery

    return KnownQuery


@pytest.mark.django_db
@pytest.mark.parametrize(
    "values", [["x", None], [{"a": 1}, 1], ["\ud800", 1], ["a\0", 1], ["a", "b"], ["a"], "ab", 7]
)
def test_a_cursor_that_somebody_made_is_refused_or_harmless(values):
    import base64

    Event.objects.create(verb="v", subject="x")
    text = json.dumps(["after", "verb,pk", values])
    status, data = ask(Events, "?cursor=" + base64.urlsafe_b64encode(text.encode()).decode())
    assert status == (200 if values == ["x", None] else 400), data


@pytest.mark.django_db
def test_columns_say_what_may_be_sent_for_them():
    assert isinstance(field_of(Job, "state"), serializers.ChoiceField)
    assert isinstance(field_of(Job, "id"), serializers.UUIDField)
    assert isinstance(field_of(Job, "attempts__gte"), serializers.IntegerField)
    assert isinstance(field_of(Job, "requested_by__username__icontains"), serializers.CharField)
    with pytest.raises(ValidationError):
        field_of(Job, "state").run_validation("asleep")
    with pytest.raises(LookupError):
        field_of(Job, "no_such_column")
    assert ask(Jobs, "?state=asleep")[0] == 400
    assert ask(Jobs, "?attempts=9223372036854775808")[0] == 400
    assert ask(Jobs, "?attempts=9223372036854775807")[0] == 200
    assert ask(Jobs, "?order=-finished,newest")[0] == 200


@pytest.mark.django_db
def test_a_page_costs_one_statement_and_counts_nothing(django_assert_num_queries):
    Event.objects.bulk_create(Event(verb=f"v{n}", subject="x") for n in range(120))
    with django_assert_num_queries(1) as asked:
        ask(Events, "?page_size=50")
    assert "COUNT" not in asked.captured_queries[0]["sql"].upper()


def test_a_view_without_a_query_knows_no_key(mara):
    client = client_of(mara)
    assert client.get("/api/v1/me?role=manager").json()["errors"] == {
        "role": ["there is nothing of this name to ask for here"]
    }
    assert client.post(f"{WEBHOOKS}?a=1", {"url": HOST}, "application/json").status_code == 400
