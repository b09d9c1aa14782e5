"""Calibration as managers, API clients and the command ask for it; foreign sources look like absent ones."""

import json

import pytest
from design_campaign import PAIR as FORM
from design_campaign import add_scores, finish, undrawn
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from gold_elsewhere import N_GOLD, gold_collection
from small_campaign import DEPTH, make_collection

import sampling.tasks  # noqa: F401 (registers the jobs)
from sampling.questions import Design
from sampling.services.drawing import draw
from touchstone.authentication import make_token
from touchstone.models import User

pytestmark = pytest.mark.django_db(transaction=True)

PAIR = {"question": "pair", "runs": ["run0", "run2"], "measure": "DCG@10", "depth": DEPTH, "budget": 20}
SCORED = {"prior": "scores", "scores": "model"}
COMMAND = (
    "--question pair --runs run0 run2 --measure DCG@10 --depth 10 --budget 20 --prior scores --scores model"
)


@pytest.fixture
def campaign(tmp_path):
    made = undrawn(make_collection(tmp_path, gold=False))
    add_scores(made.collection)
    return made


@pytest.fixture
def manager():
    return User.objects.create(username="mia", role="manager")


def restrict(collection):
    collection.is_restricted = True
    collection.save()


# -- the page -------------------------------------------------------------------------------------------------


@pytest.fixture
def browser(client, manager, settings):
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}
    settings.MIDDLEWARE = [part for part in settings.MIDDLEWARE if "whitenoise" not in part]
    client.force_login(manager)
    return client


def page(browser, campaign, name="console:design", **fields):
    answer = browser.get(reverse(name, args=[campaign.pk]), fields)
    return answer.status_code, " ".join(answer.content.decode().split())


def offered(text):
    """Return the sources that the page offers, by value."""
    select = text[text.index('name="calibrated_on"') :]
    options = select[: select.index("</select>")].split('<option value="')[1:]
    return [option.partition('"')[0] for option in options]


def test_the_page_offers_what_the_manager_may_see_and_draws_with_it(browser, campaign):
    source, foreign = gold_collection(), gold_collection()
    restrict(foreign)
    status, text = page(browser, campaign)
    assert (status, offered(text)) == (200, ["", str(source.pk)])
    assert f"collection {source.name}" in text
    assert foreign.name not in text
    asked = FORM | SCORED | {"calibrated_on": str(source.pk)}
    status, text = page(browser, campaign, **asked)
    assert status == 200
    assert "Expected precision" in text
    assert f'name="calibrated_on" value="{source.pk}"' in text  # carried on to the draw
    assert browser.post(reverse("console:design", args=[campaign.pk]), asked).status_code == 302
    assert finish("draw").state == "done"
    made = campaign.draws.get()
    assert made.parameters["calibration"]["n_gold"] == N_GOLD
    _, text = page(browser, campaign, "console:campaign")
    assert f"calibrated on {N_GOLD} gold labels of <code>{source.pk}</code>" in text


@pytest.mark.parametrize("is_there", [True, False])
def test_the_page_refuses_a_foreign_source_as_it_refuses_none(browser, campaign, is_there):
    foreign = gold_collection()
    restrict(foreign)
    wanted = str(foreign.pk) if is_there else "00000000-0000-4000-8000-000000000000"
    status, text = page(browser, campaign, **FORM, **SCORED, calibrated_on=wanted)
    assert status == 400
    assert "there is no such campaign or collection with gold and these scores" in text


def test_the_preview_says_why_a_source_does_not_do(browser, campaign):
    source = gold_collection(n_documents=12)
    _, text = page(browser, campaign, **FORM, **SCORED, calibrated_on=str(source.pk))
    assert "48 documents have gold and a score; 50 or more are needed" in text
    assert "Draw these items" not in text


def test_without_the_scores_as_prior_nothing_is_calibrated(browser, campaign):
    source = gold_collection()
    status, _ = page(browser, campaign, **FORM, prior="runs", calibrated_on=str(source.pk))
    assert status == 200
    browser.post(reverse("console:design", args=[campaign.pk]), FORM | {"calibrated_on": str(source.pk)})
    assert finish("draw").state == "done"
    assert campaign.draws.get().parameters["calibrated_on"] == ""


