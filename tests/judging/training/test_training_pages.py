"""The pages of the training round, for trainees and managers."""

import pytest
from django.test import Client
from django.urls import reverse
from quick_flush import unguarded
from small_campaign import make_assessor
from trainees import go_through, off_by_one

from judging.models import (
    Campaign,
    GoldAnswer,
    TrainingAnswer,
)
from judging.services import training
from touchstone.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture
def web(bob):
    client = Client()
    client.force_login(bob.user)
    return client


def path(assessor):
    return reverse("judging:training", args=[assessor.campaign_id])


def text_of(response):
    return " ".join(response.content.decode().split())


def test_the_page_tells_the_reference_and_the_reason_after_the_answer_and_not_before(bob, web, alice):
    training.set_explanations(
        campaign=bob.campaign, texts={n: f"Reason number {n}" for n in range(1, 5)}, user=alice
    )
    for number in range(1, 5):
        page = web.get(path(bob))
        item = page.context["item"]
        assert f"{number} of 4" in text_of(page)
        assert "Reason number" not in text_of(page)
        assert "reference</p>" not in text_of(page)
        assert page.context["reference"] is None
        wrong = off_by_one(item.grade)
        grade = wrong if number == 1 else item.grade
        told = web.post(path(bob), {"position": item.position, "attempt": 1, "grade": grade}, follow=True)
        assert f"Reason number {item.position}" in text_of(told)
        labels = {grade.value: str(grade) for grade in bob.campaign.scale.grades.all()}
        if number == 1:
            assert f"You gave {labels[wrong]}; the reference grade is {labels[item.grade]}." in text_of(told)
        else:
            assert "Correct." in text_of(told)
    result = text_of(web.get(path(bob)))
    assert "Training passed" in result
    assert "3 of 4 correct: 75 %" in result
    assert web.get(reverse("judging:judge", args=[bob.campaign_id])).status_code == 200


def test_the_grades_are_buttons_of_a_form_that_works_without_a_script(bob, web):
    page = text_of(web.get(path(bob)))
    for grade in range(4):
        assert f'<button class="grade" name="grade" value="{grade}"' in page


def test_failing_leads_to_another_attempt_and_then_to_the_manager(bob, web, manager):
    assert web.get(reverse("judging:judge", args=[bob.campaign_id])).url == path(bob)
    go_through(bob, n_right=1)
    page = text_of(web.get(path(bob)))
    assert "Not passed yet" in page
    assert "1 attempt is left." in page
    assert "attempt 2" in text_of(web.get(path(bob), {"again": "1"}))
    go_through(bob, n_right=1)
    assert "Please ask the manager" in text_of(web.get(path(bob)))
    assert "Please ask the manager" in text_of(web.get(path(bob), {"again": "1"}))
    there = reverse("console:manage-entry", args=[bob.campaign_id])
    page = text_of(manager.get(there))
    assert "waits for you" in page
    grant = reverse("console:entry-attempt", args=[bob.campaign_id, bob.pk])
    assert grant in page
    assert "bob may repeat the training once" in text_of(manager.post(grant, follow=True))
    assert "attempt 3" in text_of(web.get(path(bob), {"again": "1"}))


def test_no_item_is_given_out_before_training_is_passed_whichever_way_it_is_asked_for(bob, web):
    claim = reverse("judging:claim", args=[bob.campaign_id])
    refused = web.post(claim, {}, content_type="application/json")
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/TrainingMissing")
    go_through(bob, n_right=0)
    assert web.post(claim, {}, content_type="application/json").status_code == 409
    go_through(bob, n_right=4)
    assert web.post(claim, {}, content_type="application/json").json()["items"]


def test_the_consent_text_comes_before_the_training(bob, web):
    Campaign.objects.update(consent="Do you agree?")
    assert web.get(path(bob)).url == reverse("judging:consent", args=[bob.campaign_id])
    answer = web.post(path(bob), {"position": 1, "attempt": 1, "grade": 0})
    assert answer.url == reverse("judging:consent", args=[bob.campaign_id])
    assert TrainingAnswer.objects.count() == 0


@pytest.mark.parametrize("body", [{}, {"grade": "x"}, {"position": "1", "attempt": "1", "grade": ""}])
def test_an_answer_that_is_no_three_numbers_is_refused(bob, web, body):
    assert web.post(path(bob), body).status_code == 400
    assert TrainingAnswer.objects.count() == 0


def test_the_document_comes_in_a_sandboxed_frame_for_assessors_of_the_campaign_alone(bob, web):
    frame = reverse("judging:training-frame", args=[bob.campaign_id, 2])
    answer = web.get(frame)
    item = bob.campaign.training_items.select_related("document").get(position=2)
    assert item.document.text in text_of(answer)
    assert answer["Content-Security-Policy"].startswith("sandbox; default-src 'none'")
    assert answer["X-Frame-Options"] == "SAMEORIGIN"
    assert web.get(reverse("judging:training-frame", args=[bob.campaign_id, 5])).status_code == 404
    charlie = Client()
    assert charlie.get(frame).status_code == 302
    charlie.force_login(User.objects.create(username="charlie"))
    assert charlie.get(frame).status_code == 404
    assert charlie.get(path(bob)).status_code == 404


def test_a_manager_chooses_explains_and_sets_the_rules_on_one_page(manager, campaign):
    there = reverse("console:manage-entry", args=[campaign.pk])
    page = text_of(
        manager.post(reverse("console:entry-training", args=[campaign.pk]), {"items-n": "5"}, follow=True)
    )
    assert campaign.training_items.count() == 5
    assert "5 training items were chosen" in page
    rules = reverse("console:entry-training-rules", args=[campaign.pk])
    manager.post(rules, {"rules-attempts": "3", "rules-percent": "80"})
    campaign.refresh_from_db()
    assert (campaign.training_attempts, campaign.training_pass_share) == (3, 0.8)
    assert manager.post(rules, {"rules-attempts": "0", "rules-percent": "101"}).status_code == 400
    texts = {f"explanation-{n}": f"because of {n}" for n in range(1, 7)}
    manager.post(reverse("console:entry-explanations", args=[campaign.pk]), texts)
    written = dict(campaign.training_items.values_list("position", "explanation"))
    assert written == {n: f"because of {n}" for n in range(1, 6)}
    bob = make_assessor(campaign, "bob")
    training.answer(assessor=bob, position=1, attempt=1, grade=0)
    page = text_of(manager.get(there))
    assert "the items and their reasons are fixed" in page
    assert '<textarea id="explanation-1"' not in page
    assert (
        manager.post(reverse("console:entry-training", args=[campaign.pk]), {"items-n": "2"}).status_code
        == 409
    )
    assert manager.post(reverse("console:entry-explanations", args=[campaign.pk]), texts).status_code == 409
    assert campaign.training_items.count() == 5


def test_the_manager_is_told_when_there_are_too_few_gold_answers(manager, campaign):
    with unguarded(["judging_goldanswer"]):
        GoldAnswer.objects.all().delete()
    answer = manager.post(reverse("console:entry-training", args=[campaign.pk]), {"items-n": "5"})
    assert answer.status_code == 409
    assert "only 0 gold answers" in text_of(answer)
