"""What the papers' methods say of two rounds, by name: naive, one shared audit, separate audits, partly shared."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from analytics.estimation.comparison import compare
from analytics.estimation.estimate import Z95, Estimate, Floats, Ints, Refusal
from analytics.estimation.rounds import over_two_samples
from analytics.papers.goldberg import (
    EQ10_REASON,
    SharedAuditDifference,
    corrected_value,
    corrected_variance,
    separate_audits_difference,
    shared_audit_difference,
)
from analytics.papers.graded import SystemLabels, corrected_difference, system_labels
from analytics.papers.refusals import audit_refusal, separation_refusal
from analytics.papers.sensitivity import drift_that_changes
from analytics.services.analyses.binary import NOT_BINARY, SHARED, Rates, rates_of
from analytics.services.analyses.graded import VARIANCE
from analytics.services.analyses.request import Line, fill_line, refuse_line, sentences
from analytics.services.confusions import assessor_confusion_counts
from analytics.services.rounds.evidence import Round

OF = "difference"
EQ9 = "Goldberg et al. (2017), Eq 9, with Welch's degrees of freedom"
EQ10 = "Goldberg et al. (2017), Eq 10 and 11"
ONE_AUDIT = "both audits went by the same random numbers, and Eq 10 takes them as independent"


@dataclass(frozen=True, eq=False)
class Pair:
    """Two rounds, the places of the topics that both have, and which audit says how assessors err."""

    first: Round
    second: Round
    shared: tuple[list[int], list[int]]
    audit: str
    one_audit: bool

    @property
    def rounds(self) -> tuple[Round, Round]:
        return self.first, self.second

    @property
    def audits(self) -> tuple[Round, ...]:
        """Return the rounds whose audits are asked."""
        return {"first": (self.first,), "second": (self.second,)}.get(self.audit, self.rounds)

    @property
    def same_topics(self) -> bool:
        return len(self.shared[0]) == self.first.case.n_topics == self.second.case.n_topics

    def over_topics(self, first: Floats, second: Floats) -> Estimate | Refusal:
        """Return the difference of two means over the rounds' topics."""
        return over_two_samples(first, second, *self.shared)


def round_lines(pair: Pair) -> list[Line]:
    """Return the difference by every method of the papers."""
    return [_naive(pair), *_binary_lines(pair), *_graded_lines(pair)]


def no_gold(pair: Pair) -> str:
    """Return which of the audits that are asked for has no gold label; empty where none is missing."""
    missing = [one.campaign.name for one in pair.audits if one.n_gold == 0]
    if not missing:
        return ""
    return f"no audit: there is no gold label in {' and '.join(dict.fromkeys(missing))}"


def _naive(pair: Pair) -> Line:
    line = Line(OF, "Grades as given", EQ9, note="It ignores that assessors err")
    found = pair.over_topics(*(one.naive_values for one in pair.rounds))
    if isinstance(found, Refusal):
        return refuse_line(line, found)
    tested = compare(found)
    if isinstance(tested, Refusal):
        return refuse_line(line, tested)
    df, n = found.degrees_of_freedom, len(pair.shared[0])
    kind = "Paired" if pair.same_topics else "Partly paired" if n else "Welch's"
    test = f"{kind} t({df:,.4f}) = {tested.statistic:.6f}"
    return fill_line(replace(line, note=sentences(test, line.note)), found, tested.p_value)


# -- two grades ---------------------------------------------------------------------------------------------


def _binary_lines(pair: Pair) -> Iterator[Line]:
    if pair.audit == "own":
        yield _separate(pair)
        return
    wald, fieller, score = (
        Line(OF, f"One audit for both rounds, {way}", SHARED, one_audit=True)
        for way in ("Wald", "Fieller", "score test")
    )
    apart = Line(OF, "As if audited separately: not used", EQ10, one_audit=True)
    rates = _rates(pair)
    found = rates if isinstance(rates, Refusal) else _shared_audit(pair, rates)
    if isinstance(found, Refusal):
        refused = found
        yield from (refuse_line(line, refused) for line in (wald, fieller, score, apart))
        return
    unfit = None if isinstance(rates, Refusal) else _unfit(pair, rates)
    if unfit is not None:  # the score test needs no audit, and stays
        yield from (refuse_line(line, unfit) for line in (wald, fieller))
        yield replace(score, p_value=found.score_p_value)
        yield refuse_line(apart, unfit)
        return
    total = pair.first.case.sides[0].total
    yield _symmetric(wald, total * found.value, total * found.standard_error, found.p_value)
    interval = found.fieller
    if isinstance(interval, Refusal):
        yield refuse_line(fieller, interval)
    else:
        yield replace(
            fieller, low=total * interval.low, high=total * interval.high, p_value=found.score_p_value
        )
    yield replace(
        score, p_value=found.score_p_value, note="“No difference” is tested with the grades as given"
    )
    yield replace(
        _symmetric(apart, total * found.value, total * found.eq10_standard_error, found.eq10_p_value),
        note=EQ10_REASON.rstrip("."),
    )


