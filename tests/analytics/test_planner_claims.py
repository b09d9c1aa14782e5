"""The planner by claim, and gold on named documents: by hand, on the page, in the API and from a terminal."""

import csv
import io
import json
import math
import re
from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from audit_plans import audited_campaign
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from scipy import stats
from small_campaign import judge_audit, returned

import sampling.tasks  # noqa: F401 (registers the jobs)
from analytics.estimation.claims import LIKE_THESE, THESE
from analytics.planning.exact_gold import ExactGold
from analytics.planning.planner import error_for_power, topics_for_power
from analytics.planning.purchases import Purchase
from analytics.services.plan_terms import Terms, terms_of
from analytics.services.planning import State, plan
from analytics.services.recomputation import recompute
from judging.models import Assessor
from sampling.models import Audit, AuditEntry
from touchstone import jobs
from touchstone.authentication import make_token
from touchstone.models import Job, User

pytestmark = pytest.mark.django_db
Z = 1.959963984540054
T_44 = 2.0153675744437649  # the .975 quantile of t with 44 degrees of freedom, from a table of 13 digits
SO_FAR = State(drawing=0.0030, gold=0.0016, n_judged=400, n_audited=60, n_frame=2000, judgments_per_item=2)
LIKE = replace(SO_FAR, between=0.0100, degrees_of_freedom=44)


# -- topics like these ----------------------------------------------------------------------------------------


def test_a_half_width_for_topics_like_these_holds_their_choice_at_the_quantile_of_t():
    assert LIKE.quantile == pytest.approx(T_44, rel=1e-9)
    assert LIKE.half_width == pytest.approx(T_44 * math.sqrt(0.0030 + 0.0016 + 0.0100))
    assert LIKE.half_width_of_topics == pytest.approx(T_44 * 0.1)
    assert SO_FAR.half_width == pytest.approx(Z * math.sqrt(0.0046))


def test_no_purchase_changes_the_part_of_topics():
    bought = LIKE.buy(1.0, 11.0, budget=3000.0)
    n, m = 400 + bought.items, 60 + bought.gold
    s2, residual = 0.0030 / (1 / 400 - 1 / 2000), 0.0016 / (1 / 60 - 1 / 400)
    judged = s2 * (1 / n - 1 / 2000) + residual * (1 / m - 1 / n)
    assert bought.half_width == pytest.approx(T_44 * math.sqrt(judged + 0.0100), rel=1e-9)
    beyond = LIKE.buy(1.0, 11.0, half_width=0.99 * LIKE.half_width_of_topics)
    assert "cannot be reached by more judging and auditing" in beyond.reason
    assert f"about {LIKE.half_width_of_topics:.4g} would remain" in beyond.reason


@pytest.mark.parametrize(
    ("difference", "spread"), [(0.822193, 2.372739), (0.2, 0.3), (1.0, 0.1), (0.05, 0.4)]
)
def test_the_number_of_topics_is_the_least_that_has_the_power(difference, spread):
    n = topics_for_power(difference, spread**2, power=0.8)

    def is_enough(n):
        t = stats.t(n - 1)
        return spread / math.sqrt(n) <= difference / (t.isf(0.025) + t.ppf(0.8))

    assert is_enough(n)
    assert n == 2 or not is_enough(n - 1)


def test_with_infinite_degrees_of_freedom_the_error_is_that_of_the_normal_distribution():
    assert error_for_power(1.0) == pytest.approx(1 / (1.959963984540054 + 0.8416212335729143))
    assert error_for_power(1.0, degrees_of_freedom=9) < error_for_power(1.0)


# -- what comes first -----------------------------------------------------------------------------------------


def gold_plan(**changed):
    at_random = Purchase(0, 0, 60, 60.0, 0.067, 0.096, "")
    given = {
        "documents": (("t", "d"),) * 81,
        "n_weighed": 636,
        "cost": 81.0,
        "is_exact": True,
        "half_width_these": 0.0,
        "half_width": 0.0,
        "at_random": at_random,
        "wanted": 0.067,
    }
    return ExactGold(**given | changed)


