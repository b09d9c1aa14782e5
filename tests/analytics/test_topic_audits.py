"""Campaigns whose topics are audited completely: corrected numbers of any measure, tests of pairs, and refusals."""

import csv
import io

import numpy as np
import pytest
from django.core.management import call_command
from small_campaign import slots
from topic_campaign import (
    EVERYTHING,
    N_TOPICS,
    OF_TOPIC,
    RUNS,
    SHARE,
    chances,
    design,
    judge,
    judge_audit,
    make_audited,
    make_drawn,
    stored,
    too_low,
    values,
)

from analytics.estimation.audited_topics import TopicAudit, audited_topics, topic_prediction
from analytics.estimation.claims import THESE
from analytics.estimation.whole_topics import TakenTopics
from analytics.estimation.wording import sentence
from analytics.services.comparisons import Comparisons
from analytics.services.families import asked_family
from analytics.services.ranking import ranking_of
from analytics.services.recomputation import recompute
from sampling.frames import load_frame
from sampling.models import AuditEntry
from sampling.services.audit_samples import sample_lines
from sampling.services.auditable import AuditRefused
from sampling.services.auditing import audit
from sampling.services.drawing import draw
from sampling.whole_topics import topic_numbers

pytestmark = pytest.mark.django_db


def audited_topics_of(campaign):
    """Return by topic the chance of the audits and whether it was taken, from their rows."""
    rows = AuditEntry.objects.filter(audit__campaign=campaign).values_list(
        "item__topic__topic_id", "inclusion_probability", "selected"
    )
    chance, taken = {}, {}
    for topic, probability, selected in rows:
        chance.setdefault(topic, set()).add(probability)
        taken.setdefault(topic, set()).add(selected)
    return chance, taken


def test_an_audit_takes_whole_topics_by_one_number_each(tmp_path):
    campaign = make_drawn(tmp_path, budget=EVERYTHING)
    judge(campaign, grade=too_low)
    made = audit(campaign=campaign, items_each_time=110, items_in_total=400, strategy="whole-topics", seed=11)
    chance, taken = audited_topics_of(campaign)
    assert len(chance) == N_TOPICS
    assert all(len(one) == 1 for one in chance.values())
    rho = {topic: one.pop() for topic, one in chance.items()}
    assert sum(rho.values()) * 6 == pytest.approx(110, abs=1e-4)
    numbers = dict(zip(rho, topic_numbers(list(rho), 11).tolist(), strict=True))
    assert taken == {topic: {numbers[topic] < rho[topic]} for topic in rho}
    assert (
        made.n_selected == len(slots(campaign, "audit")) == 6 * sum(one == {True} for one in taken.values())
    )
    # a later audit keeps the earlier ones' topics and lowers no chance
    audit(campaign=campaign, items_each_time=50, items_in_total=400, strategy="whole-topics")
    later, kept = audited_topics_of(campaign)
    assert all(max(later[topic]) >= rho[topic] for topic in rho)
    assert sum(max(one) for one in later.values()) * 6 == pytest.approx(160, abs=1e-4)
    assert all(True in kept[topic] for topic, one in taken.items() if one == {True})
    assert len(slots(campaign, "audit")) == 6 * sum(True in one for one in kept.values())


@pytest.mark.parametrize("budget", [EVERYTHING, 180])
def test_every_measure_is_corrected_from_audited_topics(tmp_path, budget):
    campaign = make_audited(tmp_path, budget=budget)
    computation = recompute(campaign=campaign, measures=list(OF_TOPIC))
    _, taken = audited_topics_of(campaign)
    n_audited = sum(one == {True} for one in taken.values())
    for name in OF_TOPIC:
        theta, rows = values(name), stored(computation, name, "corrected")
        naive = stored(computation, name)
        for run, run_id in enumerate(RUNS):
            row, truth = rows[run_id, None], SHARE @ theta[run]
            assert not row.refusal
            assert row.n == n_audited
            assert 0 < row.standard_error < 0.2
            assert abs(row.value - truth) < 2 * (row.high - row.value)  # t of few topics has long tails
            assert abs(naive[run_id, None].value - truth) > 0.02  # the labels alone are wrong
            assert row.p_value is None
            assert row.always_low is None
        pair = rows["run0", "run2"]
        assert 0 < pair.p_value <= 1
        assert (pair.p_value < 0.05) == (pair.low > 0 or pair.high < 0)


def test_the_numbers_follow_from_values_by_hand(tmp_path):
    """Values by labels and gold by their definitions, chances from the audit's rows, folds from the frame's file."""
    campaign = make_audited(tmp_path)
    computation = recompute(campaign=campaign, measures=list(OF_TOPIC))
    chance, taken = audited_topics_of(campaign)
    a = np.array([chance[topic].pop() for topic in sorted(chance)])
    audited = np.array([taken[topic] == {True} for topic in sorted(taken)])
    frame = load_frame(campaign.draws.get()).group_by("topic_id").first().sort("topic_id")
    everything = TakenTopics(SHARE, np.ones(N_TOPICS), np.ones(N_TOPICS, dtype=bool))
    alike = np.full(N_TOPICS, 2 / 3)  # 16 of 24 pairs of a returned document and another run
    for name in OF_TOPIC:
        labelled, gold = values(name, too_low), values(name)
        fold = frame["fold"].to_numpy().astype(np.int64)
        predicted = topic_prediction(labelled, alike, labelled, gold, everything, audited, fold)
        expected = audited_topics(everything, TopicAudit(a, audited), gold, predicted)
        rows = stored(computation, name, "corrected")
        for run, run_id in enumerate(RUNS):
            row, one = rows[run_id, None], expected[run]
            for number in ("value", "standard_error", "degrees_of_freedom"):
                assert getattr(row, number) == pytest.approx(getattr(one, number), rel=1e-9)
            assert row.components["drawing"] == 0
            assert row.sources == ["drawing of topics", "label noise", "gold of topics"]


