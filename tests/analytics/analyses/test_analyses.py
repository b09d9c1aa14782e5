"""Analyses that are made when asked: the papers' methods against numbers by hand."""

import json
import math
import uuid

import numpy as np
import pytest
from asked_analyses import PAIR, client_of, given_grade, lines, made, page_of, run_job
from django.test import Client
from django.urls import reverse
from scipy import stats
from small_campaign import (
    TOPICS,
    doc_id,
    give,
    make_assessor,
    make_campaign,
    returned,
    slots,
    true_grade,
    truth_of,
)

import analytics.tasks  # noqa: F401 (registers the jobs)
from analytics.models import JudgingConditions
from analytics.services.analyses import AnalysisRefused, AnalysisSubject, ask
from analytics.services.assumptions import answer_questions, what_forbids
from touchstone.authentication import make_token
from touchstone.models import User

pytestmark = pytest.mark.django_db

Z = 1.959963984540054


def pairs():
    return [(t, doc_id(n, d)) for n, t in enumerate(TOPICS) for d in range(14)]


def relevant(grade):
    return int(grade >= 1)  # the usual scale: relevant from grade 1 on


def by_topic(run):
    """Return the bronze P@10 of every topic, by hand."""
    found = [[relevant(given_grade(t, d)) for (t, d) in returned(run) if t == topic] for topic in TOPICS]
    return np.array([np.mean(labels) for labels in found])


def rates():
    """Return (hits, n) among relevant and not relevant pooled documents, by hand."""
    true = np.array([relevant(true_grade(*pair)) for pair in pairs()])
    given = np.array([relevant(given_grade(*pair)) for pair in pairs()])
    return ((true & given).sum(), true.sum()), (((1 - true) & (1 - given)).sum(), (1 - true).sum())


# -- numbers by hand ----------------------------------------------------------------------------------------


def test_the_papers_binary_formulas_give_the_numbers_by_hand(audited):
    (hits_r, n_r), (hits_n, n_n) = rates()
    m_r, m_n = hits_r / n_r, hits_n / n_n
    v_r, v_n, d = m_r * (1 - m_r) / n_r, m_n * (1 - m_n) / n_n, m_r + m_n - 1
    a, b = by_topic(0), by_topic(2)
    result = made(audited)
    assert np.allclose(result["confusion"], [[m_n, 1 - m_n], [1 - m_r, m_r]])
    for of, values in (("run", a), ("against", b)):
        j, v_j = values.mean(), values.var(ddof=1) / 3
        m = (j - 1 + m_n) / d
        error = math.sqrt(v_j + m**2 * v_r + (1 - m) ** 2 * v_n) / d
        printed = lines(result, of)["Sensitivity and specificity, as printed"]
        assert printed["value"] == pytest.approx(m)
        assert (printed["low"], printed["high"]) == pytest.approx((m - Z * error, m + Z * error))
        # Eq 5 and Eq 17-18 are one number for two grades.
        assert lines(result, of)["One matrix for all labels, audit weighted"]["value"] == pytest.approx(m)
    delta, v_d = (a.mean() - b.mean()) / d, (a - b).var(ddof=1) / 3
    wald = lines(result)["One audit for both runs, Wald"]
    z = delta / (math.sqrt(v_d + delta**2 * (v_r + v_n)) / d)
    assert wald["value"] == pytest.approx(delta)
    assert wald["p_value"] == pytest.approx(2 * stats.norm.sf(abs(z)))
    score = lines(result)["One audit for both runs, score test"]
    assert score["p_value"] == pytest.approx(2 * stats.norm.sf(abs(a.mean() - b.mean()) / math.sqrt(v_d)))
    eq10 = lines(result)["As if audited separately: not used"]
    assert eq10["p_value"] > wald["p_value"]
    assert "independent" in eq10["note"]