@pytest.mark.parametrize(
    ("changed", "is_first"),
    [
        ({"cost": 90.0}, True),  # one and a half times 60
        ({"cost": 90.5}, False),
        ({"cost": 900.0, "wanted": 0.05}, True),  # gold at random does not reach it
        ({"half_width": 0.08}, False),  # these documents do not
        ({"half_width": 0.08, "wanted": 0.05}, False),  # neither does: the narrower
        ({"half_width": 0.06, "wanted": 0.05}, True),
        ({"wanted": None}, True),
        ({"wanted": None, "half_width": 0.068}, False),
        ({"at_random": None, "wanted": None}, True),
        ({"at_random": Purchase(0, 0, 0, 0.0, 0.05, 0.05, "")}, False),  # nothing is needed
    ],
)
def test_named_documents_come_first_by_one_rule(changed, is_first):
    assert gold_plan(**changed).comes_first == is_first


def test_the_sentence_says_what_is_left_and_for_which_topics():
    said = gold_plan(half_width=0.4).sentence("difference", of_topics=True)
    assert said == (
        "Gold on these 81 documents makes the difference exact for these topics (81.00) and leaves ± 0.400 for topics "
        "like these; 60 at random: ± 0.067."
    )
    drawn = gold_plan(is_exact=False, half_width_these=0.031, at_random=None)
    assert drawn.sentence("value", of_topics=False) == (
        "Gold on these 81 documents leaves ± 0.031 for these topics, the error of the draw (81.00)."
    )
    known = gold_plan(documents=(), cost=0.0, at_random=None).sentence("difference", of_topics=False)
    assert known.startswith(
        "Every judged document that counts has gold: a census needs no new label and makes"
    )


# -- a campaign -----------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def plain_static_files(settings):
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}


@pytest.fixture
def whole(tmp_path, db):
    """The whole pool is judged, and audited in part."""
    return audited_campaign(tmp_path)


ASKED = {"run": "run0", "against": "run1", "measure": "DCG@10", "cost_gold": 1.0, "cost_judgment": 1.0}


def lacking(campaign):
    """Return what counts for the pair, by rank, less what the audit took."""
    both = (returned(0), returned(1))
    counts = {pair for pair in both[0] | both[1] if both[0].get(pair) != both[1].get(pair)}
    taken = AuditEntry.objects.filter(audit__campaign=campaign, selected=True)
    known = set(taken.values_list("item__topic__topic_id", "item__document__doc_id"))
    return sorted(counts - known)


def client_of(role):
    client = Client()
    client.force_login(User.objects.get_or_create(username=role, defaults={"role": role})[0])
    return client


def page_of(campaign, role="researcher", **asked):
    made = client_of(role).get(reverse("console:planner", args=[campaign.pk]), ASKED | asked)
    assert made.status_code == 200, made.content.decode()[:2000]
    return " ".join(made.content.decode().split())


def test_the_spread_over_topics_is_that_of_the_stored_values(whole):
    row = whole.computations.latest("id").estimates.get(
        measure="DCG@10", method="corrected", run__run_id="run0", run_b__run_id="run1"
    )
    runs = row.computation.estimates.filter(measure="DCG@10", method="corrected", run_b=None)
    z = np.subtract(*(runs.get(run__run_id=name).topic_values for name in ("run0", "run1")))
    judging = sum(row.components.values())
    these, like = (
        plan(campaign=whole, terms=terms_of(whole, claim=claim.key, **ASKED)) for claim in (THESE, LIKE_THESE)
    )
    assert these.state.half_width == pytest.approx(Z * math.sqrt(judging))
    whole_variance = max(np.var(z, ddof=1) / 3, judging)
    assert like.state.half_width == pytest.approx(4.302652729911275 * math.sqrt(whole_variance))  # t with 2
    assert like.state.half_width >= these.state.half_width


@pytest.mark.parametrize("claim", [THESE, LIKE_THESE])
def test_without_a_difference_none_is_filled_in(whole, claim):
    found = plan(campaign=whole, terms=terms_of(whole, claim=claim.key, **ASKED))
    assert (found.wanted, found.needed, found.topics_needed) == (None, None, None)
    assert len(found.curve) == 25
    text = page_of(whole, claim=claim.key)
    assert 'name="difference" inputmode="decimal" placeholder="none" value=""' in text
    assert "Target half-width" not in text
    assert "Not planned: enter the difference that matters" in text
    assert f'aria-current="true">{claim.label}</a>' in text
    assert ("Half-width from topics alone" in text) == (claim is LIKE_THESE)


