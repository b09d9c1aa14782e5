"""`simulate_assessors` fills a campaign with judgments of assessors who err in known ways, as people would."""

import json

import numpy as np
import pytest
from django.core.management import CommandError, call_command
from quick_flush import unguarded
from small_campaign import TOPICS, make_assessor, make_campaign, true_grade

from judging.models import Assessor, Campaign, GoldAnswer, Judgment, Slot
from touchstone.demo.mixes import Erring, Honest, parse_mix
from touchstone.models import Event, Job, User

MIX = "honest=2,pattern:01=1,optimist:1:16=1"


@pytest.fixture
def campaign(tmp_path, db):
    return make_campaign(tmp_path)


def simulate(campaign, mix=MIX, seed=7, **options):
    call_command("simulate_assessors", str(campaign.pk), mix=mix, seed=seed, **options)
    return Judgment.objects.filter(assessor__campaign=campaign).select_related(
        "assessor__user", "item__topic"
    )


def in_order(judgments, topic):
    """Return one assessor's grades of a topic in the order of presentation."""
    rows = [row for row in judgments if row.item.topic_id == topic]
    return [row.grade for row in sorted(rows, key=lambda row: row.slot.leased_at)]


def test_all_places_are_filled_by_accounts_that_are_simulated(campaign):
    judgments = simulate(campaign)
    places = campaign.slots.filter(purpose=Slot.Purpose.JUDGE)
    assert set(places.values_list("state", flat=True)) == {Slot.State.DONE}
    assert judgments.count() == places.count() == 84
    assessors = Assessor.objects.filter(campaign=campaign)
    assert set(assessors.values_list("kind", "tier")) == {("simulated", "bronze")}
    assert not any(one.user.has_usable_password() for one in assessors.select_related("user"))
    assert Campaign.objects.get(pk=campaign.pk).is_simulated
    assert min(judgments.values_list("active_milliseconds", flat=True)) > 0
    event = Event.objects.get(verb="simulated assessors")
    assert event.detail == {"mix": "honest=2, pattern:01=1, optimist:1:16=1", "seed": 7}
    assert Job.objects.filter(kind="estimate").count() == 1


def test_a_pattern_is_repeated_from_the_beginning_of_each_topic(campaign):
    simulate(campaign, "pattern:01=2")
    for assessor in campaign.assessors.all():
        given = list(assessor.judgments.select_related("item", "slot"))
        for topic in {row.item.topic_id for row in given}:
            labels = [int(grade > 0) for grade in in_order(given, topic)]
            assert labels == np.resize([0, 1], len(labels)).tolist()


def test_errors_go_to_the_lowest_relevant_grade_and_to_0_and_else_the_grade_is_true(campaign):
    given = simulate(campaign, "optimist:1:16=1,pessimist:16:1=1").select_related("item__document")
    pairs = [
        (row.assessor.user.username, true_grade(row.item.topic.topic_id, row.item.document.doc_id), row.grade)
        for row in given
    ]
    optimist = [(true, grade) for name, true, grade in pairs if "optimist" in name]
    pessimist = [(true, grade) for name, true, grade in pairs if "pessimist" in name]
    assert {(true, grade) for true, grade in optimist if true != grade} == {(0, 1)}
    assert {grade for true, grade in pessimist if true != grade} == {0}


def test_an_assessor_judges_a_topic_as_a_whole(campaign):
    simulate(campaign, "sticky:.5=1,random=1,lazy=1")
    for assessor in campaign.assessors.all():
        leases = assessor.leases.order_by("leased_at").values_list("slot__topic", flat=True)
        order = [topic for place, topic in enumerate(leases) if place == 0 or leases[place - 1] != topic]
        assert len(order) == len(set(order)) <= len(TOPICS)


def test_a_share_of_the_places_and_a_limit_of_each_assessor(campaign):
    assert simulate(campaign, share=0.25).count() == 21
    assert not campaign.slots.filter(state=Slot.State.LEASED).exists()
    simulate(campaign, "honest:.8=4", most_each=5)
    counts = [one.n_judged for one in campaign.assessors.filter(user__username__startswith="sim-honest-.8")]
    assert counts == [5, 5, 5, 5]
    assert not campaign.slots.filter(state=Slot.State.LEASED).exists()


def test_those_who_stop_reading_rush(campaign):
    simulate(campaign, "pattern:0=1,honest=1")
    medians = {
        one.user.username: np.median(one.judgments.values_list("active_milliseconds", flat=True))
        for one in campaign.assessors.select_related("user")
    }
    assert medians["sim-pattern-0-1"] < medians["sim-honest-1"]