def test_a_top_up_offers_the_source_of_the_batch_before_unnamed_where_it_may_not_be_seen(browser, campaign):
    source = gold_collection()
    design = Design("pair", ("run0", "run2"), "DCG@10", DEPTH, 20, **SCORED, calibrated_on=str(source.pk))
    made = draw(campaign=campaign, design=design, seed=4)
    restrict(source)
    _, text = page(browser, campaign)
    assert offered(text) == ["", str(source.pk)]
    assert "as the batch before" in text
    assert source.name not in text
    asked = FORM | SCORED | {"calibrated_on": str(source.pk), "budget": 30}
    assert browser.post(reverse("console:design", args=[campaign.pk]), asked).status_code == 302
    assert finish("draw").state == "done"
    assert campaign.draws.get(batch=2).parameters["calibration"] == made.parameters["calibration"]
    status, text = page(
        browser, campaign, **asked | {"depth": 12}
    )  # other coefficients: not theirs to have fitted
    assert status == 400
    assert "there is no campaign or collection" in text


# -- the API --------------------------------------------------------------------------------------------------


@pytest.fixture
def send(campaign, manager):
    _, key = make_token(user=manager, name="tests", days=1)
    program = Client(headers={"Authorization": f"Bearer {key}"})

    def request(path, body=None):
        address = f"/api/v1/campaigns/{campaign.pk}{path}"
        if body is None:
            return program.get(address)
        return program.post(address, json.dumps(body), content_type="application/json")

    return request


def test_the_api_takes_a_name_or_an_id_and_answers_with_the_coefficients(campaign, send):
    source = gold_collection()
    asked = PAIR | SCORED | {"calibrated_on": source.name}
    forecast = send("/forecast", asked)
    assert forecast.status_code == 200, forecast.content
    assert forecast.json()["design"]["calibrated_on"] == str(source.pk)
    answer = send("/draws", asked)
    assert answer.status_code == 202
    assert finish("draw").state == "done"
    (made,) = send("/draws").json()["draws"]
    assert made["calibration"] == campaign.draws.get().parameters["calibration"]
    assert made["calibration"]["n_gold"] == N_GOLD
    assert made["design"]["calibrated_on"] == str(source.pk)
    again = send("/forecast", made["design"] | {"budget": 30})  # what was recorded can be posted again
    assert again.status_code == 200, again.content


def test_a_draw_without_calibration_has_none_in_its_answer(campaign, send):
    send("/draws", PAIR | SCORED)
    assert finish("draw").state == "done"
    (made,) = send("/draws").json()["draws"]
    assert (made["calibration"], made["check_grades"]) == (None, None)


def test_the_api_refuses_a_foreign_source_in_the_words_for_an_absent_one(campaign, send):
    foreign = gold_collection()
    restrict(foreign)
    for path in ("/forecast", "/draws"):
        for reference in (foreign.name, str(foreign.pk), "nobody"):
            answer = send(path, PAIR | SCORED | {"calibrated_on": reference})
            assert answer.status_code == 400
            (fault,) = json.loads(answer.json()["detail"])["calibrated_on"]
            assert f"there is no campaign or collection '{reference}'" in str(fault)
    assert not campaign.draws.exists()


def test_the_api_says_why_a_source_does_not_do(campaign, send):
    source = gold_collection(name="other")
    answer = send("/forecast", PAIR | SCORED | {"calibrated_on": str(source.pk)})
    assert answer.status_code == 409
    assert "the collection to calibrate on has no scores named 'model'" in answer.json()["detail"]
    assert source.name not in answer.json()["detail"]  # others may read what a job says
    answer = send("/forecast", PAIR | {"calibrated_on": str(source.pk)})
    assert answer.status_code == 400
    assert "scores are calibrated where they are the prior" in answer.json()["detail"]


# -- the command ----------------------------------------------------------------------------------------------


def test_the_command_calibrates_by_name(campaign, capsys):
    source = gold_collection()
    call_command("draw", campaign.name, *COMMAND.split(), "--calibrated-on", source.name, "--output", "json")
    printed = json.loads(capsys.readouterr().out)
    assert printed["calibration"]["n_gold"] == N_GOLD
    assert printed["design"]["calibrated_on"] == str(source.pk)


def test_the_command_says_in_one_error_why_not(campaign):
    with pytest.raises(CommandError, match="there is no campaign or collection 'nobody'"):
        call_command("draw", campaign.name, *COMMAND.split(), "--calibrated-on", "nobody")
    small = gold_collection(n_documents=12)
    with pytest.raises(CommandError, match="48 documents have gold and a score"):
        call_command("draw", campaign.name, *COMMAND.split(), "--preview", "--calibrated-on", small.name)
    assert not campaign.draws.exists()
