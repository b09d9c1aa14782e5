"""The planner: closed forms against enumeration and the fixtures, the page and the API in every state."""

import json
import math
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from small_campaign import judge_all, judge_audit, make_assessor, make_campaign, truth_of

from analytics.estimation.claims import THESE
from analytics.models import Computation, ConfusionEstimate, Estimate
from analytics.services.families import asked_family
from analytics.services.plan_terms import Terms
from analytics.services.planning import State, bronze_words, plan
from analytics.services.recomputation import recompute
from console.researcher.prose import always_words, variance_words
from sampling.services.auditing import audit
from touchstone.authentication import make_token
from touchstone.models import User

Z = 1.959963984540054
pytestmark = pytest.mark.django_db
SO_FAR = State(drawing=0.0030, gold=0.0016, n_judged=400, n_audited=60, n_frame=2000, judgments_per_item=2)


# -- what to buy --------------------------------------------------------------------------------------------


def two_phase_variance(n, m):
    """Return V(n, m) of SO_FAR, from its two components by hand."""
    s2 = 0.0030 / (1 / 400 - 1 / 2000)
    residual = 0.0016 / (1 / 60 - 1 / 400)
    return s2 * (1 / n - 1 / 2000) + residual * (1 / m - 1 / n)


def test_the_state_buys_what_double_sampling_says():
    assert two_phase_variance(400, 60) == pytest.approx(0.0046)
    assert SO_FAR.half_width == pytest.approx(Z * math.sqrt(0.0046))
    for money in (100.0, 3000.0):
        bought = SO_FAR.buy(1.0, 11.0, budget=money)
        after = two_phase_variance(400 + bought.items, 60 + bought.gold)
        assert bought.half_width == pytest.approx(Z * math.sqrt(after), rel=1e-9)
        assert bought.cost == 2 * bought.items + 11 * bought.gold <= money


@pytest.mark.parametrize("drawing", [0.0, 1e-6, 0.0003, 0.0030])
def test_the_best_split_is_never_worse_than_gold_alone(drawing):
    """A pair may have all its documents judged while most of the pool is not: then only gold is worth buying."""
    state = replace(SO_FAR, drawing=drawing)
    for money in (100.0, 1000.0, 5000.0):
        best, alone = state.buy(1.0, 11.0, budget=money), state.buy(1.0, 11.0, budget=money, frame_size=400)
        assert best.half_width <= alone.half_width
        if drawing == 0.0:
            assert best.items == 0
    wanted = 0.8 * state.half_width
    assert state.buy(1.0, 11.0, half_width=wanted).half_width <= wanted


@pytest.mark.parametrize(("cost_gold", "worth"), [(20, False), (100, True)])
def test_bronze_is_worth_buying_where_the_fixture_says_so(cost_gold, worth):
    """docs/methods/derivations/planning.md, section 3: eBay, K = .1785, bronze at 1: 7502 for 7489, 33696 for 37446."""
    said = bronze_words(0.1785, 1.0, float(cost_gold))
    assert ("Worth buying: gold labels alone would cost 1.1 times" in said) == worth
    assert ("Not worth buying" in said) == (not worth)
    assert "about 18 % of the variance of gold grades" in said


def test_grades_that_explain_nothing_are_not_worth_their_money():
    assert "Not worth buying: it adds no information" in bronze_words(0.0, 1.0, 10.0)


# -- words --------------------------------------------------------------------------------------------------


def test_the_parts_of_the_variance_are_said_in_words():
    assert variance_words(Estimate(components={"drawing": 0.3, "gold": 0.7})) == (
        "About 70 % of this variance comes from the gold audit: more gold labels narrow it. "
        "The draw of documents contributes 30 %."
    )
    assert variance_words(Estimate(components={"drawing": 0.9, "gold": 0.1})).startswith(
        "About 90 % of this variance comes from the draw of documents: more judged documents narrow it."
    )
    assert variance_words(Estimate(components={"drawing": 0.0, "gold": 0.3})) == (
        "All of this variance comes from the gold audit: more gold labels narrow it."
    )
    assert variance_words(Estimate(components={"label noise": 0.3})) == ""
    assert variance_words(None) == ""