def test_with_everything_audited_calibration_gives_the_pools_mean_of_each_label(audited):
    true = np.array([relevant(true_grade(*pair)) for pair in pairs()])
    given = np.array([relevant(given_grade(*pair)) for pair in pairs()])
    mean = [true[given == label].mean() for label in (0, 1)]
    j = by_topic(0).mean()
    found = lines(made(audited), "run")["Calibration: the audited mean of each label"]
    assert found["value"] == pytest.approx((1 - j) * mean[0] + j * mean[1])
    assert found["low"] < found["value"] < found["high"]


def test_four_grades_have_eq_18_and_refuse_the_binary_forms_by_name(audited):
    result = made(audited, AnalysisSubject("papers", "DCG@10", "run0", "run2"))
    counts = np.zeros((4, 4))
    for pair in pairs():
        counts[true_grade(*pair), given_grade(*pair)] += 1
    gains = audited.scale.gains()
    c = np.linalg.solve(counts / counts.sum(axis=1, keepdims=True), gains)
    value = sum(c[given_grade(*pair)] / math.log2(rank + 1) for pair, rank in returned(0).items()) / len(
        TOPICS
    )
    assert lines(result, "run")["One matrix for all labels, audit weighted"]["value"] == pytest.approx(value)
    for name in ("One audit for both runs, Wald", "As if audited separately: not used"):
        assert "two grades" in lines(result)[name]["refusal"]
    assert result["drift"] == ""


def test_every_line_is_a_number_or_a_reason_and_the_stored_ones_are_the_newest(audited):
    result = made(audited)
    stored = audited.computations.latest("id").estimates.get(
        measure="P@10", method="corrected", run__run_id="run0", run_b__run_id="run2"
    )
    reported = lines(result)["Corrected by the audit"]
    assert reported["value"] == stored.value
    assert reported["source"] == "Touchstone"
    for line in result["lines"]:
        assert bool(line["refusal"]) == (
            line["value"] is None and line["low"] is None and line["p_value"] is None
        )
    assert json.dumps(result, allow_nan=False)
    turned = made(audited, AnalysisSubject("papers", "P@10", "run2", "run0"))
    for name, line in lines(result).items():
        if line["value"] is not None and "Bootstrap" not in name:
            assert lines(turned)[name]["value"] == pytest.approx(-line["value"], abs=1e-9)


def test_the_same_judgments_give_the_same_numbers(audited):
    assert made(audited) == made(audited)


def test_without_an_audit_there_is_a_range_and_no_interval(judged):
    """Gold checks alone, chosen by nobody's coin: the two ends and how much local gold would give a half-width."""
    result = made(judged)
    for of in ("difference", "run", "against"):
        named = lines(result, of)
        found = named.pop("Between the grades as given and the matrix inverse")
        assert "no gold label of true grade" in found["refusal"]
        assert all(line["low"] is None and "no audit with" in line["refusal"] for line in named.values())


def test_with_gold_checks_alone_the_range_has_both_ends(tmp_path):
    campaign = make_campaign(tmp_path, gold_check_rate=0.3, budget=24)
    assessors = [make_assessor(campaign, f"bronze{n}") for n in range(2)]
    for slot in slots(campaign, state="open"):
        if slot.purpose == "judge":
            give(assessors[slot.number - 1], slot, truth_of(slot))
    checks = {slot.item_id: slot for slot in slots(campaign, "check", state="open")}
    for slot in checks.values():
        true = truth_of(slot)
        give(assessors[0], slot, true if int(slot.item.document.doc_id[-2:]) % 9 else 3 - true)
    result = made(campaign)
    assert result["n_gold_checks"] == len(checks) > 0
    found = lines(result, "run")["Between the grades as given and the matrix inverse"]
    assert found["kind"] == "range", found
    assert found["refusal"] == "", found
    assert found["low"] <= found["high"]
    assert "would give a half-width" in found["note"]


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (AnalysisSubject("papers", "nDCG@10", "run0", "run2"), "is a ratio"),
        (AnalysisSubject("papers", "P@10", "run0", "nobody"), "no run 'nobody'"),
    ],
)
def test_what_cannot_be_analysed_is_refused_by_name(audited, wanted, words):
    with pytest.raises(AnalysisRefused, match=words):
        made(audited, wanted)


