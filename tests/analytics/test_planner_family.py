"""The planner in a family of comparisons: the level by hand, and page, API and command in every state."""

import json
import math
from copy import deepcopy
from io import StringIO

import numpy as np
import pytest
from audit_plans import audited_campaign
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from quick_flush import unguarded
from scipy import stats

from analytics.estimation.claims import LIKE_THESE, THESE, Family
from analytics.planning.planner import topics_for_power
from analytics.services.families import declare_family
from analytics.services.plan_family import FamilyTest
from analytics.services.plan_terms import terms_of
from analytics.services.planning import plan
from touchstone.models import User

pytestmark = pytest.mark.django_db
PAIR = {"run": "run0", "against": "run1", "measure": "DCG@10"}


@pytest.fixture
def plain_static_files(settings):
    name = "django.contrib.staticfiles.storage.StaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": name}}


@pytest.fixture(scope="module")
def made_once(module_world, tmp_path_factory):
    return audited_campaign(tmp_path_factory.mktemp("world"))


@pytest.fixture
def campaign(made_once, plain_static_files, db):
    """Three runs, of which a part of the judgments is audited."""
    return deepcopy(made_once)


def reader():
    client = Client()
    client.force_login(User.objects.get_or_create(username="reader", defaults={"role": "researcher"})[0])
    return client


def page_of(campaign, **asked):
    made = reader().get(reverse("console:planner", args=[campaign.pk]), PAIR | asked)
    assert made.status_code == 200, made.content.decode()[:2000]
    return " ".join(made.content.decode().replace("&amp;", "&").split())


def all_p(campaign, claim):
    """Return p of the three pairs, the planned one first."""
    rows = campaign.computations.latest("id").estimates.filter(measure="DCG@10", method="corrected")
    name = "p_value" if claim is THESE else "topics_p_value"
    known = {frozenset((row.run.run_id, row.run_b.run_id)): getattr(row, name) for row in rows if row.run_b}
    return sorted(known.values(), key=lambda p: p != known[frozenset(("run0", "run1"))])


def holm_by_hand(ps):
    """Return Holm's p of the first: step by step from the smallest, never falling."""
    before = 0.0
    for place, p in enumerate(sorted(ps)):
        before = max(before, min(1.0, (len(ps) - place) * p))
        if p == ps[0]:
            return before
    raise AssertionError


@pytest.mark.parametrize("claim", [LIKE_THESE, THESE])
def test_a_plan_among_three_is_for_a_third_of_the_level_and_says_the_adjusted_p(campaign, claim):
    alone, among = (
        plan(
            campaign=campaign, terms=terms_of(campaign, **PAIR, difference=0.4, claim=claim.key, family=name)
        )
        for name in ("runs:run0,run1", "all")
    )
    ps = all_p(campaign, claim)
    assert len(ps) == 3
    assert (alone.tested.n, alone.tested.level, alone.tested.p_adjusted) == (1, 0.05, alone.tested.p)
    assert (among.tested.n, among.tested.level) == (3, 0.05 / 3)
    assert among.tested.p == ps[0]
    assert among.tested.p_adjusted == pytest.approx(holm_by_hand(ps))
    # of t with 2 degrees of freedom, and of the normal distribution
    spread = stats.t(2) if claim is LIKE_THESE else stats.norm()
    for found, level in ((alone, 0.05), (among, 0.05 / 3)):
        error = 0.4 / (spread.isf(level / 2) + spread.ppf(0.8))
        assert found.wanted == pytest.approx(spread.isf(0.025) * error)
    assert among.state == alone.state
    if claim is LIKE_THESE:
        assert among.topics_needed > alone.topics_needed >= 2


def test_topics_for_a_stricter_level_are_the_least_that_have_the_power():
    """d, S and 28 comparisons of the fixture of the claims' formulas."""
    d, s, level = 0.822193, 2.372739, 0.05 / 28
    n = topics_for_power(d, s**2, level=level)

    def is_enough(n):
        t = stats.t(n - 1)
        return s / math.sqrt(n) <= d / (t.isf(level / 2) + t.ppf(0.8))

    assert is_enough(n)
    assert not is_enough(n - 1)
    assert n > topics_for_power(d, s**2)


