"""The reported number from predicted gold gains, and these predictions fitted again from judgments and audit.

Part of every release, beside verify.py; NumPy is all it needs. g is the gain predicted of a pair before it is judged, h
with its judgments, each by a fit without the pair's own fold: otherwise the number would be biased, so that a
prediction which knew its fold must not go unnoticed.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

if __package__:
    from analytics.releases.verify_estimates import (
        LEAST,
        REFUSED,
        Method,
        Row,
        Target,
        WeightTable,
        always_valid,
        corrected_estimates,
        degrees_of_freedom,
        interval,
        poisson,
    )
    from analytics.releases.verify_facts import (
        Facts,
        FittedWith,
        Floats,
        GoldColumns,
        Ints,
        Mask,
        draw_probability,
        not_covered,
    )
else:  # in a release, the files lie beside each other
    from verify_estimates import (  # type: ignore
        LEAST,
        REFUSED,
        Method,
        Row,
        Target,
        WeightTable,
        always_valid,
        corrected_estimates,
        degrees_of_freedom,
        interval,
        poisson,
    )
    from verify_facts import (  # type: ignore
        Facts,
        FittedWith,
        Floats,
        GoldColumns,
        Ints,
        Mask,
        draw_probability,
        not_covered,
    )

LABEL_RIDGE, TOPIC_RIDGE, CALIBRATION_RIDGE = 1.0, 1.0, 0.3
PANEL_SHARE, LARGEST_PANEL = 0.9, 10
MOST_FITTED = 10_000  # of a fold: with more, g learns from every nth
TOLERANCE = 1e-8  # in the square of the largest gain


# -- the number ------------------------------------------------------------------------------------------------


def audit_estimates(w: WeightTable) -> Method:
    """Return the reported number: from predicted gold gains, in an older release from the classes of judgments.

    Where gold judges judged every document, it is from their judgments.
    """
    if w.facts.is_by_gold_judges:
        return gold_judges(w)
    return corrected_estimates(w) if w.gold is None else _from_predictions(w, w.gold)


def _from_predictions(w: WeightTable, gold: GoldColumns) -> Method:
    """Return ``sum_frame w g + sum_judged (w/pi) (h - g) + sum_audited (w/(pi a)) (v - h)`` with its interval.

    Variance: with q = (h - g)^2 + s2, kappa = w^2 (1-pi)/pi^2 q of each judged pair, and tau = w^2/pi^2 [(1-pi)
    ((v-g)^2 - q)/a + (1-a)/a^2 (v-h)^2] of each audited one, their sum; what comes from the drawing is at least half
    the sum of kappa. t with 2 V^2 / (sum (1-pi) kappa^2 + sum (1-a) tau^2) degrees of freedom, at least 1.
    """
    facts = w.facts
    is_open = facts.audit_probability > 0
    chance = draw_probability(facts, is_open)
    if not is_open.any() or not_covered(facts, is_open, chance):
        return lambda target: target.settled or REFUSED
    gain = np.where(facts.audited, w.gains[facts.audit_grade], 0.0)
    certain = facts.audited & (facts.audit_probability == 1)  # nothing is left to predict
    after, spread = np.where(certain, gain, gold.after), np.where(certain, 0.0, gold.spread)
    known = np.stack([is_open, facts.audited, gain, facts.audit_probability, after, spread], axis=1)
    columns = w.at_items(known).T
    judged, seen, (v, a, h, s2), g = columns[0] > 0, columns[1] > 0, columns[2:], w.prediction
    pi, a = np.where(judged, chance[w.place], 1.0), np.where(judged, a, 1.0)
    added = np.where(judged, (h - g + np.where(seen, (v - h) / a, 0.0)) / pi, 0.0)
    q = np.where(judged, (h - g) ** 2 + s2, 0.0)
    kappa = (1 - pi) / pi**2 * q
    first = np.where(seen, (1 - pi) / pi**2 * ((v - g) ** 2 - q) / a, 0.0)
    second = np.where(seen, (1 - a) * ((v - h) / (a * pi)) ** 2, 0.0)
    fourth = (1 - pi) * kappa**2 + (1 - a) * (first + second) ** 2

    def estimate(target: Target) -> Row:
        square = target.weights**2
        predicted, correction, audit = (float(square @ part) for part in (kappa, first, second))
        masks = (seen, judged, judged & ((pi < 1) | (a < 1)))
        n, n_items, n_uncertain = (int(np.count_nonzero(target.weights[some])) for some in masks)
        parts = {"drawing": max(predicted + correction, predicted / 2), "gold": audit}
        variance = sum(parts.values())
        if target.settled or n < LEAST or (variance == 0 and n_uncertain):
            return target.settled or REFUSED
        df = degrees_of_freedom(2 * variance**2, float(square**2 @ fourth))
        row = interval(float(target.known.sum() + target.weights @ added), parts, df, n)
        row = w.with_topics(row, target, target.weights * added)
        carried = {"n_positive": int(np.count_nonzero(target.weights[seen & (v > 0)]))}
        return row | always_valid(row, facts, max(n_items, n, 1)) | carried

    return estimate


def gold_judges(w: WeightTable) -> Method:
    """Return the reported number where gold judges judged every document: what `naive` is, with nothing to correct.

    ``sum over the frame of w f + sum over judged items of w (v - f) / pi``, v the mean gain of an item's judgments. The
    variance is that of drawing each pair by itself, `poisson`.
    """
    facts = w.facts
    everything = np.ones(facts.item.size, dtype=bool)
    chance = draw_probability(facts, everything)
    if not_covered(facts, everything, chance):
        return lambda target: target.settled or REFUSED
    number = np.bincount(facts.label_item, minlength=facts.item.size)
    gain = np.bincount(facts.label_item, w.gains[facts.label_grade], facts.item.size) / number
    judged = w.at_items(everything) > 0
    pi = np.where(judged, chance[w.place], 1.0)
    added = np.where(judged, (w.at_items(gain) - w.prediction) / pi, 0.0)
    positive = judged & (w.at_items(gain) > 0)

    def estimate(target: Target) -> Row:
        v = target.weights * added
        variance, df = poisson(v, pi)
        n, open_ones = (int(np.count_nonzero(target.weights[some])) for some in (judged, judged & (pi < 1)))
        if target.settled or n < LEAST or (variance == 0 and open_ones):
            return target.settled or REFUSED
        row = interval(float(target.known.sum() + v.sum()), {"drawing": variance, "gold": 0.0}, df, n)
        row = w.with_topics(row, target, v)
        carried = {"n_positive": int(np.count_nonzero(target.weights[positive]))}
        return row | always_valid(row, facts, int(np.count_nonzero(target.weights))) | carried

    return estimate


def check_shares(facts: Facts, estimates: Row, report: Any) -> None:
    """Compute the shares of a file that is all there is again, as judged and corrected: every pair is certain there."""
    for row in estimates.get("shares", []):
        where = f"estimates.json {row['measure']} {row['topic'] or 'in all'} {row['method']}"
        about = estimates["measures"][row["measure"]]
        if row["method"] not in ("naive", "corrected"):
            report.not_recomputed[f"shares by {row['method']}"] += 1
            continue
        again = _share(
            facts, facts.gold.get(about["prediction"].removeprefix("prediction_")), row, about["gains"]
        )
        report.compare("shares", f"{where}: refused", row["value"] is None, again is None)
        if row["value"] is not None and again is not None:
            names = ("value", "standard_error", "low", "high", "degrees_of_freedom")
            for name in names[: 1 if row["method"] == "naive" else None]:
                report.compare("shares", f"{where} {name}", row[name], again[name], 1e-9)


def _share(facts: Facts, gold: GoldColumns | None, row: Row, of_grade: list[float]) -> Row | None:
    """Return a share: the mean gain of the labels; or ``mean h + sum (v - h)/a / N`` with ``(1-a)/a^2 (v-h)^2 / N^2``.

    None where it is refused. Numbers and limits are cut at 0 and 1.
    """
    gains = np.array(of_grade, dtype=np.float64)
    here = facts.topic[facts.item] == facts.topics.index(row["topic"]) if row["topic"] else facts.item >= 0
    n_items = int(np.count_nonzero(here))
    if row["method"] == "naive":
        total = np.bincount(facts.label_item, gains[facts.label_grade], facts.item.size)
        mean = total / np.bincount(facts.label_item, minlength=facts.item.size)
        return {"value": float(mean[here].mean())}
    seen, a = facts.audited & here, facts.audit_probability
    if gold is None or np.count_nonzero(seen) < LEAST or not (a > 0).all():
        return None
    gain = gains[facts.audit_grade]
    after = np.where(facts.audited & (a == 1), gain, gold.after)
    surprise = np.where(seen, (gain - after) / a, 0.0)
    terms = np.where(seen, (1 - a) * surprise**2, 0.0) / n_items**2
    variance = float(terms.sum())
    if variance == 0 and (a[here] < 1).any():
        return None
    fourth = float((np.where(seen, 1 - a, 0.0) * terms**2).sum())
    df = degrees_of_freedom(2 * variance**2, fourth)
    value = float((after[here].sum() + surprise.sum()) / n_items)
    found = interval(value, {"gold": variance}, df, int(np.count_nonzero(seen)))
    return found | {name: min(1.0, max(0.0, found[name])) for name in ("value", "low", "high")}


# -- the predictions -------------------------------------------------------------------------------------------


def fitted_again(facts: Facts, known: FittedWith, gains: Floats) -> Iterator[tuple[int, Mask, Mask, Floats]]:
    """Yield every fold, its items that audits could take, its pairs; and of these anew: h, s2, and g of the pairs."""
    largest = float(gains.max())
    item = np.flatnonzero(facts.audit_probability > 0)
    place, own = facts.item[item], known.fold[facts.item[item]]
    usable = facts.drawn_in[place] - 1 < known.n_learned
    offset = np.log(known.prior / (1 - known.prior))
    fixed = np.concatenate([np.ones((1, offset.size)), [offset - offset.mean()], known.features.T])
    ridge = np.concatenate([[CALIBRATION_RIDGE] * 2, known.ridge])
    share, audited, topic = gains[facts.audit_grade[item]] / largest, facts.audited[item], facts.topic
    audited = audited & known.gold[place]
    n_topics = len(facts.topics)
    for fold in np.unique(known.fold).tolist():
        others = (own != fold) & usable
        labels = _label_columns(facts, item, others)
        columns = np.concatenate([fixed[:, place], labels])
        rows = np.flatnonzero(others & audited)
        ridges = np.concatenate([ridge, np.full(len(labels), LABEL_RIDGE)])
        h, square = (
            _predict(
                columns[:, rows], target[rows], offset[place[rows]], topic[place[rows]], n_topics, ridges,
                (columns, offset[place], topic[place]),
            )
            for target in (share, share**2)
        )  # fmt: skip
        two_gains = np.isin(gains, (0.0, largest)).all()
        spread = h * (1 - h) if two_gains else np.maximum(0.0, square - h**2)
        rows = _some_of_each_fold(own, others)
        learned = place[rows]
        g = _predict(
            fixed[:, learned], h[rows], offset[learned], topic[learned], n_topics, ridge, (fixed, offset, topic)
        )  # fmt: skip
        mine, pairs = own == fold, known.fold == fold
        items = np.zeros(facts.item.size, dtype=bool)
        items[item[mine]] = True
        yield (
            fold,
            items,
            pairs,
            np.concatenate([largest * h[mine], largest**2 * spread[mine], largest * g[pairs]]),
        )


def _some_of_each_fold(own: Ints, others: Mask) -> Ints:
    """Return the items that g learns from: of a fold with more than 10,000 every nth."""
    kept = np.zeros(own.size, dtype=bool)
    for fold in np.unique(own[others]).tolist():
        rows = np.flatnonzero(others & (own == fold))
        kept[rows[:: -(-rows.size // MOST_FITTED)]] = True
    return np.flatnonzero(kept)


def check_predictions(facts: Facts, estimates: Row, report: Any) -> None:
    """Fit the predictions of gold gains again, fold by fold without the fold, and compare them."""
    known = facts.fitted_with
    if known is None:
        return
    where, allowed = "estimates.json fitted_with n_learned", (known.fewest_learned, known.most_learned)
    report.compare("batches to learn from", where, known.n_learned, int(np.clip(known.n_learned, *allowed)))
    if more_than_a_panel(facts):
        report.not_recomputed["predictions of gold from more assessors than have a column"] += 1
        return
    gains = {one["prediction"]: one["gains"] for one in estimates["measures"].values() if "prediction" in one}
    for one in estimates["measures"].values():
        levels = np.unique([gain for gain in one["gains"] if gain > 0]).tolist()
        for level, name in zip(levels, one.get("stairs") or [], strict=False):
            gains[name] = [float(gain >= level) for gain in one["gains"]]
    is_repeated = estimates["draw"]["selection"] == "replacement"
    chance = draw_probability(facts, facts.audit_probability > 0)
    is_certain = facts.item.size == facts.topic.size and bool((chance == 1).all())
    for number, gold in facts.gold.items():
        if f"prediction_{number}" not in gains:
            report.different.append(f"items.jsonl gold {number}: no measure in estimates.json names it")
            continue
        of_gains = np.array(gains[f"prediction_{number}"], dtype=np.float64)
        if not of_gains.any():
            continue
        for fold, items, pairs, again in fitted_again(facts, known, of_gains):
            parts = [gold.after[items], gold.spread[items], gold.before[pairs]]
            if is_repeated or is_certain:  # g is the prior, or cancels
                again, parts = again[: again.size - int(pairs.sum())], parts[:2]
            recorded, where = np.concatenate(parts).tolist(), f"items.jsonl gold {number} fold {fold}"
            for one, other in zip(recorded, again.tolist(), strict=True):
                report.compare(
                    "predictions of gold", where, one, other, TOLERANCE * max(1.0, float(of_gains.max())) ** 2
                )


def more_than_a_panel(facts: Facts) -> bool:
    """Return whether so many assessors labelled nearly everything that which of them were chosen cannot be told."""
    pairs = np.unique(facts.label_item * len(facts.assessors) + facts.label_assessor)
    count = np.bincount(pairs % max(1, len(facts.assessors)))
    return bool((count >= facts.item.size / 2).sum() > LARGEST_PANEL)


def _label_columns(facts: Facts, item: Ints, others: Mask) -> Floats:
    """Return [column, item] of what the judgments say, each with mean 0 and standard deviation 1 over some items."""
    n, n_grades, n_assessors = facts.item.size, facts.gains.size, max(1, len(facts.assessors))
    counts = np.zeros((n_grades, n))
    np.add.at(counts, (facts.label_grade, facts.label_item), 1)
    counts = counts[:, item]
    whole = counts.sum(axis=0)
    pair = np.unique(facts.label_item * n_assessors + facts.label_assessor)
    counted = np.zeros(n, dtype=bool)
    counted[item[others]] = True
    n_own = np.bincount(pair[counted[pair // n_assessors]] % n_assessors, minlength=n_assessors)
    chosen = np.argsort(-n_own, kind="stable")[:LARGEST_PANEL]
    panel = np.sort(chosen[(n_own[chosen] >= PANEL_SHARE * others.sum()) & (n_own[chosen] > 0)])
    own = np.full((panel.size, n), np.nan)
    for row, assessor in zip(own, panel.tolist(), strict=True):
        at = facts.label_assessor == assessor
        number = np.bincount(facts.label_item[at], minlength=n)
        total = np.bincount(facts.label_item[at], facts.label_grade[at], n)
        row[number > 0] = total[number > 0] / number[number > 0]
    raw = [*(counts[1:] / whole), facts.bronze_class[item].astype(np.float64), np.log(whole), *own[:, item]]
    return np.stack([_scale_over(column, others) for column in raw])


def _scale_over(column: Floats, others: Mask) -> Floats:
    there = np.isfinite(column)
    if not (there & others).any():
        return np.zeros(column.size)
    centred = np.where(there, column - column[there & others].mean(), 0.0)
    spread = float(np.sqrt((centred[others] ** 2).mean()))
    return centred / spread if spread > 1e-9 else np.zeros(column.size)


def _predict(
    x: Floats, y: Floats, offset: Floats, group: Ints, n_groups: int, ridge: Floats, at: tuple[Floats, Floats, Ints]
) -> Floats:  # fmt: skip
    """Return the mean at other columns, offset and groups, of the penalised logistic regression of y on x."""
    b, a = np.zeros(ridge.size), np.zeros(n_groups)

    def loss(b: Floats, a: Floats) -> float:
        eta = offset + b @ x + a[group]
        penalty = ridge @ b**2 + TOPIC_RIDGE * (a @ a)
        return float((np.logaddexp(0.0, eta) - y * eta).sum() + penalty / 2)

    for _ in range(100):
        mean = 1 / (1 + np.exp(-(offset + b @ x + a[group])))
        curve = mean * (1 - mean)
        by_b = x @ (mean - y) + ridge * b
        by_a = np.bincount(group, mean - y, n_groups) + TOPIC_RIDGE * a
        if max(np.abs(by_b).max(), np.abs(by_a).max()) <= 1e-11 * (1 + y.size):
            break
        own = np.bincount(group, curve, n_groups) + TOPIC_RIDGE
        cross = np.stack([np.bincount(group, row * curve, n_groups) for row in x])
        hessian = (x * curve) @ x.T + np.diag(ridge) - (cross / own) @ cross.T
        step_b = np.linalg.solve(hessian, by_b - cross @ (by_a / own))
        step_a = (by_a - step_b @ cross) / own
        before, length = loss(b, a), 1.0
        while loss(b - length * step_b, a - length * step_a) > before + 1e-12 * abs(before) and length > 1e-9:
            length /= 2
        b, a = b - length * step_b, a - length * step_a
    columns, offset_there, group_there = at
    eta = np.clip(offset_there + b @ columns + a[group_there], -30, 30)
    return np.asarray(1 / (1 + np.exp(-eta)))