def test_the_page_names_the_documents_first_and_has_them_as_a_file(whole):
    text = page_of(whole, claim="these-topics")
    n = len(lacking(whole))
    found = plan(campaign=whole, terms=terms_of(whole, claim="these-topics", **ASKED))
    assert list(found.exact.documents) == lacking(whole)
    assert (found.exact.is_exact, found.exact.half_width, found.exact.cost) == (True, 0.0, n)
    sentence = f"Gold on these {n} documents makes the difference exact for these topics ({n}.00); "
    assert sentence in text
    assert 0 < text.index(sentence) < text.index("Half-width now")
    assert len(re.findall(r'<th scope="row"><a href="[^"]+">t', text)) == n
    assert "A manager can request it here" in text
    assert "audits/census/" not in text
    file = client_of("researcher").get(
        reverse("console:planner", args=[whole.pk]), ASKED | {"documents": "csv", "claim": "these-topics"}
    )
    rows = list(csv.reader(io.StringIO(file.content.decode())))
    assert rows == [["topic", "document"], *(list(pair) for pair in lacking(whole))]


@pytest.mark.django_db(transaction=True)
def test_a_manager_requests_the_census_in_a_click_and_the_pair_is_then_exact(whole):
    assert "audits/census/" in page_of(whole, role="manager")
    n_lacking = len(lacking(whole))
    address = reverse("console:audits-census", args=[whole.pk])
    sent = {name: ASKED[name] for name in ("run", "against", "measure")}
    assert client_of("researcher").post(address, sent).status_code == 404
    wrong = client_of("manager").post(address, sent | {"against": "nobody"}, follow=True)
    assert "the collection has no run" in wrong.content.decode()
    assert not Job.objects.filter(kind="audit").exists()
    client_of("manager").post(address, sent)
    jobs.run(Job.objects.get(kind="audit").pk)
    made = Audit.objects.get(campaign=whole, strategy="census")
    assert (made.run, made.against) == ("run0", "run1")
    gold = Assessor.objects.select_related("campaign__scale").get(campaign=whole, tier="gold")
    n_new = made.n_selected - whole.audits.get(sequence=1).n_selected
    assert whole.slots.filter(purpose="audit", state="open").count() == n_new == n_lacking
    while_awaited(whole, gold, n_lacking)
    recompute(campaign=whole)
    row = whole.computations.latest("id").estimates.get(
        measure="DCG@10", method="corrected", run__run_id="run0", run_b__run_id="run1"
    )
    assert row.low == row.value == row.high
    text = page_of(whole, claim="these-topics")
    assert "Nothing is left to buy" in text
    like = plan(campaign=whole, terms=terms_of(whole, **ASKED))
    assert like.exact is None
    assert like.state.half_width_of_topics > 0
    assert like.state.half_width == pytest.approx(like.state.half_width_of_topics)


def while_awaited(whole, gold, n_lacking):
    """While its gold is awaited a census cannot be asked for again, nor once it is there and the numbers are not."""
    asked = terms_of(whole, claim="these-topics", **ASKED)
    found = plan(campaign=whole, terms=asked)
    assert (len(found.exact.documents), found.exact.awaited) == (n_lacking, n_lacking)
    text = page_of(whole, role="manager", claim="these-topics")
    assert "Gold on all of them is requested and awaited." in text
    assert "audits/census/" not in text
    assert "A manager can request it" not in page_of(whole, claim="these-topics")
    judge_audit(whole, gold)
    turned = ASKED | {"run": "run1", "against": "run0", "claim": "these-topics"}
    for given in (ASKED | {"claim": "these-topics"}, turned):
        text = page_of(whole, role="manager", **given)
        assert "The census was made; the next numbers have it." in text
        assert "audits/census/" not in text
    other = page_of(whole, role="manager", against="run2", claim="these-topics")
    assert "audits/census/" in other
    assert "is requested and awaited" not in other


