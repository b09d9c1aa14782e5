"""Reuse on its page and in the API, in every state."""

import json
import re
import uuid

import pytest
from django.test import Client
from django.urls import reverse

import analytics.tasks
import sampling.tasks  # noqa: F401 (registers the jobs)
from analytics.services import top_up as lacking_service
from analytics.services.reuse import ReuseQuestion, answer
from analytics.services.top_up import lacking
from judging.models import Collection
from judging.services.campaigns import DEFAULT_GRADES, create_campaign
from touchstone import jobs
from touchstone.authentication import make_token
from touchstone.models import Job, User

pytestmark = pytest.mark.django_db


# -- the page -------------------------------------------------------------------------------------------------


def client_of(role):
    client = Client()
    client.force_login(User.objects.get_or_create(username=role, defaults={"role": role})[0])
    return client


def page_of(campaign, role="manager", status=200, **asked):
    made = client_of(role).get(reverse("console:reuse", args=[campaign.pk]), asked)
    assert made.status_code == status, made.content.decode()[:2000]
    return " ".join(made.content.decode().split())


def test_the_page_says_no_in_plain_words_and_offers_the_top_up(campaign):
    page = page_of(campaign, run="late", measure="P@10")
    assert "Not yet: late in P@10 – 6 documents that could not be judged may move it by up to +0.200" in page
    assert "The results page shows no number for it yet" in page
    assert "t0d14 (topic t0)" in re.sub(r"<[^>]+>", "", page)
    assert "Draw these items" in page
    assert f"/api/v1/campaigns/{campaign.pk}/draws" in page


def test_researchers_read_and_do_not_draw(campaign):
    page = page_of(campaign, "researcher", run="late", measure="P@10")
    assert "A manager can draw them here" in page
    assert "Draw these items" not in page
    answered = client_of("researcher").post(
        reverse("console:reuse-draw", args=[campaign.pk]), {"run": "late", "measure": "P@10", "budget": 30}
    )
    assert answered.status_code == 404
    assert not Job.objects.exists()


@pytest.mark.parametrize("name", ["console:reuse", "console:reuse-draw", "console:api-reuse"])
@pytest.mark.parametrize("method", ["get", "post"])
def test_to_an_assessor_there_is_no_such_page(campaign, name, method):
    answered = getattr(client_of("assessor"), method)(reverse(name, args=[campaign.pk]), {"run": "run0"})
    assert answered.status_code in (404, 405)


def test_a_campaign_that_was_not_drawn_has_no_such_page(tmp_path):
    made = create_campaign(
        collection=Collection.objects.create(name="c"), name="c", user=None, grades=DEFAULT_GRADES
    )
    page_of(made, status=404, run="run0")


@pytest.mark.parametrize(
    ("asked", "status", "words"),
    [
        ({}, 200, "Choose a run"),
        ({"run": "nobody"}, 400, "the collection has no run &#x27;nobody&#x27;"),
        ({"run": "run0", "against": "run0"}, 400, "both runs are the same"),
        ({"run": "run0", "measure": "nDCG@10"}, 400, "is a ratio"),
        ({"run": "run0", "measure": "<b>"}, 400, "&lt;b&gt;"),
        ({"run": "run0", "half_width": "wide"}, 400, "valid number"),
        ({"run": "run0", "half_width": "-1"}, 400, "greater than or equal to 0"),
        ({"run": "run0", "half_width": "nan"}, 400, "valid number"),
        ({"run": "run0", "measure": "P@10"}, 200, "the estimate is about as precise as those of other runs"),
        (
            {"run": "run0", "measure": "P@10", "half_width": "0.1"},
            200,
            "bring the half-width by the drawing alone to ± 0.0",
        ),
        (
            {"run": "run0", "measure": "P@10", "half_width": "0"},
            200,
            "complete the documents that the answer depends on",
        ),
        (
            {"run": "run0", "measure": "P@10", "half_width": "5"},
            200,
            "is reached with the items already drawn",
        ),
    ],
)
def test_every_state_of_the_page_has_its_words(campaign, asked, status, words):
    assert words in page_of(campaign, status=status, **asked)


