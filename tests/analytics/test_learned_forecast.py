"""The forecast of an audit that learns: by how much narrower the interval is than after one by influence."""

from dataclasses import replace

import numpy as np
import pytest

from analytics.estimation.gold_prediction import Foreknowledge, GoldPrediction, predicted_gold
from analytics.estimation.samples import AuditSample, Frame, Labels
from analytics.estimation.two_phase import two_phase
from analytics.planning.audit_outlook import AuditedTarget, predicted_errors
from sampling.audit_plan import Auditable
from sampling.judged import Judged

N, N_TOPICS = 1500, 30
GAINS = np.array([0.0, 1.0])


def target_of(weight, drawn):
    nothing = np.zeros(weight.size, dtype=np.int64)
    return AuditedTarget(
        weight=weight,
        draw_probability=drawn,
        prior=np.zeros(weight.size),
        bronze_class=nothing,
        bronze_grade=nothing,
        audited=nothing > 0,
        gold_grade=nothing,
        audit_probability=np.zeros(weight.size),
        gains=GAINS,
    )


def test_the_predicted_error_by_hand():
    """Weight 2 and probability .5: 16 ((1 - .5) ((.6 - .1)^2 + .25) + (1/a - 1) .25) for a = .5 and 1."""
    gold = GoldPrediction(np.array([0.1]), np.array([0.6]), np.array([0.25]))
    found = predicted_errors(target_of(np.array([2.0]), np.array([0.5])), gold, [[0.5], [1.0]])
    assert found == pytest.approx(np.sqrt([8.0, 4.0]))


@pytest.mark.parametrize("wrong", [[0.5], [[0.0]], [[1.5]], [[0.5, 0.5]], [[np.nan]]])
def test_wrong_probabilities_are_named(wrong):
    gold = GoldPrediction(*np.ones((3, 1)))
    with pytest.raises(ValueError, match="rows of 1 numbers"):
        predicted_errors(target_of(np.ones(1), np.ones(1)), gold, wrong)


def play(seed, *, knows=True):
    """Return the predicted ratio of half-widths, learned to influence, and the one that came out."""
    rng = np.random.default_rng(seed)
    topic, fold = np.repeat(np.arange(N_TOPICS), N // N_TOPICS), rng.integers(0, 10, N)
    merit, difficulty = rng.normal(size=N), rng.normal(scale=2.0, size=N_TOPICS)[topic]
    grade = (rng.random(N) < 1 / (1 + np.exp(-1.5 * merit + difficulty + 1))).astype(np.int64)
    given = np.where(rng.random(N) < 0.8, grade, 1 - grade)
    labels = Labels(np.arange(N), np.zeros(N, int), given, n_items=N, n_assessors=1, n_grades=2)
    weight = np.where(rng.random(N) < 0.5, rng.normal(size=N), 0.0)
    ones, frame = np.ones(N), Frame(N_TOPICS, topic, np.arange(N), np.ones(N))
    known = Foreknowledge(merit[:, None], np.full(1, 10.0), fold, np.full(N, 0.3))
    numbers = rng.random(N)
    judged = Judged(np.abs(weight), ones, topic, given, ones, n_grades=2, fold=fold)
    first = Auditable(judged, np.zeros(N)).probabilities("influence", 150)

    def predicted(chance):
        audit = AuditSample(ones, labels.classes(), numbers < chance, grade, chance, n_grades=2)
        return predicted_gold(frame, audit, GAINS, labels=labels, known=known)

    told = predicted(first)
    taught = replace(judged, gold_spread=told.spread)
    chances = [Auditable(taught, first).probabilities(name, 150) for name in ("influence", "learned")]
    widths = []
    for chance in chances:
        gold = predicted(chance)
        estimate = two_phase(
            weight,
            draw_probability=ones,
            audited=numbers < chance,
            gold=GAINS[np.where(numbers < chance, grade, 0)],
            audit_probability=chance,
            before=gold.before,
            after=gold.after,
            spread=gold.spread,
            before_total=0.0,
        ).estimates
        widths.append(estimate.high[0] - estimate.low[0])
    expected = told if knows else replace(told, spread=np.full(N, 0.25))
    errors = predicted_errors(target_of(weight, ones), expected, np.stack(chances))
    return errors[1] / errors[0], widths[1] / widths[0]


def test_the_forecast_narrows_about_as_much_as_the_audit_then_does():
    forecast, outcome = np.array([play(seed) for seed in range(12)]).T
    print(f"forecast {forecast.mean():.3f}, outcome {outcome.mean():.3f} (sd {outcome.std(ddof=1):.3f})")
    assert outcome.mean() < 0.95
    assert outcome.mean() - 0.02 < forecast.mean() < outcome.mean() + 0.08  # rather cautious


def test_a_forecast_for_which_all_documents_are_alike_is_found_out():
    """The control: with one variance for all, an audit that prefers some of them must look worse."""
    forecast, outcome = np.array([play(seed, knows=False) for seed in range(4)]).T
    assert forecast.mean() > outcome.mean() + 0.05