@pytest.mark.parametrize(
    ("once", "always", "words"),
    [
        ((0.1, 0.3), (0.0, 0.4), "It contains 0"),
        ((0.1, 0.3), (0.05, 0.35), "you may stop here and report the difference"),
        ((-0.1, 0.3), (-0.2, 0.4), "Confidence sequence for these topics, valid at every look"),
    ],
)
def test_the_interval_for_watching_says_what_to_make_of_it(once, always, words):
    row = Estimate(
        value=0.2, low=once[0], high=once[1], always_low=always[0], always_high=always[1], run_b_id=1
    )
    said = always_words(row, Computation(), is_open=True, significant=True)
    assert words in said
    assert f"{always[0]:+.3f} to {always[1]:+.3f}" in said
    assert always_words(row, Computation(), is_open=False, significant=True) == ""
    assert ("Continue judging" in said) == (words == "It contains 0")
    not_significant = always_words(row, Computation(), is_open=True, significant=False)
    assert "report the difference" not in not_significant
    assert ("the difference is not significant by the claim" in not_significant) == ("report" in said)


@pytest.mark.parametrize("is_open", [True, False])
def test_a_declared_look_says_which_it_is_also_when_judging_is_over(is_open):
    row = Estimate(value=0.2, low=0.1, high=0.3, always_low=0.05, always_high=0.35, run_b_id=1)
    said = always_words(row, Computation(look=2, n_looks=5), is_open=is_open, significant=True)
    assert said.startswith(
        "Declared look 2 of 5, interval for these topics valid at all declared looks together: +0.050 to"
    )
    assert "every look" not in said
    row.always_low = -0.05
    assert always_words(row, Computation(look=2, n_looks=5), is_open=is_open, significant=True).endswith(
        "at this look."
    )


# -- the page -----------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def plain_static_files(settings):
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}


@pytest.fixture
def drawn(tmp_path, db):
    return make_campaign(tmp_path, budget=24)


@pytest.fixture(scope="module")
def judged_once(module_world, tmp_path_factory):
    made = make_campaign(tmp_path_factory.mktemp("judged"), budget=24)
    assessors = [make_assessor(made, f"bronze{n}") for n in range(2)]
    judge_all(made, assessors, lambda slot, place: max(0, truth_of(slot) - place))
    gold = make_assessor(made, "gold", "gold")
    audit(campaign=made, items_each_time=18, items_in_total=18)
    judge_audit(made, gold)
    recompute(campaign=made)
    return made


@pytest.fixture
def judged(judged_once, db):
    return deepcopy(judged_once)


def client_of(role):
    client = Client()
    client.force_login(User.objects.get_or_create(username=role, defaults={"role": role})[0])
    return client


def page_of(campaign, role="researcher", status=200, **asked):
    made = client_of(role).get(reverse("console:planner", args=[campaign.pk]), asked)
    assert made.status_code == status, made.content.decode()[:2000]
    return " ".join(made.content.decode().split())


def set_parts(campaign, **components):
    """Replace the newest computation by one whose estimates have these components (they are append-only)."""
    newest = campaign.computations.latest("id")
    made = Computation.objects.create(
        campaign=campaign,
        last_judgment_id=newest.last_judgment_id,
        n_judgments=newest.n_judgments,
        n_items=20,
        n_audited=12,
        n_gold_checks=0,
        seconds=1,
    )
    for row in newest.estimates.filter(method="corrected"):
        # Which items an audit takes is chance: the page is to show the same whichever they are.
        row.pk, row.computation, row.components, row.refusal = None, made, components, ""
        row.value, row.low, row.high, row.standard_error = 0.6, 0.5, 0.7, 0.05
        row.topics_low, row.topics_high = 0.4, 0.8
        row.topics_degrees_of_freedom = 2
        if row.run_b_id:  # a pair that the audit told nothing of was not tested
            row.n, row.warning = 20, ""
            row.p_value, row.topics_p_value = 0.02, 0.03
        row.save(force_insert=True)
    return made


def test_the_page_takes_at_most_twelve_statements(judged):
    client, address = client_of("manager"), reverse("console:planner", args=[judged.pk])
    client.get(address)
    with CaptureQueriesContext(connection) as caught:
        assert client.get(address).status_code == 200
    assert len(caught) <= 12, "\n".join(str(query["sql"])[:330] for query in caught)


