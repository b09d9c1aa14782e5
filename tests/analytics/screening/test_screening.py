"""Screening a log: what is refused, what is never flagged, and who is found."""

from pathlib import Path

import numpy as np
import pytest

from analytics.screening.kinds import FLAG_KINDS
from analytics.screening.log import ScreeningLog
from analytics.screening.pace import pace_residuals
from analytics.screening.screens import NO_ORDER, SCREENS, screen
from judging.behaviour import sticky_labels
from judging.erring_assessors import Pace, erring_assessor

PER_TOPIC = 50


def made_log(
    behaviours: list[str], n_topics: int = 6, seed: int = 7, share_known: float = 0.2
) -> ScreeningLog:
    """Return the log of assessors, `honest` or spelled as the command spells them, 50 documents of each topic."""
    rng = np.random.default_rng(seed)
    sessions = []
    for one, behaviour in enumerate(behaviours):
        effect = rng.normal(0, 0.25)
        for topic in range(n_topics):
            given, *rest = made_session(behaviour, effect + rng.normal(0, 0.2), share_known, rng)
            place = np.arange(PER_TOPIC)
            sessions.append((np.full(PER_TOPIC, one), np.full(PER_TOPIC, topic), place, given, *rest))
    who, topics, order, labels, seconds, prior, truth = map(np.concatenate, zip(*sessions, strict=True))
    return ScreeningLog.of(who, topics, order, labels, seconds=seconds, prior=prior, truth=truth)


