"""How the estimates of a release follow from whole topics: some were drawn, each judged completely.

Part of every release, beside verify.py, which calls it; NumPy is all it needs. A topic's value theta is known where it
was taken, with chance rho; f predicts it from the judged topics of the other folds; omega is its share of the traffic:

    value = sum omega f + sum_taken omega (theta - f)/rho      V = sum_taken (1 - rho) (omega (theta - f)/rho)^2

Where drawn topics are audited, each with chance a, theta is the value by gold, h predicts it from the labels, g without
them, both from the audits of the other folds:

    value = sum omega g + sum_drawn omega (h - g)/rho + sum_audited omega (theta - h)/(rho a)
"""

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np

if __package__:
    from analytics.releases.verify_complete import judged_gains
    from analytics.releases.verify_estimates import LEAST, REFUSED, degrees_of_freedom, interval
    from analytics.releases.verify_facts import Facts, Floats, Ints, Mask, Row
    from analytics.releases.verify_measures import COMPLETE, RATIOS, grade_gains, parts_of, rank_weights
    from analytics.releases.verify_ratios import denominator, labels_of, numerator, on_stairs
else:  # in a release, the files lie beside each other
    from verify_complete import judged_gains  # type: ignore
    from verify_estimates import LEAST, REFUSED, degrees_of_freedom, interval  # type: ignore
    from verify_facts import Facts, Floats, Ints, Mask, Row  # type: ignore
    from verify_measures import COMPLETE, RATIOS, grade_gains, parts_of, rank_weights  # type: ignore
    from verify_ratios import denominator, labels_of, numerator, on_stairs  # type: ignore

# Of a shift, and of the slopes of the plug-in value and of the runs' agreement.
RIDGES = np.array([10.0, 30.0, 30.0])
LEAST_DRAWING = 0.5  # of the drawing's predicted variance
Answer = Callable[[int, int | None], Row]


def answers_of_topics(facts: Facts, estimates: Row, measure: str, method: str) -> Answer | str:
    """Return the numbers of any run or pair, or why they are not computed again."""
    if method not in ("naive", "corrected", "true"):
        return lambda run, run_b: REFUSED  # they need documents that were drawn one by one
    if method == "true" and (facts.gold_answer < 0).any():
        return "true values: gold answers are not in the release"
    about = estimates["measures"][measure]
    if measure.startswith("micro") or (about["kind"] == "ratio" and RATIOS[about["family"]].alone):
        return lambda run, run_b: REFUSED
    of_method = _AuditedTopics if method == "corrected" and not facts.is_by_gold_judges else _Topics
    return of_method(facts, estimates["whole_topics"], measure, about, is_true=method == "true")