def test_below_the_level_of_the_plan_holm_adjusts_below_the_level_whatever_the_others_are():
    """What the plan promises, by enumeration: p just below .05/4 among three others of any size; and the control."""
    tested = FamilyTest(Family("all", tuple("abcd")), 4, True, 0.2, 0.6)
    others = np.array([1e-9, 0.0124, 0.0126, 0.03, 0.2, 1.0])
    found, looser = [], []
    for one in others:
        for two in others:
            for three in others:
                found.append(holm_by_hand([0.999 * tested.level, one, two, three]))
                looser.append(holm_by_hand([0.999 * 2 * tested.level, one, two, three]))
    assert max(found) < 0.05
    assert max(looser) >= 0.05


def test_an_untested_pair_counts_as_one_more_of_its_family():
    """Two others are tested: with this one there are three, by Holm at .05/3; the control is .05/2."""
    untested = FamilyTest(Family("all", tuple("abc")), 2, True, None, None)
    assert untested.level == 0.05 / 3
    assert "in the family all 2 other comparisons are tested, and with this one 3." in untested.sentence
    assert "p below .05/3" in untested.sentence
    others = [1e-9, 0.02, 0.9]
    assert max(holm_by_hand([0.999 * 0.05 / 3, one, two]) for one in others for two in others) < 0.05
    assert max(holm_by_hand([0.999 * 0.05 / 2, one, two]) for one in others for two in others) >= 0.05
    outside = FamilyTest(Family("all", tuple("abc")), 3, False, None, None)
    single = FamilyTest(Family("runs:a,b", ("a", "b")), 0, True, None, None)
    assert (outside.level, single.level, outside.refusal, single.refusal) == (0.05, 0.05, "", "")
    assert "no other tested comparison" in single.sentence


@pytest.mark.parametrize("claim", [LIKE_THESE, THESE])
def test_numbers_of_which_no_comparison_was_tested_make_no_plan_among_several(campaign, claim):
    asked = PAIR | {"claim": claim.key, "difference": 0.4}
    before = plan(campaign=campaign, terms=terms_of(campaign, **asked, family="all"))
    assert (before.refusal, before.tested.n) == ("", 3)
    rows = campaign.computations.latest("id").estimates.filter(run_b__isnull=False)
    with unguarded(["analytics_estimate"]):
        rows.update(topics_p_value=None, **({"p_value": None} if claim is THESE else {}))
    refused = plan(campaign=campaign, terms=terms_of(campaign, **asked, family="all"))
    assert "compute again" in refused.refusal
    assert refused.needed is None
    text = page_of(campaign, claim=claim.key, family="all", difference="0.4")
    assert "No plan yet" in text
    assert "compute again" in text
    alone = plan(campaign=campaign, terms=terms_of(campaign, **asked, family="runs:run0,run1"))
    assert (alone.refusal, alone.tested.level) == ("", 0.05)


def test_page_api_and_command_say_the_same_of_the_family(campaign):
    asked = PAIR | {"difference": "0.4", "family": "all", "claim": "topics-like-these"}
    said = reader().get(f"/api/v1/campaigns/{campaign.pk}/planner", asked)
    assert said.status_code == 200
    answer = said.json()
    assert (answer["family"], answer["n_family"], answer["level"]) == ("all", 3, pytest.approx(0.05 / 3))
    assert answer["p_adjusted"] == pytest.approx(holm_by_hand(all_p(campaign, LIKE_THESE)))
    words, out, table = [f"--{name}={value}" for name, value in asked.items()], StringIO(), StringIO()
    call_command("plan", str(campaign.pk), *words, "--output", "json", stdout=out)
    assert json.loads(out.getvalue()) == answer
    call_command("plan", str(campaign.pk), *words, stdout=table)
    sentence = (
        "adjusted by Holm among the 3 tested comparisons of the family all. The plan is for p below .05/3,"
    )
    for text in (page_of(campaign, **asked), " ".join(table.getvalue().split())):
        assert sentence in text
    value = reader().get(f"/api/v1/campaigns/{campaign.pk}/planner", {"run": "run0", "family": "all"}).json()
    assert (value["family"], value["n_family"], value["level"]) == (None, None, 0.05)