def made_session(
    behaviour: str, effect: float, share_known: float, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return labels, seconds, priors and known answers of one topic."""
    truth = (rng.random(PER_TOPIC) < rng.beta(2, 4)).astype(int)
    prior = rng.normal(size=PER_TOPIC) + 0.5 * truth
    quits = None
    if behaviour == "honest":
        errs = rng.random(PER_TOPIC) < np.where(truth == 1, 0.08, 0.03)
        given = sticky_labels(np.where(errs, 1 - truth, truth), rng.random(PER_TOPIC), 0.04)
    else:
        assessor = erring_assessor(behaviour)
        given, quits = assessor.labels(truth, rng.random(PER_TOPIC)), assessor.quits_after(truth)
    seconds = Pace().seconds(given, rng.normal(size=PER_TOPIC), effect=effect, quits_after=quits)
    return given, seconds, prior, np.where(rng.random(PER_TOPIC) < share_known, truth, -1)


def test_honest_assessors_raise_no_flag():
    assert screen(made_log(["honest"] * 20)).flags() == []


@pytest.mark.parametrize(
    ("behaviour", "test"),
    [
        ("pattern:0", "all-alike"),
        ("pattern:01", "serial"),
        ("sticky:.5", "serial"),
        ("disgruntled:1:16", "drift"),
        ("random:1:8", "misses"),
    ],
)
def test_a_careless_assessor_is_found_by_the_test_made_for_it(behaviour, test):
    flags = screen(made_log(["honest"] * 15 + [behaviour])).flags()
    assert (15, test) in flags
    assert {one for one, _ in flags} == {15}


def test_a_log_without_order_times_prior_and_gold_is_tested_where_it_can_be():
    log = made_log(["honest"] * 6)
    bare = ScreeningLog.of(log.assessor, log.topic, np.full(log.assessor.size, np.nan), log.relevant)
    findings = screen(bare).findings
    for key in ("speed", "fast-topics", "giving-up", "no-relation", "false-alarms", "misses"):
        assert np.isnan(findings[key].p).all()
        assert set(findings[key].refusals) == set(range(6))
    assert not np.isnan(findings["rate"].p).any()


@pytest.mark.parametrize("n_assessors", [1, 2, 4])
def test_few_assessors_are_not_compared(n_assessors):
    result = screen(made_log(["honest"] * (n_assessors - 1) + ["pattern:0"]))
    for key in ("speed", "rate", "drift", "all-alike", "false-alarms"):
        assert np.isnan(result.findings[key].p).all()
    assert result.flags() == []


def test_short_logs_are_not_tested():
    rng = np.random.default_rng(1)
    who = np.repeat(np.arange(8), 20)
    log = ScreeningLog.of(who, np.zeros(160, int), np.arange(160), rng.integers(0, 2, 160))
    result = screen(log)
    assert all(np.isnan(finding.p).all() for finding in result.findings.values())
    assert all(set(finding.refusals) == set(range(8)) for finding in result.findings.values())
    assert result.flags() == []


def test_an_empty_log_has_no_flags():
    empty = np.zeros(0, dtype=int)
    assert screen(ScreeningLog.of(empty, empty, empty, empty)).flags() == []


def test_labels_that_are_all_alike_are_not_called_a_pattern():
    n = 60
    who = np.repeat(np.arange(6), n)
    log = ScreeningLog.of(who, np.zeros(6 * n, int), np.tile(np.arange(n), 6), np.zeros(6 * n, int))
    serial = screen(log).findings["serial"]
    assert serial.refusals == dict.fromkeys(range(6), "all labels alike")


def test_a_machine_is_not_tested_for_pace():
    log = made_log(["honest"] * 8)
    machines = np.arange(8) == 3
    with_machine = ScreeningLog.of(
        log.assessor, log.topic, log.position, log.relevant, seconds=log.seconds, is_machine=machines
    )
    findings = screen(with_machine).findings
    assert findings["speed"].refusals[3] == "a machine's pace says nothing"
    assert np.isfinite(findings["speed"].p[[0, 1, 2, 4, 5, 6, 7]]).all()
    assert np.isfinite(findings["rate"].p[3])


def test_the_time_model_takes_out_label_and_position():
    """Without noise the residual is the effect of assessor and topic, up to one constant."""
    rng = np.random.default_rng(4)
    who, topic = np.repeat(np.arange(5), 80), np.tile(np.repeat(np.arange(4), 20), 5)
    place, label = np.tile(np.arange(20), 20), rng.integers(0, 2, 400)
    effects, topics = rng.normal(0, 0.3, 5), rng.normal(0, 0.2, 4)
    logarithms = 3 + 0.35 * label - 0.006 * place + effects[who] + topics[topic]
    log = ScreeningLog.of(who, topic, place, label, seconds=np.exp(logarithms))
    residuals = pace_residuals(log)
    expected = (effects[who] + topics[topic])[np.lexsort((place, topic, who))]
    assert residuals - residuals.mean() == pytest.approx(expected - expected.mean(), abs=1e-9)


def test_keys_of_screens_are_unique():
    assert len({one.key for one in SCREENS}) == len(SCREENS)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (([0], [0], [0], [2]), r"relevant must be one of \(0, 1\), got 2"),
        (([0, 0], [0], [0, 1], [0, 1]), "topic must have 2 items"),
    ],
)
def test_bad_columns_are_refused(columns, message):
    with pytest.raises(ValueError, match=message):
        ScreeningLog.of(*columns)


def test_judgments_without_an_order_are_left_out_of_the_tests_that_need_one():
    log = made_log(["honest"] * 8)
    order = log.position.astype(float)
    order[log.assessor == 2] = np.nan
    order[(log.assessor == 3) & (log.topic == 0)] = np.nan
    made = ScreeningLog.of(log.assessor, log.topic, order, log.relevant, seconds=log.seconds, prior=log.prior)
    findings = screen(made).findings
    for one in SCREENS:
        assert (findings[one.key].refusals.get(2) == NO_ORDER) == one.needs_order
        assert findings[one.key].refusals.get(3) != NO_ORDER
    assert np.isfinite(findings["serial"].p[3])
    assert made.with_order().assessor.size == log.assessor.size - 6 * PER_TOPIC - PER_TOPIC


def test_the_manual_says_what_each_flag_means():
    manual = (Path(__file__).parents[3] / "docs" / "manager.md").read_text()
    for kind in FLAG_KINDS:
        words = kind.help[0].lower() + kind.help[1:].removesuffix(".")
        assert f"| {kind.label} | {words} |" in manual
    assert [one.kind for one in SCREENS] == [
        kind
        for kind in FLAG_KINDS
        if kind.key not in ("accuracy", "less-accurate", "change", "pace", "chance")
    ]