def test_before_the_first_judgment_there_is_nothing_to_analyse(tmp_path):
    with pytest.raises(AnalysisRefused, match="nobody has judged yet"):
        made(make_campaign(tmp_path))


# -- the three questions ------------------------------------------------------------------------------------


def test_a_no_refuses_one_audit_for_two_runs_and_leaves_the_corrected_number(audited):
    run_job(ask(campaign=audited, wanted=PAIR, user=None))
    before = page_of(audited)
    assert "Not answered yet" in before
    answer_questions(campaign=audited, user=None, same_judges=True, same_period=False, blind_to_system=True)
    text = page_of(audited)
    assert "One audit may not serve both runs:" in text
    assert "each period needs an audit of its own" in text
    assert text.count("not estimable: the runs were graded in different periods") == 6
    assert "Corrected by the audit" in text
    answer_questions(campaign=audited, user=None, same_judges=True, same_period=True, blind_to_system=True)
    assert "One audit may not serve" not in page_of(audited)
    assert JudgingConditions.objects.count() == 2


def test_answers_say_what_is_needed():
    yes = {"same_judges": True, "same_period": True, "blind_to_system": True}
    assert what_forbids(None) == what_forbids(JudgingConditions(**yes)) == ""
    for name in yes:
        assert "an audit of its own" in what_forbids(JudgingConditions(**yes | {name: False}))


def test_the_questions_are_asked_of_managers_and_shown_to_researchers(audited):
    address = reverse("console:pair", args=[audited.pk]) + "?measure=P@10&a=run0&b=run2"
    text = client_of("manager").get(address).content.decode()
    assert text.count('<fieldset class="yes-no">') == 3
    read = client_of("researcher").get(address).content.decode()
    assert "Not answered yet; a manager can answer" in read
    assert "<fieldset" not in read
    answers = {"same_judges": "yes", "same_period": "no", "blind_to_system": "yes"}
    url = reverse("console:conditions", args=[audited.pk])
    assert client_of("researcher").post(url, answers).status_code == 404
    told = client_of("manager").post(url, answers | {"query": "measure=P@10&a=run0&b=run2"}, follow=True)
    assert "The answers were recorded." in told.content.decode()
    stored = JudgingConditions.objects.get()
    assert (stored.same_judges, stored.same_period, stored.answered_by.username) == (True, False, "manager")
    assert "Answered by manager" in " ".join(client_of("researcher").get(address).content.decode().split())
    incomplete = client_of("manager").post(url, {"same_judges": "yes"}, follow=True)
    assert "Answer all three questions" in incomplete.content.decode()
    assert JudgingConditions.objects.count() == 1


def test_programs_answer_and_read_the_questions(api, judged):
    address = f"/api/v1/campaigns/{judged.pk}/conditions"
    asked = api.get(address).json()
    assert (asked["answers"], asked["refused"]) == (None, None)
    answers = {"same_judges": False, "same_period": True, "blind_to_system": True}
    assert api.post(address, json.dumps(answers), content_type="application/json").status_code == 404
    manager = User.objects.create(username="mia", role="manager")
    _, key = make_token(user=manager, name=str(uuid.uuid4()), days=1)
    of_manager = Client(enforce_csrf_checks=True, headers={"Authorization": f"Bearer {key}"})
    sent = of_manager.post(address, json.dumps(answers), content_type="application/json")
    assert sent.status_code == 201
    said = api.get(address).json()
    assert (said["answers"], said["answered_by"]) == (answers, "mia")
    assert "different assessors" in said["refused"]
    incomplete = of_manager.post(address, json.dumps({"same_judges": True}), content_type="application/json")
    assert incomplete.status_code == 400
