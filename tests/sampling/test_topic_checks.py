"""Topics checked: a plan from its limits, topics at random from a seed, and a decision with its exact bound."""

import json
from copy import deepcopy

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.test import Client
from django.urls import reverse
from small_campaign import judge_all, make_assessor, make_campaign

from judging.models import Topic
from sampling.draws import permanent_random_numbers
from sampling.models import TopicCheck, TopicCheckPlan, TopicFinding
from sampling.services.topic_checks import (
    PURPOSE,
    TopicChecked,
    TopicCheckRefused,
    limits,
    plan_checks,
    proposed_plan,
    record_finding,
    status_of,
)
from touchstone.models import Event, User

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def made_once(module_world, tmp_path_factory):
    made = make_campaign(tmp_path_factory.mktemp("world"))
    judge_all(made, [make_assessor(made, "ann"), make_assessor(made, "ben")])
    return made


@pytest.fixture
def campaign(made_once, db):
    return deepcopy(made_once)


@pytest.fixture
def manager():
    return User.objects.create(username="mia", role="manager")


@pytest.fixture
def page(manager):
    client = Client()
    client.force_login(manager)
    return client


def make_plan(campaign, n_bad_good=0, n_bad_limit=2, seed=3, user=None, **risks):
    return plan_checks(
        campaign=campaign, n_bad_good=n_bad_good, n_bad_limit=n_bad_limit, seed=seed, user=user, **risks
    )


def answer(plan, is_bad):
    check = status_of(plan).next_check
    return record_finding(check=check, is_bad=is_bad, user=None)


def test_the_plan_of_the_paper_and_the_limits_as_shares():
    assert limits(638, 0.1, 0.364) == (64, 232)
    plan = proposed_plan(638, 64, 232, alpha=0.05, beta=0.05)
    assert (plan.n_checked, plan.most_bad) == (26, 5)


def test_topics_come_without_replacement_in_the_order_of_their_random_numbers(campaign):
    plan = make_plan(campaign)
    names = ["t0", "t1", "t2"]
    numbers = dict(zip(names, permanent_random_numbers(names, names, 3, PURPOSE), strict=True))
    drawn = list(plan.checks.values_list("topic__topic_id", flat=True))
    assert (plan.n_topics, plan.n_checks, plan.most_bad) == (3, 2, 0)
    assert drawn == sorted(names, key=numbers.__getitem__)[:2]
    assert Event.objects.get(verb="planned topic checks").detail["seed"] == 3


def test_another_seed_draws_others(campaign):
    firsts = {make_plan(campaign, seed=seed).checks.first().topic.topic_id for seed in range(12)}
    assert firsts == {"t0", "t1", "t2"}


def test_all_good_is_accepted_with_the_exact_bound_and_told(campaign):
    plan = make_plan(campaign)
    assert status_of(plan).most_bad_topics == 3
    first = answer(plan, False)
    assert (first.is_accepted, first.most_bad_topics) == (None, 2)
    last = answer(plan, False)
    # 1 bad of 3 escapes 2 checks with probability 1/3, 2 never.
    assert (last.is_accepted, last.most_bad_topics, last.next_check) == (True, 1, None)
    assert Event.objects.get(verb="accepted topics").detail == {"sequence": 1, "n_checked": 2, "n_bad": 0}
    assert Event.objects.filter(verb="checked topic: good").count() == 2


def test_too_many_bad_topics_reject_at_once_and_the_rest_may_still_be_checked(campaign):
    plan = make_plan(campaign)
    first = answer(plan, True)
    assert (first.is_accepted, first.n_checked) == (False, 1)
    assert first.next_check is not None
    last = answer(plan, False)
    assert (last.is_accepted, last.n_bad) == (False, 1)
    assert Event.objects.filter(verb="rejected topics").count() == 1


def test_a_topic_is_checked_once_and_in_the_order_of_the_draw(campaign):
    plan = make_plan(campaign)
    first, second = plan.checks.select_related("topic", "plan__campaign")
    with pytest.raises(TopicCheckRefused, match="comes first"):
        record_finding(check=second, is_bad=True, user=None)
    record_finding(check=first, is_bad=True, user=None)
    with pytest.raises(TopicChecked):
        record_finding(check=first, is_bad=False, user=None)
    assert TopicFinding.objects.count() == 1


