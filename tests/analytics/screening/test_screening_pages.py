"""What managers see of a screening, on pages and by the API; and that nobody else does."""

import csv
import io

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from screened_campaign import CAREFUL, CARELESS, make_screened

from analytics.services.recomputation import recompute
from analytics.services.screening import current_flags, screen_campaign
from touchstone.models import User

pytestmark = [pytest.mark.django_db, pytest.mark.xdist_group("screening-pages")]
FIGURES = ["seconds-by-position", "seconds-by-grade", "seconds-by-assessor", "grades-by-assessor"]


@pytest.fixture(autouse=True)
def plain_static_files(settings):
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}
    settings.MIDDLEWARE = [part for part in settings.MIDDLEWARE if "whitenoise" not in part]


@pytest.fixture(scope="module")
def made_once(django_db_setup, django_db_blocker, tmp_path_factory):
    with django_db_blocker.unblock(), transaction.atomic():
        campaign, people = make_screened(tmp_path_factory.mktemp("pages"))
        recompute(campaign=campaign)
        for name, role in (("mia", "manager"), ("rhea", "researcher")):
            User.objects.create(username=name, role=role)
        yield campaign, people
        transaction.set_rollback(True)


@pytest.fixture
def computed(made_once, django_db_blocker):
    """The campaign and its people before the screening."""
    with django_db_blocker.unblock(), transaction.atomic():
        yield made_once
        transaction.set_rollback(True)


@pytest.fixture
def screened(computed):
    screen_campaign(campaign=computed[0])
    return computed


def client_of(name):
    client = Client()
    client.force_login(User.objects.get(username=name))
    return client


def page(view, *arguments, user="mia", **query):
    answer = client_of(user).get(reverse(view, args=arguments), query)
    assert answer.status_code == 200, answer.content[:500]
    return " ".join(answer.content.decode().split())


def rows(campaign, **query):
    answer = client_of("mia").get(f"/api/v1/campaigns/{campaign.pk}/flags", query)
    assert answer.status_code == 200, answer.content
    return answer.json()["results"]


# -- assessors ------------------------------------------------------------------------------------------------------


def test_the_table_shows_the_worst_flag_first_and_how_many_more(screened):
    campaign, people = screened
    text = page("console:assessors", campaign.pk)
    worst = current_flags(campaign).first()
    n_more = current_flags(campaign).count() - 1
    assert f"<strong>{worst.get_kind_display()}</strong> and {n_more} more</summary>{worst.evidence}" in text
    assert f"{n_more} flags more" in text
    assert text.count('class="tag error">flagged') == 1
    table = text[text.index("<tbody>", text.index("Agreement: how often")) :]
    assert table.index(CARELESS) < min(table.index(name) for name in CAREFUL)
    only = page("console:assessors", campaign.pk, only="flagged")
    assert reverse("console:assessor", args=[campaign.pk, people["ann"].pk]) not in only


def test_the_page_opens_with_times_and_grades(computed):
    campaign, _ = computed
    assert "Time and grades" not in page("console:assessors", campaign.pk)
    screen_campaign(campaign=campaign)
    text = page("console:assessors", campaign.pk)
    for name in FIGURES:
        assert f'id="plot-{name}"' in text
        answer = client_of("mia").get(
            reverse("console:assessors", args=[campaign.pk]), {"plot": name, "format": "csv"}
        )
        table = list(csv.reader(io.StringIO(answer.content.decode())))
        assert len(table) > 2
    assert [row[0] for row in table[1:]] == [CARELESS, *CAREFUL]  # the fastest first
    assert table[1][1:] == ["1.0", "0.0", "0.0", "0.0"]
    missing = client_of("mia").get(reverse("console:assessors", args=[campaign.pk]), {"plot": "other"})
    assert missing.status_code == 404


def test_the_overview_counts_assessors_not_flags(screened):
    campaign, _ = screened
    assert "One assessor is flagged." in page("console:campaign", campaign.pk)


# -- one assessor -----------------------------------------------------------------------------------------------------


