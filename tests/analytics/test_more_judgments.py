"""One judgment more of chosen documents: the plan, the slots, who gets them, and the manager's page."""

import uuid
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from small_campaign import give, make_assessor, make_campaign, make_undrawn, slots, truth_of
from small_release import judged_campaign

import analytics.tasks  # noqa: F401 (registers the kinds of job)
from analytics.estimation.relevance_errors import relevance_errors
from analytics.frames import current_arrays
from analytics.services import rejudging, simulations
from analytics.services.confusions import assessor_confusion_counts
from analytics.services.recomputation import recompute
from analytics.services.rejudging import RejudgingChoice, open_rejudging, rejudging_plan
from judging.models import Campaign, Judgment, Slot
from judging.services.assign import claim, submit
from judging.services.campaigns import close_campaign
from judging.services.more_judgments import MoreJudgmentsRefused, complete_items, open_one_more
from sampling.audit_plan import middle_grades
from sampling.rejudging import SampledTopic, sampled_average_precision
from sampling.rejudging_policies import rejudging_policy_keys
from touchstone import jobs
from touchstone.models import Event, Job, User

pytestmark = pytest.mark.django_db
EVERY = RejudgingChoice("random", 10_000)


@pytest.fixture(autouse=True)
def plain_static_files(settings):
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}


@pytest.fixture(scope="module")
def campaign_once(module_world, tmp_path_factory):
    made = Campaign.objects.select_related("scale", "collection").get(
        pk=judged_campaign(tmp_path_factory.mktemp("campaign")).pk
    )
    made.third = make_assessor(made, "cleo")
    return made


@pytest.fixture
def campaign(campaign_once, db):
    """A campaign of two judgments an item, checked and audited, with a third assessor who has judged nothing."""
    return deepcopy(campaign_once)


def open_chosen(campaign, choice, actor=None):
    """Open what the choice comes to now."""
    items = rejudging_plan(campaign, choice).items
    return open_rejudging(campaign=campaign, items=items, choice=choice, actor=actor)


def boss():
    return User.objects.get_or_create(username="boss", defaults={"role": "manager"})[0]


@pytest.mark.parametrize("policy", rejudging_policy_keys())
def test_each_policy_opens_one_slot_more_of_what_it_chose_and_of_nothing_else(campaign, policy):
    choice = RejudgingChoice(policy, 5, limit=1.0)
    plan = rejudging_plan(campaign, choice)
    assert plan.refusal == ""
    assert 0 < len(plan.items) <= 5
    before = campaign.slots.count()
    assert open_chosen(campaign, choice, boss()) == len(plan.items)
    assert campaign.slots.count() == before + len(plan.items)
    opened = campaign.slots.filter(number=3, purpose="judge")
    if policy != "influence":  # of equal priority the order may be another
        assert set(opened.values_list("item_id", flat=True)) == set(plan.items)
    assert set(opened.values_list("state", flat=True)) == {"open"}
    event = Event.objects.get(verb="opened more judgments")
    assert (event.actor.username, event.detail["policy"], event.detail["n_slots"]) == (
        "boss",
        policy,
        len(plan.items),
    )


def test_every_item_gets_one_more_at_most_however_often_it_is_asked(campaign):
    n = len(complete_items(campaign))
    assert n > 10
    assert open_chosen(campaign, EVERY) == n
    assert open_chosen(campaign, EVERY) == 0
    assert complete_items(campaign) == set()
    assert Event.objects.filter(verb="opened more judgments").count() == 1
    assert campaign.slots.filter(purpose="judge", number__gt=3).count() == 0


def test_an_item_that_is_not_completely_judged_gets_none(tmp_path):
    campaign = make_campaign(tmp_path)
    people = [make_assessor(campaign, name) for name in ("ann", "ben", "cleo")]
    chosen = slots(campaign)
    for slot in chosen[:8]:  # four items
        give(people[slot.number - 1], slot, truth_of(slot))
    give(people[0], chosen[8], truth_of(chosen[8]))
    assert set(complete_items(campaign)) == {slot.item_id for slot in chosen[:8]}
    assert (
        open_one_more(
            campaign=campaign, items=[chosen[8].item_id, uuid.uuid4()], seed=1, about={}, actor=None
        )
        == 0
    )


