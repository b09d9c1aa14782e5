"""The papers' methods for any number of grades: inverted confusion matrices, and the calibration that needs none."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from analytics.estimation.estimate import Estimate, Floats, Refusal, estimate
from analytics.papers.graded import (
    Bootstrap,
    SystemLabels,
    bootstrap_over_topics,
    corrected_system,
    grade_shares,
    system_labels,
)
from analytics.papers.intervals import Interval, dirichlet_interval
from analytics.services.analyses.context import Case, Side
from analytics.services.analyses.request import Line, fill_line, refuse_line, sentences

EQ18 = "Goldberg et al. (2017), Eq 17 and 18"
VARIANCE = f"{EQ18}, with the variance that the paper lacks"
SEED = 20170731  # of draws; the same judgments give the same numbers
FEWEST_OF_A_LABEL = 2


def graded_lines(case: Case) -> Iterator[Line]:
    """Yield the lines of the difference, then those of each run."""
    for of in ("difference", "run", "against"):
        shared = of == "difference"
        yield _inverse(
            case,
            of,
            case.counts,
            Line(of, "One matrix for all labels, audit weighted", VARIANCE, one_audit=shared),
        )
        yield _inverse(
            case,
            of,
            case.unweighted,
            Line(
                of,
                "One matrix for all labels, audit not weighted",
                EQ18,
                one_audit=shared,
                note="Biased unless every judged item had the same audit probability",
            ),
        )
        yield _bootstrap(case, of)
        if not shared:
            yield _dirichlet(case, of, case.sides[of == "against"])
        yield _calibrate(case, of)


def _labels(case: Case, of: str) -> SystemLabels:
    """Return the labels of the target as the formulas take them: a weight for every topic and grade."""
    values = case.values(of)
    topic, grade = (place.ravel() for place in np.indices(values.shape))
    return system_labels(topic, np.zeros_like(grade), grade, values.ravel(), case.n_topics)


def _inverse(case: Case, of: str, counts: Floats, line: Line) -> Line:
    gold = counts.sum(axis=1)
    rows = np.divide(counts, gold[:, None], out=np.zeros_like(counts), where=gold[:, None] > 0)
    if (gold <= 0).any():
        return refuse_line(line, Refusal(f"no gold label of true grade {int(np.argmin(gold))}", 10))
    found = corrected_system(
        _labels(case, of), matrices=rows[None], gold_per_grade=gold[None], gains=case.gains
    )
    if isinstance(found, Estimate) and of != "difference":
        line = replace(line, note=sentences(line.note, _implied_shares(case, of, rows)))
    return fill_line(line, found)


def _implied_shares(case: Case, of: str, matrix: Floats) -> str:
    """Return the grades' shares that Eq 17 implies, if one of them cannot be."""
    shares = grade_shares(case.sides[of == "against"].shares, matrix)
    if (shares >= 0).all():
        return ""
    listed = ", ".join(f"{share:.2f} of grade {grade}" for grade, share in enumerate(shares))
    return f"Impossible: it implies shares of {listed}"


def _bootstrap(case: Case, of: str) -> Line:
    line = Line(
        of,
        "Bootstrap over topics, with a new draw of the audit",
        "Goldberg et al. (2017), below Eq 18, with replacement",
        one_audit=of == "difference",
    )
    found = bootstrap_over_topics(
        case.values(of)[:, None, :],
        audit_counts=case.counts[None],
        gains=case.gains,
        rng=np.random.default_rng(SEED),
    )
    if not isinstance(found, Bootstrap):
        return refuse_line(line, found)
    return replace(line, value=found.value, low=found.low, high=found.high)


def _dirichlet(case: Case, of: str, side: Side) -> Line:
    line = Line(
        of, "Posterior of the shares, Dirichlet", "draws of the labels' shares and of the matrix's rows"
    )
    found = dirichlet_interval(
        case.counts, side.shares * _worth(case, side), case.gains, rng=np.random.default_rng(SEED)
    )
    if not isinstance(found, Interval):
        return refuse_line(line, found)
    note = "" if found.accepted > 0.5 else f"Only {found.accepted:.0%} of the draws give possible shares"
    return replace(line, low=side.total * found.low, high=side.total * found.high, note=note)


def _worth(case: Case, side: Side) -> float:
    """Return how many independent labels the shares are worth: their binomial variance over the one they have."""
    binomial = float((side.shares * (1 - side.shares)).sum())
    spread = sum(case.variance(part) for part in side.parts.T)
    return min(side.effective, binomial / spread) if spread > 0 else side.effective


def _calibrate(case: Case, of: str) -> Line:
    """Return the labels' shares times the audited mean gain of each label, for this target's own shares."""
    line = Line(
        of,
        "Calibration: the audited mean of each label",
        "double sampling: Cochran (1977), chapter 12",
        note="It shrinks differences: the audited mean is computed over all judged items, not over this run's",
    )
    members = np.flatnonzero(case.audited)
    if members.size == 0:
        return refuse_line(line, "no audit is complete yet")
    votes, pi = case.votes[members], case.audit_probability[members]
    gain, weight = case.gains[case.gold[members]], votes / pi[:, None]
    size = weight.sum(axis=0) ** 2 / np.maximum((weight**2).sum(axis=0), 1e-300)
    values = case.values(of)
    shares = values.mean(axis=0)
    short = np.flatnonzero((np.abs(shares) > 0) & (size < FEWEST_OF_A_LABEL))
    if short.size:
        return refuse_line(
            line, Refusal(f"too few audited items with label {int(short[0])}", FEWEST_OF_A_LABEL)
        )
    total = np.maximum(weight.sum(axis=0), 1e-300)
    mean = weight.T @ gain / total
    within = np.array([w @ (gain - m) ** 2 for w, m in zip(weight.T, mean, strict=True)]) / total
    gold = float((shares**2 * within / np.maximum(size - 1, 1)).sum())
    topics = float((values @ mean).var(ddof=1)) / case.n_topics
    found = estimate(
        float(shares @ mean), topics + gold, degrees_of_freedom=case.n_topics - 1, n=members.size, sources=()
    )
    return fill_line(line, found)