def test_the_page_of_an_assessor_shows_every_flag_with_picture_advice_and_actions(screened):
    campaign, people = screened
    text = page("console:assessor", campaign.pk, people[CARELESS].pk)
    for flag in current_flags(campaign):
        assert flag.evidence in text
        assert flag.registered_kind.advice in text
        assert f'id="plot-{flag.kind}"' in text
        address = reverse("console:assessor", args=[campaign.pk, people[CARELESS].pk])
        answer = client_of("mia").get(address, {"plot": flag.kind, "format": "csv"})
        assert len(answer.content.decode().splitlines()) > 1
    assert 'href="#messages"' in text
    assert 'href="#again"' in text
    assert "Not tested: all labels alike" in text
    items = reverse("console:items", args=[campaign.pk])
    links = ", ".join(f'<a href="{items}?topic_id=t{n}">t{n}</a>' for n in range(3))
    assert f"Topics: {links}" in text


def test_an_assessor_without_a_flag_has_the_tests_and_their_reasons(screened):
    campaign, people = screened
    text = page("console:assessor", campaign.pk, people["ann"].pk)
    assert "flagged" not in text.lower()
    assert "Every test of the log" in text
    assert "Not tested: too few known answers, or too few peers" in text


def test_before_a_screening_the_page_says_when_there_will_be_one(computed):
    campaign, people = computed
    assert "The log is tested with the numbers" in page("console:assessor", campaign.pk, people["ann"].pk)


def test_the_pages_take_few_statements(screened):
    campaign, people = screened
    for view, arguments in (("assessors", []), ("assessor", [people[CARELESS].pk])):
        address, client = reverse(f"console:{view}", args=[campaign.pk, *arguments]), client_of("mia")
        client.get(address)
        with CaptureQueriesContext(connection) as statements:
            client.get(address)
        assert len(statements) <= 13, view


# -- API --------------------------------------------------------------------------------------------------------------


def test_flags_are_listed_by_test_and_by_assessor(screened):
    campaign, people = screened
    everything = rows(campaign)
    assert {row["assessor"] for row in everything} == {CARELESS}
    kinds = {row["test"] for row in everything}
    assert {"speed", "all-alike"} <= kinds
    [alike] = rows(campaign, test="all-alike")
    assert (alike["effect"], alike["topics"]) == (1.0, ["t0", "t1", "t2"])
    assert alike["p_adjusted"] < 0.1
    assert rows(campaign, assessor=CARELESS) == everything == rows(campaign, assessor_id=people[CARELESS].pk)
    assert rows(campaign, assessor="ann") == []
    assert len(rows(campaign, computation=campaign.computations.last().pk)) == len(everything)
    wrong = client_of("mia").get(f"/api/v1/campaigns/{campaign.pk}/flags", {"test": "astrology"})
    assert wrong.status_code == 400


@pytest.mark.parametrize("name", ["rhea", "ann", CARELESS])
def test_flags_are_for_managers_alone(screened, name):
    campaign, people = screened
    client = client_of(name)
    assert client.get(f"/api/v1/campaigns/{campaign.pk}/flags").status_code == 404
    for view, arguments in (("assessors", []), ("assessor", [people[CARELESS].pk])):
        assert client.get(reverse(f"console:{view}", args=[campaign.pk, *arguments])).status_code == 404


def test_the_assessors_own_pages_say_nothing_of_it(screened):
    campaign, _ = screened
    client = client_of(CARELESS)
    words = [flag.evidence for flag in current_flags(campaign)] + ["flagged", "Fast topics"]
    for view, arguments in (
        ("judging:home", []),
        ("judging:my-data", [campaign.pk]),
        ("judging:judge", [campaign.pk]),
        ("judging:history", [campaign.pk]),
        ("console:api-my-campaigns", []),
        ("console:api-my-judgments", [campaign.pk]),
    ):
        answer = client.get(reverse(view, args=arguments), follow=True)
        assert answer.status_code == 200, view
        body = b"".join(answer) if answer.streaming else answer.content
        assert not [one for one in words if one in body.decode()], view