@pytest.mark.parametrize(
    ("limits_and_risks", "words"),
    [
        ({"n_bad_good": 2, "n_bad_limit": 2}, "got 2 and 2"),
        ({"n_bad_limit": 4}, r"within \[1, 3\], got 4"),
        ({"alpha": 0.0}, "got 0.0"),
        ({"beta": 1.0}, "got 1.0"),
        ({"alpha": float("nan")}, "got nan"),
    ],
)
def test_a_plan_whose_limits_cross_or_whose_risks_are_none_is_refused(campaign, limits_and_risks, words):
    with pytest.raises(TopicCheckRefused, match=words):
        make_plan(campaign, **limits_and_risks)
    assert not TopicCheckPlan.objects.exists()


def test_without_a_judgment_there_is_nothing_to_check(tmp_path):
    with pytest.raises(TopicCheckRefused, match="nobody has judged"):
        make_plan(make_campaign(tmp_path))


# -- what the database refuses -------------------------------------------------------------------------------


def refused(error, message, action):
    with pytest.raises(error, match=message), transaction.atomic():
        action()


def test_a_topic_stands_in_a_plan_once(campaign):
    plan = make_plan(campaign)
    topic = plan.checks.first().topic
    refused(IntegrityError, ".", lambda: TopicCheck.objects.create(plan=plan, sequence=2, topic=topic))


def test_a_plan_has_no_more_checks_than_it_says_and_none_of_other_collections(campaign, tmp_path):
    plan = make_plan(campaign)
    drawn = plan.checks.values_list("topic", flat=True)
    left = Topic.objects.filter(collection=campaign.collection).exclude(pk__in=list(drawn)).get()
    refused(
        IntegrityError, "has no check 3", lambda: TopicCheck.objects.create(plan=plan, sequence=3, topic=left)
    )
    (tmp_path / "other").mkdir()
    other = make_campaign(tmp_path / "other").collection.topics.first()
    again = make_plan(campaign, seed=4)
    refused(
        IntegrityError, "has no check", lambda: TopicCheck.objects.create(plan=again, sequence=1, topic=other)
    )


def test_a_check_has_one_finding(campaign):
    plan = make_plan(campaign)
    answer(plan, True)
    check = plan.checks.first()
    refused(IntegrityError, ".", lambda: TopicFinding.objects.create(topic_check=check, is_bad=False))


@pytest.mark.parametrize(
    "fields",
    [{"n_checks": 4}, {"n_bad_good": 2}, {"n_bad_limit": 4}, {"most_bad": 2}, {"alpha": 0.0}, {"beta": 1.0}],
)
def test_a_plan_that_cannot_be_is_refused_by_the_database(campaign, fields):
    made = make_plan(campaign)
    names = [field.name for field in TopicCheckPlan._meta.fields if field.name not in ("id", "created_at")]
    copy = {name: getattr(made, name) for name in names} | {"sequence": 2}
    refused(IntegrityError, "sampling_topiccheckplan", lambda: TopicCheckPlan.objects.create(**copy | fields))


@pytest.mark.parametrize("table", ["topiccheckplan", "topiccheck", "topicfinding"])
def test_plans_checks_and_findings_are_append_only(campaign, table):
    answer(make_plan(campaign), True)

    def change(statement):
        with connection.cursor() as cursor:
            cursor.execute(statement.format(table))

    refused(DatabaseError, "append-only", lambda: change("DELETE FROM sampling_{}"))
    refused(DatabaseError, "append-only", lambda: change("UPDATE sampling_{} SET created_at = now()"))


# -- the page ------------------------------------------------------------------------------------------------


def address(campaign):
    return reverse("console:topic-checks", args=[campaign.pk])


PLAN = {"good": "10", "limit": "66", "alpha": "5", "beta": "5"}