def _symmetric(line: Line, value: float, error: float, p_value: float) -> Line:
    return replace(line, value=value, low=value - Z95 * error, high=value + Z95 * error, p_value=p_value)


def _rates(pair: Pair) -> Rates | Refusal:
    """Return sensitivity and specificity by the audits that are asked, their effective counts added."""
    cases = [one.case for one in pair.audits]
    if cases[0].gains.tolist() != [0.0, 1.0]:
        return Refusal(NOT_BINARY)
    counts = np.sum([case.counts for case in cases], axis=0)
    return rates_of(replace(cases[0], counts=counts))


def _shares(pair: Pair) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return by round the share of relevant labels and its variance."""
    first, second = (
        (float(np.clip(side.shares[1], 0, 1)), case.variance(side.parts[:, 1]))
        for case, side in ((one.case, one.case.sides[0]) for one in pair.rounds)
    )
    return first, second


def _scale_refusal(pair: Pair) -> Refusal | None:
    totals = [one.case.sides[0].total for one in pair.rounds]
    if math.isclose(*totals, rel_tol=1e-6):
        return None
    reason = "the runs return different numbers of documents a topic, so their shares are not on one scale"
    return Refusal(f"{reason}; see Eq 17 and 18")


def _labels_variance(pair: Pair) -> float | Refusal:
    """Return V(j_a - j_b) of the shares of relevant labels, with the topics that both rounds have."""
    values = [one.case.values("run")[:, 1] / one.case.sides[0].total for one in pair.rounds]
    found = pair.over_topics(*values)
    return found if isinstance(found, Refusal) else found.standard_error**2


def _shared_audit(pair: Pair, rates: Rates) -> SharedAuditDifference | Refusal:
    together = _scale_refusal(pair) or _labels_variance(pair)
    if isinstance(together, Refusal):
        return together
    (j_a, v_a), (j_b, v_b) = _shares(pair)
    if min(v_a, v_b) <= 0:
        return Refusal("all topics have the same value, so their spread cannot be estimated")
    return shared_audit_difference((j_a, j_b), together, *rates.values, separate_variances=(v_a, v_b))


def _unfit(pair: Pair, rates: Rates) -> Refusal | None:
    return audit_refusal(_shares(pair), rates.relevant, rates.not_relevant)


def _separate(pair: Pair) -> Line:
    line = Line(OF, "Each round corrected by its own audit", EQ10)
    if pair.one_audit:
        return refuse_line(line, ONE_AUDIT)
    if pair.shared[0]:
        line = replace(line, note="It leaves out that the rounds share topics")
    unlike = _scale_refusal(pair)
    if unlike is not None:
        return refuse_line(line, unlike)
    numbers = []
    for one, share in zip(pair.rounds, _shares(pair), strict=True):
        rates = rates_of(one.case)
        if isinstance(rates, Refusal):
            return refuse_line(line, rates)
        unfit = audit_refusal((share,), rates.relevant, rates.not_relevant)
        if unfit is not None:
            return refuse_line(line, unfit)
        m_r, v_r, m_n, v_n = rates.values
        numbers += [corrected_value(share[0], m_r, m_n), corrected_variance(*share, m_r, v_r, m_n, v_n)]
    if numbers[1] + numbers[3] <= 0:
        return refuse_line(line, "all topics have the same value, so their spread cannot be estimated")
    found = separate_audits_difference(*numbers)
    total = pair.first.case.sides[0].total
    return _symmetric(line, total * found.value, total * found.standard_error, found.p_value)


def drift_words(pair: Pair) -> str:
    """Return the drift of the judges between the rounds that would change the verdict of one shared audit, in words."""
    rates = Refusal("") if pair.audit == "own" else _rates(pair)
    if isinstance(rates, Refusal) or isinstance(_shared_audit(pair, rates), Refusal) or _unfit(pair, rates):
        return ""
    variance = _labels_variance(pair)
    if isinstance(variance, Refusal):
        return ""
    m_r, _, m_n, _ = rates.values
    (j_a, _), (j_b, _) = _shares(pair)
    corrected = float(np.clip(np.mean([corrected_value(j, m_r, m_n) for j in (j_a, j_b)]), 0, 1))
    return drift_that_changes(j_a - j_b, variance, corrected, sensitivity=m_r, specificity=m_n).words


# -- any number of grades -----------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _Matrices:
    """Audits as counts[matrix, true, given], and which of them corrects each label of either round."""

    counts: Floats
    of_labels: tuple[Ints, Ints]


def _graded_lines(pair: Pair) -> Iterator[Line]:
    if pair.audit == "own":
        line = Line(OF, "A matrix for each round, by its own audit", VARIANCE)
        if pair.one_audit:
            yield refuse_line(line, f"{ONE_AUDIT}; so does this")
        else:
            yield _inverse(pair, line, _own_matrices(pair))
        return
    one = np.sum([of.case.counts for of in pair.audits], axis=0)[None]
    places = [np.zeros(of.case.label_item.size, dtype=np.int64) for of in pair.rounds]
    yield _inverse(
        pair,
        Line(OF, "One matrix for both rounds", VARIANCE, one_audit=True),
        _Matrices(one, (places[0], places[1])),
    )
    if pair.audit == "both":
        line = Line(
            OF, "A matrix for assessors of both rounds, others by their own round", VARIANCE, one_audit=True
        )
        groups = _groups_of_assessors(pair)
        yield refuse_line(line, groups) if isinstance(groups, Refusal) else _inverse(pair, line, groups)


def _own_matrices(pair: Pair) -> _Matrices:
    places = [np.full(one.case.label_item.size, at, dtype=np.int64) for at, one in enumerate(pair.rounds)]
    counts = np.stack([one.case.counts for one in pair.rounds])
    return _Matrices(counts, (places[0], places[1]))


def _groups_of_assessors(pair: Pair) -> _Matrices | Refusal:
    """Return three matrices: of assessors of the first round alone, of both, of the second alone."""
    people = [[one.user_id for one in of.arrays.assessors] for of in pair.rounds]
    known = set(people[0]) & set(people[1])
    groups = [
        np.array([1 if person in known else 2 * at for person in of_round], dtype=np.int64)
        for at, of_round in enumerate(people)
    ]
    used = {
        int(g) for of, group in zip(pair.rounds, groups, strict=True) for g in group[of.arrays.label_assessor]
    }
    if used == {0, 2}:
        return Refusal("no assessor judged in both rounds: see each round by its own audit")
    if used == {1}:
        return Refusal("all assessors judged in both rounds: see one matrix for both rounds")
    n_grades = pair.first.case.gains.size
    counts = np.zeros((3, n_grades, n_grades))
    for of, group in zip(pair.rounds, groups, strict=True):
        joined = of.joined_grades
        tables = assessor_confusion_counts(of.arrays).total
        for assessor, table in enumerate(tables):
            np.add.at(counts[group[assessor]], (joined[:, None], joined[None, :]), table)
    labels = [group[of.arrays.label_assessor] for of, group in zip(pair.rounds, groups, strict=True)]
    return _Matrices(counts, (labels[0], labels[1]))


def _inverse(pair: Pair, line: Line, matrices: _Matrices) -> Line:
    gold = matrices.counts.sum(axis=2)
    used = np.unique(np.concatenate(matrices.of_labels))
    for place in used:
        table = matrices.counts[place]
        found = separation_refusal(table)
        if found is not None:
            return refuse_line(line, found)
    rows = np.divide(
        matrices.counts, gold[..., None], out=np.zeros_like(matrices.counts), where=gold[..., None] > 0
    )
    compact = {int(place): at for at, place in enumerate(used)}
    order = pair.shared if pair.same_topics else (None, None)
    systems = [
        _system(one, np.array([compact[int(place)] for place in of_labels]), used.size, topics)
        for one, of_labels, topics in zip(pair.rounds, matrices.of_labels, order, strict=True)
    ]
    found_difference = corrected_difference(
        *systems,
        same_topics=pair.same_topics,
        matrices=rows[used],
        gold_per_grade=gold[used],
        gains=pair.first.case.gains,
    )
    n = len(pair.shared[0])
    if n and not pair.same_topics:
        line = replace(
            line, note=sentences(line.note, f"The {n:,} shared topics are taken as different ones")
        )
    if isinstance(found_difference, Refusal):
        return refuse_line(line, found_difference)
    tested = compare(found_difference)
    return fill_line(line, found_difference, None if isinstance(tested, Refusal) else tested.p_value)


def _system(one: Round, group: Ints, n_groups: int, topics: list[int] | None) -> SystemLabels:
    """Return the labels of a round as the formulas take them: a weight for every topic, matrix and grade.

    Self-normalised and linearised, as `analytics.services.analyses.context.Case.values`; `topics` orders the topics.
    """
    case, side = one.case, one.case.sides[0]
    lever = side.weights / case.draw_probability
    n_grades = case.gains.size
    cell = np.ravel_multi_index(
        (case.topic[case.label_item], group, case.label_grade), (case.n_topics, n_groups, n_grades)
    )
    per_label = lever[case.label_item] / np.bincount(case.label_item, minlength=lever.size)[case.label_item]
    sums = np.bincount(cell, per_label, case.n_topics * n_groups * n_grades)
    table = sums.reshape(case.n_topics, n_groups, n_grades) / lever.sum()
    of_topic = np.bincount(case.topic, lever, case.n_topics) / lever.sum()
    shares = table.sum(axis=0)
    values = side.total * (case.n_topics * (table - of_topic[:, None, None] * shares) + shares)
    ordered = values if topics is None else values[topics]
    topic, matrix, grade = (place.ravel() for place in np.indices(ordered.shape))
    return system_labels(topic, matrix, grade, ordered.ravel(), case.n_topics)