class _Topics:
    """One measure by one method, in every topic of the frame."""

    def __init__(self, facts: Facts, told: Row, measure: str, about: Row, *, is_true: bool) -> None:
        self.facts, self.kind, self.is_true, self.about = facts, about["kind"], is_true, about
        self.measure, self.fold = measure, np.array(told["fold"])
        self.agreement = np.array(told["agreement"], dtype=np.float64)
        self.never = (facts.first_probability == 0).all(axis=0)
        self.cutoff = parts_of(measure).cutoff or np.iinfo(np.int64).max
        self.listed = [self._first(place, rank) for place, rank in facts.returned]
        place = {topic: number for number, topic in enumerate(facts.topics)}
        self.present = np.array([place[topic] for topic in told["topics"]], dtype=np.int64)
        self.share = np.array(told["share"], dtype=np.float64)
        chance = np.zeros(len(facts.topics))
        np.maximum.at(chance, facts.topic, facts.first_probability.sum(axis=0))
        drawn = np.bincount(facts.topic[facts.drawn_in > 0], minlength=len(facts.topics))[self.present]
        needed = np.bincount(facts.topic[~self.never], minlength=len(facts.topics))[self.present]
        self.taken = np.ones(drawn.size, dtype=bool) if is_true else (drawn > 0) | (needed == 0)
        self.rho = np.ones(drawn.size) if is_true else np.where(needed == 0, 1.0, chance[self.present])
        self.incomplete = not is_true and facts.item.size < int((facts.drawn_in > 0).sum())
        no_gain = not np.array(about["gains"]).any() if self.kind == "ratio" else False
        self.refused = self.incomplete or no_gain
        if not self.refused:
            self.gold_grade = facts.gold_answer if is_true else None
            self.value = self._values()
            self.f = self.value if is_true else self._predictions(self._plug_in(told), self.value, self.taken)

    def _first(self, place: Ints, rank: Ints) -> tuple[Ints, Ints]:
        near = np.flatnonzero(rank <= self.cutoff)
        near = near[np.lexsort((rank[near], self.facts.topic[place[near]]))]
        return place[near], rank[near]

    # -- values of topics ----------------------------------------------------------------------------------------

    def _gain(self, of_grade: Floats) -> Floats:
        if self.gold_grade is None:
            gain = judged_gains(self.facts, of_grade)
            return np.where(np.isnan(gain), 0.0, gain)
        return np.where(self.gold_grade < 0, 0.0, of_grade[self.gold_grade])

    def _values(self) -> Floats:
        """Return [run, topic] the values by labels or gold; those of topics without them mean nothing."""
        facts, n, measure, about = self.facts, len(self.facts.topics), self.measure, self.about
        if self.kind == "ratio":
            return self._ratios(np.array(about["gains"]), about["family"])[:, self.present]
        if self.kind == "linear":
            gain = self._gain(grade_gains(measure, facts.gains, facts.relevant_grade))
            weight = rank_weights(measure)
            rows = [
                np.bincount(facts.topic[place], weight[rank - 1] * gain[place], n)
                for place, rank in self.listed
            ]
            return np.array(rows, dtype=np.float64)[:, self.present]
        name = parts_of(measure)
        form = COMPLETE[name.family]
        gain = self._gain(form.of_grades(name, facts.gains, facts.relevant_grade))
        values = np.zeros((len(self.listed), n))
        for row, (place, rank) in zip(values, self.listed, strict=True):
            topic = facts.topic[place]
            ends = np.searchsorted(topic, np.arange(n + 1))
            for number, (start, stop) in enumerate(pairwise(ends.tolist())):
                if stop > start:
                    gains = np.zeros(int(rank[start:stop].max()))
                    gains[rank[start:stop] - 1] = gain[place[start:stop]]
                    row[number] = form.of_topic(gains)
        return values[:, self.present]

    def _ratios(self, gains: Floats, family: str) -> Floats:
        facts, ratio = self.facts, RATIOS[family]
        if self.gold_grade is not None:
            known = np.where(self.gold_grade < 0, gains.argmin(), self.gold_grade)
            item, rows = np.arange(facts.topic.size), on_stairs(gains, known)
        else:
            number = np.bincount(facts.label_item, minlength=facts.item.size)
            reached = on_stairs(gains, facts.label_grade)
            item = facts.item
            rows = np.array([np.bincount(facts.label_item, row, item.size) for row in reached]) / number
        one: Floats = np.ones(item.size)
        seen: Mask = one > 0
        nothing = np.zeros(facts.topic.size)
        labels = labels_of(
            facts, gains, nothing, item, one, rows, seen, one, rows, has_audit=False, variances=None
        )
        below = denominator(
            labels, ratio, self.cutoff, labels.total[:, :, None].copy(), labels.found[:, :, None]
        )
        above = [
            numerator(labels, ratio, order, rank, labels.utility[order][:, None])
            for order, rank in self.listed
        ]
        return np.array([(gained / below)[:, 0] for gained in above])

    # -- predictions and the number ------------------------------------------------------------------------------

    def _plug_in(self, told: Row) -> Floats:
        known = told["plug_in"][self.measure]
        return np.array([known[run] for run in self.facts.runs], dtype=np.float64)

    def _predictions(self, before: Floats, value: Floats, taken: Mask) -> Floats:
        """Return f [run, topic]: fitted without the topic's fold, by least squares with coefficients held near 0."""
        f, fold = before.copy(), self.fold
        for run, plug_in in enumerate(before):
            x = _columns(plug_in, self.agreement, np.ones(plug_in.size, dtype=bool))
            for k in np.unique(fold):
                f[run, fold == k] += (_coefficients(x, value[run] - plug_in, taken & (fold != k)) @ x)[
                    fold == k
                ]
        return f

    def __call__(self, run: int, run_b: int | None) -> Row:
        runs = [run] if run_b is None else [run, run_b]
        if any((self.facts.outside[one] <= self.cutoff).any() for one in runs) or self._is_out_of_reach(runs):
            return REFUSED
        if run_b is not None and all(map(np.array_equal, self.listed[run], self.listed[run_b])):
            return interval(0.0, {}, math.inf, 0)
        if self.refused:
            return REFUSED
        return self._number(run, run_b)

    def _number(self, run: int, run_b: int | None) -> Row:
        theta, f = (rows[run] - (0 if run_b is None else rows[run_b]) for rows in (self.value, self.f))
        v = np.where(self.taken, self.share * (theta - f) / self.rho, 0.0)
        terms = (1 - self.rho) * v**2
        variance, n = float(terms.sum()), int(self.taken.sum())
        if (self.rho < 1).any() and (n < LEAST or variance == 0):
            return REFUSED
        df = degrees_of_freedom(2 * variance**2, float(((1 - self.rho) * terms**2).sum()))
        return interval(float(self.share @ f + v.sum()), {"drawing": variance}, df, n)

    def _is_out_of_reach(self, runs: list[int]) -> bool:
        """Return whether the number would need documents that nobody judges even where the topic is taken."""
        if self.kind == "ratio":
            return bool(self.never.any())
        return self._weighs_never(runs)

    def _weighs_never(self, runs: list[int]) -> bool:
        ranks = np.zeros((2, self.never.size), dtype=np.int64)
        for row, one in zip(ranks, runs, strict=False):
            row[self.listed[one][0]] = self.listed[one][1]
        return bool((ranks[0] != ranks[1])[self.never].any())