def test_the_page_shows_a_plan_draws_it_and_leads_to_the_decision(campaign, page):
    shown = page.post(address(campaign), PLAN).content.decode()
    assert "Check 2 of 3 topics; accept if at most 0 are bad." in shown
    assert not TopicCheckPlan.objects.exists()
    assert page.post(address(campaign), PLAN | {"draw": "draw"}).status_code == 302
    plan = TopicCheckPlan.objects.get()
    assert plan.made_by.username == "mia"
    for place in range(2):
        shown = page.get(address(campaign)).content.decode()
        check = plan.checks.get(sequence=place + 1)
        assert f"<code>{check.topic.topic_id}</code>" in shown
        assert "10 of 14 judged documents" in shown
        assert "ann" in shown
        finding = reverse("console:topic-check", args=[campaign.pk, check.pk])
        page.post(finding, {"finding": "good", "reason": "as it should be"})
    shown = page.get(address(campaign)).content.decode()
    assert "<strong>Accept:</strong> 0 of 2 topics checked are bad" in shown
    assert "at most <strong>1 of 3</strong>" in shown
    assert "as it should be" in shown


def test_a_rejection_names_its_risk(campaign, page):
    plan = make_plan(campaign)
    answer(plan, True)
    shown = page.get(address(campaign)).content.decode()
    assert "<strong>Reject:</strong> 1 of 1 topics checked are bad, and the plan allows 0." in shown
    assert "They cannot change the decision" in shown


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"good": "60", "limit": "60"}, "60 % are 2 of 3 topics, 60 % are 2"),
        ({"limit": "101"}, "100"),
        ({"alpha": "0"}, "0.1"),
        ({"good": "x"}, "number"),
        ({"limit": "nan"}, "number"),
    ],
)
def test_what_no_plan_follows_from_is_refused_beside_its_field(campaign, page, changes, words):
    answer_of_page = page.post(address(campaign), PLAN | changes | {"draw": "draw"})
    assert answer_of_page.status_code == 400
    assert words in answer_of_page.content.decode()
    assert not TopicCheckPlan.objects.exists()


def test_a_finding_that_is_neither_good_nor_bad_is_refused(campaign, page):
    check = make_plan(campaign).checks.first()
    page.post(reverse("console:topic-check", args=[campaign.pk, check.pk]), {"finding": "maybe"})
    assert not TopicFinding.objects.exists()


def test_before_the_first_judgment_the_page_says_so(tmp_path, page):
    shown = page.get(address(make_campaign(tmp_path))).content.decode()
    assert "Nobody has judged yet" in shown


def test_several_plans_are_listed(campaign, page):
    for seed in (1, 2):
        make_plan(campaign, seed=seed)
    assert "All plans" in page.get(address(campaign)).content.decode()


# -- the API -------------------------------------------------------------------------------------------------


def send(client, path, body):
    return client.post(path, json.dumps(body), content_type="application/json")


def test_the_api_makes_a_plan_takes_findings_and_lists_them(campaign, page):
    base = f"/api/v1/campaigns/{campaign.pk}/topic-checks"
    made = send(page, base, {"n_bad_good": 0, "n_bad_limit": 2, "seed": 3})
    assert made.status_code == 201
    plan = made.json()
    assert (plan["n_checks"], plan["most_bad"], plan["is_accepted"]) == (2, 0, None)
    findings = f"{base}/{plan['sequence']}/findings"
    first, second = [check["topic_id"] for check in plan["checks"]]
    assert send(page, findings, {"topic_id": second, "is_bad": False}).status_code == 400
    assert send(page, findings, {"topic_id": "t9", "is_bad": False}).status_code == 400
    assert send(page, findings, {"topic_id": first, "is_bad": True, "reason": "guessed"}).status_code == 201
    assert send(page, findings, {"topic_id": first, "is_bad": True}).status_code == 409
    (listed,) = page.get(base).json()["plans"]
    assert (listed["is_accepted"], listed["n_bad"]) == (False, 1)
    assert listed["checks"][0] == {"sequence": 1, "topic_id": first, "is_bad": True, "reason": "guessed"}


def test_the_api_refuses_limits_that_cross_with_their_values(campaign, page):
    base = f"/api/v1/campaigns/{campaign.pk}/topic-checks"
    refusal = send(page, base, {"n_bad_good": 2, "n_bad_limit": 1})
    assert refusal.status_code == 400
    assert "got 2 and 1" in refusal.json()["detail"]