def test_the_third_assessor_gets_them_and_a_claim_costs_what_it_cost(campaign):
    def cost(assessor):
        with CaptureQueriesContext(connection) as caught:
            answer = claim(assessor=assessor, n=1)
        return answer, len(caught)

    open_chosen(campaign, RejudgingChoice("random", 3))
    wanted = set(campaign.slots.filter(number=3, purpose="judge").values_list("item_id", flat=True))
    met = set()
    costs = []
    for _ in range(30):
        answer, n = cost(campaign.third)
        if not answer.items:
            break
        costs.append(n)
        (held,) = answer.items
        met.add(held.item_id)
        submit(assessor=campaign.third, token=held.token, client_token=uuid.uuid4(), grade=1)
    assert wanted <= met
    assert max(costs[1:]) <= costs[0] + 1
    counted = Judgment.objects.filter(assessor=campaign.third, slot__number=3, slot__purpose="judge")
    assert counted.count() == 3
    arrays = current_arrays(campaign)
    assert np.bincount(arrays.label_item).max() == 3


def test_audits_stay_open_to_the_same_documents_while_judgments_are_out(campaign):
    before = recompute(campaign=campaign)
    open_chosen(campaign, EVERY)
    after = recompute(campaign=campaign)
    names = ("run_id", "run_b_id", "measure", "method", "value", "low", "high")
    old, new = (sorted(c.estimates.values_list(*names), key=str) for c in (before, after))
    assert old == new
    assert after.n_audited == before.n_audited


def test_a_plan_goes_by_no_audit(campaign, monkeypatch):
    choice = RejudgingChoice("influence", 8)
    plan = rejudging_plan(campaign, choice)
    real = rejudging.current_arrays

    def without_audits(campaign):
        arrays = real(campaign)
        n = arrays.judged.size
        return replace(
            arrays,
            audited=np.zeros(n, dtype=bool),
            audit_grade=np.zeros(n, dtype=np.int64),
            audit_probability=np.zeros(n),
        )

    monkeypatch.setattr(rejudging, "current_arrays", without_audits)
    assert rejudging_plan(campaign, choice) == plan
    audited = set(campaign.slots.filter(purpose="audit", state="done").values_list("item_id", flat=True))
    assert audited & set(plan.items)


def test_the_plan_tells_the_errors_of_a_label_before_and_after(campaign):
    arrays = current_arrays(campaign)
    rates = relevance_errors(assessor_confusion_counts(arrays).checks, 1)
    two, three = rejudging_plan(campaign, RejudgingChoice("influence", 1)).errors
    f, g = rates.false_alarm, rates.miss
    assert (two.n_judgments, three.n_judgments) == (2, 3)
    assert (two.false_alarm, two.miss) == pytest.approx((f**2, 1 - (1 - g) ** 2))
    assert three.false_alarm == pytest.approx(f**3 + 3 * f**2 * (1 - f))


def test_influence_on_ap_is_the_change_of_the_sampled_ap(campaign):
    arrays = current_arrays(campaign)
    joint = middle_grades(arrays.label_item, arrays.label_grade, arrays.judged.size)
    found = rejudging._influence_on_ap(arrays, joint, 5)
    ranks = arrays.ranks[:, arrays.judged].astype(float)
    ranks[(ranks < 1) | (ranks > 5)] = np.inf
    chance = arrays.draw_probability(np.ones(joint.size, dtype=bool))
    topic, label = arrays.topic_index[arrays.judged], (joint >= 1).astype(int)
    for place in range(0, joint.size, 5):
        own = np.flatnonzero(topic == topic[place])
        other = label.copy()
        other[place] = 1 - other[place]
        before, after = (
            sampled_average_precision(SampledTopic.of(ranks[:, own], labels[own], chance[own]))
            for labels in (label, other)
        )
        change = after - before
        assert found[place] == pytest.approx(np.sqrt(((change - change.mean()) ** 2).sum()))
    assert rejudging_plan(campaign, RejudgingChoice("influence", 4, "AP@10")).items


@pytest.mark.parametrize("case", ["closed", "nobody left", "no draw", "no checks", "nobody has judged"])
def test_what_cannot_be_done_is_refused_by_name_and_opens_nothing(tmp_path, case):
    if case == "no draw":
        campaign = make_undrawn(tmp_path)
        Campaign.objects.filter(pk=campaign.pk).update(state="open")
        campaign.refresh_from_db()
    elif case in ("no checks", "nobody has judged"):
        campaign = make_campaign(tmp_path)
    else:
        campaign = judged_campaign(tmp_path)
    if case != "nobody left":
        people = [make_assessor(campaign, name) for name in ("x", "y", "z")]
    if case == "no checks":
        for slot in slots(campaign, number=1):
            give(people[0], slot, truth_of(slot))
    if case == "closed":
        close_campaign(campaign=campaign, actor=None)
    campaign = Campaign.objects.get(pk=campaign.pk)
    reason = {
        "closed": "the campaign is not open: open it first",
        "nobody left": "2 active assessors have judged 2 times each item",
        "no draw": "has no draw",
        "no checks": "gold checks do not tell how often assessors err: no gold label of a document that is not",
        "nobody has judged": "nobody has judged yet",
    }[case]
    plan = rejudging_plan(campaign, RejudgingChoice("influence", 5))
    assert reason in plan.refusal
    assert plan.items == ()
    before = Slot.objects.count()
    items = list(campaign.items.values_list("pk", flat=True))
    if case in ("closed", "nobody left"):
        with pytest.raises(MoreJudgmentsRefused, match=reason[:20]):
            open_rejudging(campaign=campaign, items=items, choice=EVERY, actor=None)
    assert Slot.objects.count() == before