def test_before_there_are_numbers_the_page_says_so(drawn):
    assert "No plan yet" in page_of(drawn)
    assert "There are no numbers for this question yet" in page_of(drawn)


def test_the_page_names_what_to_buy_and_shows_the_curve_with_its_table(judged):
    set_parts(judged, drawing=0.0004, gold=0.0010)
    asked = {"measure": "P@10", "run": "run0", "against": "run2", "difference": "0.05", "cost_gold": "12"}
    text = page_of(judged, claim="these-topics", **asked)
    terms = replace(
        Terms("P@10", "run0", "run2", cost_judgment=1.0, cost_gold=12.0, difference=0.05),
        claim=THESE,
        family=asked_family(judged),
    )
    found = plan(campaign=judged, terms=terms)
    assert found.needed.gold > 0
    assert f"<strong>{found.needed.gold} more gold label" in text
    assert found.needed.cost == 2 * found.needed.items + 12 * found.needed.gold  # two judgments an item
    assert "Half-width by cost" in text
    assert text.count("<svg") == 1
    assert "1 and 10 are examples" in text
    assert "About 71 % of this variance comes from the gold audit" in text
    behind = text.partition('id="plot-curve"')[2].partition("</table>")[0]
    assert behind.count('<th scope="row">') == 25


def test_costs_of_the_campaign_are_taken_and_shown(judged):
    judged.cost_per_judgment, judged.cost_per_gold = 0.25, 4.0
    judged.save()
    set_parts(judged, drawing=0.0004, gold=0.0010)
    text = page_of(judged)
    assert 'name="cost_gold" inputmode="decimal" value="4"' in text
    assert "are examples" not in text


def test_enough_is_said_and_the_money_one_has_is_divided(judged):
    set_parts(judged, drawing=0.0004, gold=0.0010)
    these = {"claim": "these-topics"}
    assert '<blockquote class="verdict"><p>Nothing:' in page_of(judged, difference="1", **these)
    text = page_of(judged, difference="0.05", money="40", **these)
    assert "With 40:" in text


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"power": "101"}, "Power:"),
        ({"difference": "-1"}, "Difference that matters:"),
        ({"cost_gold": "0"}, "Cost of a gold label:"),
        ({"cost_gold": "nan"}, "Cost of a gold label:"),
        ({"measure": "P@999"}, "Measure:"),
        ({"run": "nobody"}, "Run A:"),
        ({"run": "run0", "against": "run0"}, "Run B:"),
    ],
)
def test_a_wrong_value_is_named_beside_the_form(judged, asked, words):
    assert words in page_of(judged, status=400, **asked)


def test_without_parts_of_the_variance_there_is_a_reason_instead(judged):
    set_parts(judged)
    assert "plan with P@k or DCG@k" in page_of(judged)