def test_without_a_complete_audit_nothing_is_corrected(tmp_path):
    campaign = make_audited(tmp_path, leave=1)
    rows = stored(recompute(campaign=campaign, measures=["ERR@4"]), "ERR@4", "corrected")
    assert {row.refusal for row in rows.values()} == {
        "no audit is complete yet; 1 selected items wait for the gold tier"
    }
    judge_audit(campaign)
    assert not stored(recompute(campaign=campaign, measures=["ERR@4"]), "ERR@4", "corrected")[
        "run0", None
    ].refusal


def test_topics_drawn_after_the_audit_had_no_chance_of_it(tmp_path):
    campaign = make_audited(tmp_path, budget=150)
    draw(campaign=campaign, design=design(budget=220))
    judge(campaign, grade=too_low)
    rows = stored(recompute(campaign=campaign, measures=["P@4"]), "P@4", "corrected")
    assert all(
        "drawn after the newest complete audit: audit once more" in row.refusal for row in rows.values()
    )
    audit(campaign=campaign, items_each_time=30, items_in_total=400, strategy="whole-topics")
    judge_audit(campaign)
    rows = stored(recompute(campaign=campaign, measures=["P@4"]), "P@4", "corrected")
    assert not rows["run0", None].refusal


def test_pairs_ranking_and_verdict_work_from_audited_topics(tmp_path):
    campaign = make_audited(tmp_path, items=200)
    computation = recompute(campaign=campaign, measures=["ERR@4"])
    rows = stored(computation, "ERR@4", "corrected")
    pair = rows["run0", "run1"]
    found = Comparisons(computation, "ERR@4", asked_family(campaign, "all"), THESE)
    assert found.n_family == 3
    assert found.of(pair).test.p_adjusted >= pair.p_value
    assert f"n = {pair.n} audited topics" in sentence(found.of(pair))
    ranking = ranking_of(computation=computation, measure="ERR@4")
    assert not ranking.refusal
    assert [run.rank for run in ranking.runs] == [1, 2, 3]
    assert all(run.rank_low <= run.rank <= run.rank_high for run in ranking.runs)


def test_gold_judges_of_whole_topics_give_the_number_to_report(tmp_path):
    campaign = make_drawn(tmp_path, gold=True)
    judge(campaign, tier="gold")
    computation = recompute(campaign=campaign, measures=list(OF_TOPIC))
    _, taken = chances(campaign)
    for name in OF_TOPIC:
        naive, rows = stored(computation, name), stored(computation, name, "corrected")
        for key, row in rows.items():
            assert (row.value, row.standard_error) == (naive[key].value, naive[key].standard_error)
            assert row.n == taken.sum()
            assert (row.p_value is None) == (key[1] is None)
        pair = rows["run0", "run2"]
        found = Comparisons(computation, name, asked_family(campaign, "all"), THESE)
        assert f"n = {pair.n} judged topics" in sentence(found.of(pair))
        assert not ranking_of(computation=computation, measure=name).refusal


def test_the_command_audits_whole_topics_and_the_sample_can_be_drawn_again(tmp_path, capsys):
    campaign = make_drawn(tmp_path, budget=EVERYTHING)
    judge(campaign, grade=too_low)
    words = ["--items", "110", "--strategy", "whole-topics", "--seed", "11"]
    call_command("audit", str(campaign.pk), *words)
    assert "strategy whole-topics for nDCG@4, 110.0 expected" in capsys.readouterr().out
    lines = list(csv.DictReader(io.StringIO("".join(sample_lines(campaign.audits.get())))))
    assert len(lines) == 240
    for line in lines:
        number = topic_numbers([line["topic"]], int(line["seed"]))[0]
        assert float(line["random_number"]) == number
        assert (number < float(line["inclusion_probability"])) == bool(int(line["selected"]))


# -- refusals -------------------------------------------------------------------------------------------------


def test_strategy_and_draw_must_fit(tmp_path):
    campaign = make_drawn(tmp_path)
    judge(campaign)
    with pytest.raises(AuditRefused, match="Choose a strategy that fits, such as “Whole topics”"):
        audit(campaign=campaign, items_each_time=50, items_in_total=400, strategy="influence")


def test_an_audit_of_topics_waits_for_all_judgments(tmp_path):
    campaign = make_drawn(tmp_path)
    judge(campaign, leave=2)
    with pytest.raises(AuditRefused, match="waits until all drawn documents are judged: 2 documents are not"):
        audit(campaign=campaign, items_each_time=50, items_in_total=400, strategy="whole-topics")
    judge(campaign)
    assert audit(campaign=campaign, items_each_time=50, items_in_total=400, strategy="whole-topics")