def test_a_page_whose_answer_is_being_worked_out_loads_itself_again(campaign, monkeypatch):
    monkeypatch.setattr(lacking_service, "LARGEST_AT_ONCE", 0)
    page = page_of(campaign, run="late", measure="P@10")
    assert "The missing judgments are being computed" in page
    assert '<meta http-equiv="refresh"' in page
    assert Job.objects.filter(kind="reuse").count() == 1


def test_while_a_draw_runs_there_is_no_button(campaign):
    jobs.enqueue(kind="draw", payload={"campaign": str(campaign.pk)}, active_key=str(campaign.pk))
    page = page_of(campaign, run="late", measure="P@10")
    assert "Items are being drawn" in page
    assert "Draw these items" not in page


@pytest.mark.parametrize(
    "fields", [{"run": "late"}, {"run": "nobody", "budget": 30}, {"run": "late", "budget": "x"}]
)
def test_a_draw_that_the_page_did_not_offer_is_refused(campaign, fields):
    answered = client_of("manager").post(reverse("console:reuse-draw", args=[campaign.pk]), fields)
    assert answered.status_code == 400
    assert not Job.objects.exists()


# -- the API --------------------------------------------------------------------------------------------------


@pytest.fixture
def api(campaign):
    _, key = make_token(
        user=User.objects.create(username="rhea", role="researcher"), name=str(uuid.uuid4()), days=1
    )
    client = Client(enforce_csrf_checks=True, headers={"Authorization": f"Bearer {key}"})
    return lambda **asked: client.get(f"/api/v1/campaigns/{campaign.pk}/reuse", asked)


def test_the_api_says_the_same_and_gives_a_design_that_draws_accept(api, campaign):
    said = api(run="late", measure="P@10", half_width=0.1).json()
    assert (said["run"], said["against"], said["measure"]) == ("late", None, "P@10")
    assert said["share_outside"] == pytest.approx(0.2)
    assert said["half_width"] is None
    assert said["wanted_half_width"] == 0.1
    made = lacking(campaign=campaign, asked=ReuseQuestion("late", "P@10"), half_width=0.1)
    assert said["lacking"] == json.loads(json.dumps(made.as_json()))
    queued = client_of("manager").post(
        said["draws"], said["lacking"]["design"], content_type="application/json"
    )
    assert queued.status_code == 202
    assert queued.json()["design"] == said["lacking"]["design"]


def test_unnamed_the_measure_is_that_of_the_draw_and_the_half_width_the_usual_one(api, campaign):
    said = api(run="run0").json()
    assert said["measure"] == "DCG@10"
    assert (
        said["wanted_half_width"]
        == said["usual_half_width"]
        == answer(campaign=campaign, asked=ReuseQuestion("run0", "DCG@10")).usual_half_width
    )


@pytest.mark.parametrize(
    ("asked", "status", "field"),
    [
        ({}, 400, "run"),
        ({"run": "nobody"}, 400, "run"),
        ({"run": "run0", "against": "nobody"}, 400, "against"),
        ({"run": "run0", "measure": "best"}, 400, "measure"),
        ({"run": "run0", "half_width": "inf"}, 400, "half_width"),
        ({"run": "run0", "halfwidth": "1"}, 400, "halfwidth"),
    ],
)
def test_the_api_names_the_fault(api, asked, status, field):
    answered = api(**asked)
    assert (answered.status_code, answered["Content-Type"]) == (status, "application/problem+json")
    assert field in json.loads(answered.json()["detail"])


def test_what_the_api_cannot_be_asked_is_a_conflict(api):
    answered = api(run="run0", measure="P(rel=9)@5")
    assert (answered.status_code, answered.json()["type"]) == (409, "/problems/ReuseRefused")


def test_the_api_says_that_it_is_still_being_worked_out(api, monkeypatch):
    monkeypatch.setattr(lacking_service, "LARGEST_AT_ONCE", 0)
    answered = api(run="late", measure="P@10")
    assert answered.json()["lacking_is_being_computed"]
    assert answered["Retry-After"] == "2"
    assert analytics.tasks.reuse is not None