# -- the page ----------------------------------------------------------------------------------------------------


@pytest.fixture
def manager():
    client = Client()
    client.force_login(boss())
    return client


def text_of(answer):
    return " ".join(answer.content.decode().split())


ASKED = {"policy": "influence", "most": 4, "measure": "DCG@10", "limit": 0.01}


def previewed(manager, campaign, **asked):
    """Ask for a preview, run its job, and return the page that shows it, and the job."""
    address = reverse("console:judge-again-preview", args=[campaign.pk])
    answer = manager.post(address, ASKED | asked)
    job = Job.objects.filter(kind="rejudging").latest("created_at")
    assert str(job.pk) in answer["Location"]
    jobs.run(job.pk)
    page = manager.get(reverse("console:adjudication", args=[campaign.pk]), {"plan": job.pk})
    return text_of(page), job


def test_the_page_previews_and_opens(campaign, manager):
    recompute(campaign=campaign)
    plain = text_of(manager.get(reverse("console:adjudication", args=[campaign.pk])))
    assert "One more judgment" in plain
    assert "would be opened" not in plain
    before = campaign.slots.count()
    preview, job = previewed(manager, campaign)
    assert "4 judgments would be opened</strong>" in preview
    assert "With 3 judgments" in preview
    assert campaign.slots.count() == before
    opens = reverse("console:judge-again", args=[campaign.pk])
    answer = manager.post(opens, {"plan": job.pk}, follow=True)
    assert "4 more judgments can be made" in text_of(answer)
    assert campaign.slots.count() == before + 4
    assert "have their additional judgment already" in text_of(
        manager.post(opens, {"plan": job.pk}, follow=True)
    )
    assert campaign.slots.count() == before + 4
    none, _ = previewed(manager, campaign, policy="lowest-probability", limit=1e-9)
    assert "No document is left for this policy" in none


def test_a_preview_tells_what_every_policy_would_gain_or_why_not(campaign, manager, monkeypatch):
    recompute(campaign=campaign)
    told, _ = previewed(manager, campaign)
    assert "it takes known answers to 20 relevant and 20 other documents" in told
    monkeypatch.setattr(simulations, "FEWEST_LABELS", 1)
    told, job = previewed(manager, campaign, most=5)
    gains = job.__class__.objects.get(pk=job.pk).result["gains"]
    assert [one["policy"] for one in gains["policies"]] == rejudging_policy_keys()
    assert "What each policy would gain: simulated" in told
    assert f"{gains['tau']:.3f}" in told


def test_a_preview_of_another_campaign_or_of_nothing_is_not_found(campaign, manager, tmp_path):
    _, job = previewed(manager, campaign)
    Job.objects.filter(pk=job.pk).update(payload={**job.payload, "campaign": str(uuid.uuid4())})
    here = reverse("console:adjudication", args=[campaign.pk])
    for name in (str(job.pk), str(uuid.uuid4()), "x"):
        assert manager.get(here, {"plan": name}).status_code == 404
        told = manager.post(reverse("console:judge-again", args=[campaign.pk]), {"plan": name}, follow=True)
        assert "there is no such preview" in text_of(told)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"policy": "best"}, "Select a valid choice"),
        ({"most": 0}, "greater than or equal to 1"),
        ({"measure": "P@5"}, "Select a valid choice"),
        ({"limit": 2}, "less than or equal to 1"),
    ],
)
def test_a_wrong_choice_is_refused_and_makes_no_job(campaign, manager, wrong, words):
    recompute(campaign=campaign)
    address = reverse("console:judge-again-preview", args=[campaign.pk])
    assert words in text_of(manager.post(address, ASKED | wrong, follow=True))
    assert not Job.objects.filter(kind="rejudging").exists()


def test_a_refusal_is_told_on_the_page(campaign, manager):
    recompute(campaign=campaign)
    _, job = previewed(manager, campaign)
    close_campaign(campaign=campaign, actor=None)
    told = manager.post(reverse("console:judge-again", args=[campaign.pk]), {"plan": job.pk}, follow=True)
    assert "Nothing was opened" in text_of(told)
    refused, _ = previewed(manager, campaign, policy="random")
    assert "Not possible:</strong> the campaign is not open" in refused