def test_a_census_of_which_a_part_is_awaited_can_be_asked_for():
    some = gold_plan(awaited=80)
    assert some.is_open
    assert some.sentence("value", of_topics=False).endswith(" Gold on 80 of them is requested and awaited.")
    assert not gold_plan(awaited=81).is_open
    assert gold_plan(documents=()).is_open
    assert not gold_plan(documents=(), is_requested=True).is_open


def test_where_the_draw_leaves_an_error_it_is_not_called_exact(tmp_path):
    campaign = audited_campaign(tmp_path, budget=30)
    found = plan(campaign=campaign, terms=terms_of(campaign, claim="these-topics", **ASKED))
    assert found.refusal == ""
    assert found.state.drawing > 0
    assert not found.exact.is_exact
    assert found.exact.half_width == pytest.approx(Z * math.sqrt(found.state.drawing))
    assert "the error of the draw" in found.exact_sentence


def test_page_api_and_command_have_the_same_numbers(whole):
    user = User.objects.create(username="program", role="researcher")
    _, key = make_token(user=user, name="tests", days=1)
    client = Client(headers={"Authorization": f"Bearer {key}"})
    asked = ASKED | {"difference": 0.4, "claim": "these-topics", "money": 20.0}
    said = client.get(f"/api/v1/campaigns/{whole.pk}/planner", asked)
    assert said.status_code == 200
    words = [f"--{name.replace('_', '-')}={value}" for name, value in asked.items()]
    out = StringIO()
    call_command("plan", str(whole.pk), *words, "--output", "json", stdout=out)
    assert json.loads(out.getvalue()) == said.json()
    exact = said.json()["exact"]
    assert exact["count"] == len(exact["documents"]) == len(lacking(whole))
    assert [(one["topic"], one["document"]) for one in exact["documents"]] == lacking(whole)
    assert said.json()["variance"]["topics"] == 0
    table = StringIO()
    call_command("plan", str(whole.pk), *words, stdout=table)
    assert exact["sentence"] in table.getvalue()
    assert exact["sentence"] in page_of(whole, **asked)
    without = {name: value for name, value in asked.items() if name != "difference"}
    for given in (asked, without):
        found = client.get(f"/api/v1/campaigns/{whole.pk}/planner", given).json()
        why = plan(campaign=whole, terms=terms_of(whole, **given)).papers_refusal
        assert found["papers_refusal"] == (why or None)
        assert bool(found["papers"]) == (not why)
    assert found["papers_refusal"] == "enter the difference that matters"
    for wrong, reason in (
        (["--measure", "nDCG@10"], "measure: a plan is made for"),
        (["--run", "x"], "no run 'x'"),
    ):
        with pytest.raises(CommandError, match=reason):
            call_command("plan", str(whole.pk), *wrong)


def test_by_default_the_api_plans_for_topics_like_these_and_an_unknown_claim_is_refused(whole):
    user = User.objects.create(username="program", role="researcher")
    _, key = make_token(user=user, name="tests", days=1)
    client = Client(headers={"Authorization": f"Bearer {key}"})
    said = client.get(f"/api/v1/campaigns/{whole.pk}/planner", {"difference": "0.4"}).json()
    assert said["claim"] == "topics-like-these"
    assert said["topics_needed"] >= 2
    assert said["half_width_now"] > said["half_width_of_topics"] >= 0
    wrong = client.get(f"/api/v1/campaigns/{whole.pk}/planner", {"claim": "all-topics"})
    assert wrong.status_code == 400
    assert "claim" in json.dumps(wrong.json())


def test_numbers_from_before_topics_were_kept_ask_to_compute_again(whole):
    made = whole.computations.latest("id")
    made.pk = None
    made.save()
    for row in whole.computations.earliest("id").estimates.filter(measure="DCG@10", method="corrected"):
        row.pk, row.computation, row.topic_values = None, made, None
        row.save(force_insert=True)
    assert "compute again" in page_of(whole)
    assert "Half-width now" in page_of(whole, claim="these-topics")


def test_terms_say_what_they_are_of():
    assert (Terms("P@10", "a", "b").subject, Terms("P@10", "a").subject) == ("difference", "value")