def test_gold_checks_are_judged_too(tmp_path, db):
    campaign = make_campaign(tmp_path, budget=20, gold_check_rate=0.3)
    n_checks = campaign.slots.filter(purpose=Slot.Purpose.CHECK).count()
    assert n_checks
    simulate(campaign, "honest=6")
    assert campaign.slots.filter(purpose=Slot.Purpose.CHECK, state=Slot.State.DONE).exists()


def test_another_scale_has_honest_assessors_right_or_wrong_about_relevance():
    rng = np.random.default_rng(3)
    true = np.repeat([0, 1, 2], 400)
    given = Honest(1.0).grades(rng, true, np.full(true.size, 0.5), [0, 1, 2], 2)
    assert set(given[true == 2].tolist()) == {0, 2}
    assert set(given[true == 1].tolist()) == {1, 2}
    assert 0.8 < np.mean(given[true == 2] == 2) < 0.95


@pytest.mark.parametrize(
    ("mix", "words"),
    [
        ("", "got ''"),
        ("honest", "got 'honest'"),
        ("honest=0", "within 1..200, got '0'"),
        ("honest=two", "got 'two'"),
        ("honest=1,honest=2", "'honest' twice"),
        ("honest=150,lazy=51", "at most 200 assessors, got 201"),
        ("honest:2=1", "skill must be in [0, 1], got 2.0"),
        ("honest:x=1", "skill must be a number, got 'x'"),
        ("honest:.9:1=1", "at most 1 parameter (skill), got 'honest:.9:1'"),
        ("careless=1", "one of honest, random, "),
        ("optimist:-1:16=1", "a must be finite and at least 0, got -1.0"),
        ("optimist:nan:16=1", "got nan"),
        ("pattern:012=1", "got '012'"),
        ("sticky:1.5=1", "at most 1, got 1.5"),
    ],
)
def test_a_bad_mix_is_refused_with_its_value(mix, words):
    with pytest.raises(ValueError, match=r".") as refusal:
        parse_mix(mix)
    assert words in str(refusal.value)


def test_a_mix_names_behaviours_with_parameters():
    members = parse_mix("honest:.9=1, sticky:.5=2")
    assert [one.username for one in members] == ["sim-honest-.9-1", "sim-sticky-.5-1", "sim-sticky-.5-2"]
    assert members[0].model == Honest(0.9)
    assert isinstance(members[1].model, Erring)
    assert members[1].model.assessor.values == (0.5,)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"share": 0.0}, "got 0.0"),
        ({"share": 1.5}, "got 1.5"),
        ({"share": float("nan")}, "got nan"),
        ({"most_each": 0}, "got 0"),
        ({"seed": -1}, "got -1"),
    ],
)
def test_options_out_of_their_bounds_are_refused_and_nothing_changes(campaign, options, words):
    with pytest.raises(CommandError, match=words):
        simulate(campaign, **options)
    assert not Campaign.objects.get(pk=campaign.pk).is_simulated


def test_a_campaign_with_people_is_refused(campaign):
    make_assessor(campaign, "ann")
    with pytest.raises(CommandError, match="ann may judge in it"):
        simulate(campaign)
    assert not Campaign.objects.get(pk=campaign.pk).is_simulated


def test_a_campaign_that_strangers_can_enter_is_refused(campaign):
    Campaign.objects.filter(pk=campaign.pk).update(entry="study", completion_code="x")
    with pytest.raises(CommandError, match="anyone with its link"):
        simulate(campaign)


def test_an_account_of_a_person_is_not_taken(campaign):
    User.objects.create(username="sim-honest-1")
    with pytest.raises(CommandError, match="sim-honest-1 is a person's"):
        simulate(campaign)


def test_without_gold_the_number_that_lacks_it_is_named(campaign):
    answers = GoldAnswer.objects.filter(topic__collection=campaign.collection)
    with unguarded(["judging_goldanswer"]):
        answers.filter(pk__in=list(answers.values_list("pk", flat=True)[:3])).delete()
    with pytest.raises(CommandError, match="3 of 42 items have no gold answer"):
        simulate(campaign)


def test_a_gold_grade_off_the_scale_is_refused(campaign):
    with unguarded(["judging_goldanswer"]):
        GoldAnswer.objects.filter(topic__collection=campaign.collection, grade=3).update(grade=7)
    with pytest.raises(CommandError, match="the gold grade 7 is not on"):
        simulate(campaign)


def test_a_campaign_that_is_not_open_is_refused(campaign):
    Campaign.objects.filter(pk=campaign.pk).update(state="closed")
    with pytest.raises(CommandError, match="the campaign is closed; open it first"):
        simulate(campaign)


def test_the_same_mix_goes_on_with_the_same_accounts(campaign, capsys):
    simulate(campaign, share=0.5)
    simulate(campaign, output="json")
    assert campaign.assessors.count() == 4
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["assessors"][0] == "sim-honest-1"