class _AuditedTopics(_Topics):
    """The same, corrected by the gold of whole topics, which audits took among those drawn."""

    def __init__(self, facts: Facts, told: Row, measure: str, about: Row, *, is_true: bool) -> None:
        super().__init__(facts, told, measure, about, is_true=is_true)
        n = len(facts.topics)
        drawn = np.bincount(facts.topic[facts.drawn_in > 0], minlength=n)[self.present]
        chance, at = np.ones(n), facts.topic[facts.item]
        np.minimum.at(chance, at, facts.audit_probability)
        has_gold = np.bincount(at[facts.audited], minlength=n)[self.present]
        certain = np.bincount(facts.topic[~self.never], minlength=n)[self.present] == 0
        self.a = np.where(self.taken, chance[self.present], 1.0)
        self.audited = certain | ((has_gold == drawn) & (drawn > 0))
        if (self.a == 0).any() or not (facts.audit_probability > 0).any():
            self.refused = True  # no audit is complete, or documents were drawn after it
        if self.refused:
            return
        labelled = np.where(self.taken, self.value, 0.0)
        self.gold_grade = np.full(facts.topic.size, -1)
        self.gold_grade[facts.item[facts.audited]] = facts.audit_grade[facts.audited]
        self.value = np.where(self.audited, self._values(), 0.0)
        plug_in = self._plug_in(told)
        self.h, self.f = labelled.copy(), plug_in.copy()
        for k in np.unique(self.fold):
            own, known = self.fold == k, self.taken & (self.fold != k)
            after = labelled.copy()
            for run, label in enumerate(labelled):
                if (known & self.audited).any():
                    x = _columns(label, self.agreement, known)
                    after[run] += _coefficients(x, self.value[run] - label, known & self.audited) @ x
            self.h[:, own] = after[:, own]
            for run, prior in enumerate(plug_in):
                x = _columns(prior, self.agreement, np.ones(prior.size, dtype=bool))
                self.f[run, own] += (_coefficients(x, after[run] - prior, known) @ x)[own]

    def _number(self, run: int, run_b: int | None) -> Row:
        theta, h, g = (
            rows[run] - (0 if run_b is None else rows[run_b]) for rows in (self.value, self.h, self.f)
        )
        w, rho, a, drawn, audited = self.share, self.rho, self.a, self.taken, self.audited
        h = np.where(audited & (a == 1), theta, h)
        added = np.where(drawn, (h - g) / rho, 0.0) + np.where(audited, (theta - h) / (rho * a), 0.0)
        square = np.where(drawn, (w / rho) ** 2, 0.0)
        kappa = square * (1 - rho) * (h - g) ** 2
        first = np.where(audited, square * (1 - rho) * ((theta - g) ** 2 - (h - g) ** 2) / a, 0.0)
        second = np.where(audited, square * (1 - a) / a**2 * (theta - h) ** 2, 0.0)
        drawing = max(float((kappa + first).sum()), LEAST_DRAWING * float(kappa.sum()))
        variance, n = drawing + float(second.sum()), int(audited.sum())
        if (rho * a < 1).any() and (n < LEAST or variance == 0):
            return REFUSED
        spread = float(((1 - rho) * kappa**2 + (1 - a) * (first + second) ** 2).sum())
        value = float(w @ (g + added))
        df = degrees_of_freedom(2 * variance**2, spread)
        return interval(value, {"drawing": drawing, "gold": float(second.sum())}, df, n)


def _columns(row: Floats, alike: Floats, known: Mask) -> Floats:
    """Return 1, the row and the agreement, standardised over `known`."""
    return np.stack([np.ones(row.size), _standardise(row, known), _standardise(alike, known)])


def _coefficients(x: Floats, y: Floats, some: Mask) -> Floats:
    return np.asarray(np.linalg.solve(x[:, some] @ x[:, some].T + np.diag(RIDGES), x[:, some] @ y[some]))


def _standardise(row: Floats, known: Mask) -> Floats:
    centred = row - row[known].mean()
    spread = float(np.sqrt((centred[known] ** 2).mean()))
    return centred / spread if spread > 1e-9 else np.zeros(row.size)