def test_a_pair_outside_the_family_is_planned_alone_and_the_page_says_so(campaign):
    text = page_of(campaign, family="baseline:run2", difference="0.4")
    assert "This pair is not among the comparisons of the family baseline:run2" in text
    answer = (
        reader().get(f"/api/v1/campaigns/{campaign.pk}/planner", PAIR | {"family": "baseline:run2"}).json()
    )
    assert (answer["p_adjusted"], answer["level"]) == (None, 0.05)
    assert answer["p"] == all_p(campaign, LIKE_THESE)[0]


def test_the_declared_family_is_the_default(campaign):
    assert "among the 3 tested comparisons of the family question" in page_of(campaign)
    declare_family(campaign=campaign, user=None, name="runs:run0,run1")
    text = page_of(campaign)
    assert "the family runs:run0,run1 has no other tested comparison, so p needs no adjustment" in text
    assert "The family, the declared one, has a single tested comparison" in text
    assert 'href="?run=run0&against=run1&measure=DCG%4010&family=question"' in text


def test_tabs_to_and_from_the_planner_keep_claim_and_family(campaign):
    choice = "claim=these-topics&family=all"
    text = page_of(campaign, claim="these-topics", family="all")
    for name in ("console:campaign-results", "console:pairs", "console:ranking", "console:sensitivity"):
        assert f'href="{reverse(name, args=[campaign.pk])}?measure=DCG%4010&{choice}"' in text
    assert '<input type="hidden" name="family" value="all">' in text
    here = reverse("console:planner", args=[campaign.pk])
    for name in ("console:campaign-results", "console:pairs", "console:ranking"):
        page = reader().get(f"{reverse(name, args=[campaign.pk])}?measure=DCG@10&{choice}")
        assert f'href="{here}?{choice}"' in page.content.decode().replace("&amp;", "&")
    pair = reader().get(
        f"{reverse('console:pair', args=[campaign.pk])}?measure=DCG@10&a=run0&b=run1&{choice}"
    )
    kept = f'href="{here}?measure=DCG%4010&run=run0&against=run1&{choice}"'
    assert kept in pair.content.decode().replace("&amp;", "&")
    plain = page_of(campaign)  # the control: what was not asked for is in no address
    assert "claim=these-topics&family" not in plain
    assert f'href="{here}"' in plain


def kept_after(campaign, **asked):
    """Return the page of a wrong input, and the claim that its form sends next."""
    made = reader().get(reverse("console:planner", args=[campaign.pk]), PAIR | asked)
    assert made.status_code == 400
    text = " ".join(made.content.decode().replace("&amp;", "&").split())
    return text, text.split('name="claim" value="')[1].split('"')[0]


@pytest.mark.parametrize("claim", [LIKE_THESE, THESE])
def test_after_a_wrong_input_form_and_tabs_keep_claim_and_family(campaign, claim):
    text, sent = kept_after(campaign, difference="abc", claim=claim.key, family="all")
    assert "<strong>Difference that matters:</strong>" in text
    assert sent == claim.key
    assert '<input type="hidden" name="family" value="all">' in text
    assert f'{reverse("console:planner", args=[campaign.pk])}?claim={claim.key}&family=all"' in text


def test_a_claim_or_a_family_that_is_none_is_not_sent_again(campaign):
    here = reverse("console:planner", args=[campaign.pk])
    text, sent = kept_after(campaign, claim="no-topics", family="all")
    assert "<strong>Claim:</strong>" in text
    assert sent == LIKE_THESE.key
    assert f'href="{here}?family=all"' in text
    text, sent = kept_after(campaign, claim="these-topics", family="every")
    assert "<strong>Family:</strong>" in text
    assert sent == THESE.key
    assert 'name="family"' not in text
    assert f'href="{here}?claim=these-topics"' in text


@pytest.mark.parametrize("wrong", ["every", "runs:run0,run0", "baseline:nobody", "runs:run0"])
def test_a_family_that_is_none_is_refused_with_the_field(campaign, wrong):
    page = reader().get(reverse("console:planner", args=[campaign.pk]), PAIR | {"family": wrong})
    assert page.status_code == 400
    assert "<strong>Family:</strong>" in page.content.decode()
    said = reader().get(f"/api/v1/campaigns/{campaign.pk}/planner", PAIR | {"family": wrong})
    assert said.status_code == 400
    assert "family" in json.dumps(said.json())
    with pytest.raises(CommandError, match=r"^family "):
        call_command("plan", str(campaign.pk), "--family", wrong)