def test_the_papers_formulas_plan_a_new_evaluation_from_the_pooled_errors(judged):
    made = set_parts(judged, drawing=0.0004, gold=0.0010)
    newest = judged.computations.exclude(pk=made.pk).latest("id")
    for row in newest.estimates.filter(method="naive", value__isnull=False):
        row.pk, row.computation, row.topics_standard_error = None, made, 0.04
        row.save(force_insert=True)
    unknown = page_of(judged, measure="P@10", run="run0", against="run2", difference="0.05")
    assert "Not planned: the assessors&#x27; errors are not known yet" in unknown
    counts = [[30, 6, 3, 1], [6, 20, 3, 1], [1, 2, 20, 7], [1, 1, 8, 20]]
    rows = {"matrix": [[0.25] * 4] * 4, "low": [[0.0] * 4] * 4, "high": [[1.0] * 4] * 4}
    ConfusionEstimate.objects.create(
        computation=made, scope="pooled", key="", counts=counts, n_gold_checks=0, n_audited=130, **rows
    )
    relevant = judged.scale.relevant_grade
    table = np.array(counts, dtype=float)
    m_r = table[relevant:, relevant:].sum() / table[relevant:].sum()
    m_n = table[:relevant, :relevant].sum() / table[:relevant].sum()
    runs = made.estimates.filter(measure="P@10", run__run_id__in=["run0", "run2"], run_b=None)
    share = np.mean([e.value for e in runs.filter(method="corrected")])
    s2 = 3 * np.mean([e.topics_standard_error**2 for e in runs.filter(method="naive")])
    # docs/methods/derivations/planning.md, section 2: one shared audit, (2 s^2, 2 c_b) and (w2, c_g)
    delta, cost_topic, cost_gold = 0.05, 2 * 10 * 1.0, 12.0
    w2 = delta**2 * (m_r * (1 - m_r) / share + m_n * (1 - m_n) / (1 - share))
    k = math.sqrt(2 * s2 * 2 * cost_topic) + math.sqrt(w2 * cost_gold)
    error = delta / (1.959963984540054 + 0.8416212335729143)
    cost = k**2 / ((m_r + m_n - 1) ** 2 * error**2)
    terms = Terms("P@10", "run0", "run2", cost_judgment=1.0, cost_gold=cost_gold, difference=delta)
    found = {one.name: one for one in plan(campaign=judged, terms=terms).papers}
    assert found["shared audit"].plan.cost == pytest.approx(cost)
    assert found["shared audit"].unit == "topics"
    # K = 1 - (mean of p(1 - p) within the given grades) / p(1 - p), p the share that is truly relevant.
    p, p_given = table[relevant:].sum() / table.sum(), table[relevant:].sum(axis=0) / table.sum(axis=0)
    within = (table.sum(axis=0) / table.sum()) @ (p_given * (1 - p_given))
    k_of_labels = 1 - within / (p * (1 - p))
    assert plan(campaign=judged, terms=terms).informativeness == pytest.approx(k_of_labels)
    assert plan(campaign=judged, terms=terms).bronze.startswith("One judgment explains about")
    assert found["gold only"].plan.bronze == 0
    assert found["independent audits"].plan.cost > cost
    text = page_of(judged, measure="P@10", run="run0", against="run2", difference="0.05", cost_gold="12")
    assert "Shared audit" in text
    assert "Not planned" not in text
    assert "the papers plan a difference of two runs in P@k" in page_of(
        judged, measure="DCG@10", run="run0", against="run2", difference="0.05"
    )


def test_the_curve_can_be_taken_along(judged):
    set_parts(judged, drawing=0.0004, gold=0.0010)
    client = client_of("researcher")
    address = reverse("console:planner", args=[judged.pk])
    for kind, start in (
        ("svg", b"<svg"),
        ("png", b"\x89PNG"),
        ("csv", b"money spent from now on,Best split,"),
    ):
        made = client.get(address, {"plot": "curve", "format": kind})
        assert made.status_code == 200
        assert made.content.startswith(start)
        assert f'filename="half-width-by-cost.{kind}"' in made["Content-Disposition"]
    dark = client.get(address, {"plot": "curve", "format": "svg", "theme": "dark"}).content.decode()
    assert "#ece7de" in dark
    assert "#ece7de" not in client.get(address, {"plot": "curve"}).content.decode()
    for wrong in ({"run": "nobody"}, {"plot": "pie"}, {"format": "exe"}, {"theme": "pink"}):
        assert client.get(address, {"plot": "curve"} | wrong).status_code == 404


def test_the_api_says_the_same(judged):
    set_parts(judged, drawing=0.0004, gold=0.0010)
    user = User.objects.create(username="program", role="researcher")
    _, key = make_token(user=user, name="tests", days=1)
    client = Client(headers={"Authorization": f"Bearer {key}"})
    asked = {"difference": "0.05", "claim": "these-topics"}
    said = client.get(f"/api/v1/campaigns/{judged.pk}/planner", asked).json()
    assert said["refusal"] is None
    # 1.959964 + 0.841621 standard errors find it with a power of 80 %
    assert said["half_width_wanted"] == pytest.approx(Z * 0.05 / (2.393980 + 0.841621), rel=1e-5)  # of .05/3
    assert said["needed"]["half_width"] <= said["half_width_wanted"]
    assert len(said["curve"]) == 25
    assert "NaN" not in json.dumps(said)
    wrong = client.get(f"/api/v1/campaigns/{judged.pk}/planner", {"color": "red"})
    assert wrong.status_code == 400


def test_an_assessor_sees_no_planner(judged):
    page_of(judged, role="assessor", status=404)
