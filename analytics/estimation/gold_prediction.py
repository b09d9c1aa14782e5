"""Predictions of gold gains before and after an item is judged, each fitted without the item's own fold.

`analytics.estimation.two_phase` is exactly unbiased for every g and h that do not depend on the item's own draw,
labels and audit. So the frame is cut into folds by a hash before anything is drawn (`sampling.prediction.folds`), and
everything that a fold's predictions know comes from other folds: h is fitted to the gold of their audited items, g to
the values that this fit gives all their judged items, and columns made from labels are centred and scaled over these.

The model is that of `sampling.prediction.cross_fitted`: a logistic regression of gain / largest gain around the prior,
with an intercept per topic, every coefficient shrunk towards 0. Nothing here is random.

Audit probabilities that are scaled over all judged items carry the draw of a fold to the audits of others, as one
common factor: nothing for a whole pool, and for a draw a bias of second order. Scaled fold by fold
(`sampling.batches.rescaled_by_fold`) there is none.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import ArrayLike

from analytics.estimation.checks import finite, integers
from analytics.estimation.estimate import Floats, Ints
from analytics.estimation.labels import compress
from analytics.estimation.samples import AuditSample, Bools, Frame, Labels
from sampling.leave_out import fits_without_each_fold, some_of_each_fold
from sampling.logistic import LogisticFit, LogisticProblem, minimise
from sampling.prediction import CALIBRATION_RIDGE, TOPIC_RIDGE, standardise

LABEL_RIDGE = 1.0  # a column of the labels has a coefficient of sd 1
PANEL_SHARE = 0.9  # of the judged items of other folds: who labelled so many has a column of their own
LARGEST_PANEL = 10
FARTHEST = 30.0  # beyond this logit a probability rounds to 1
CONSTANT = 1e-9  # standard deviation below which a column says nothing: what is left of it is rounding


@dataclass(frozen=True)
class GoldPrediction:
    """What `predicted_gold` returns, in units of gain.

    Attributes
    ----------
    before : array [frame]
        g, from what is known of an item before it is judged.
    after : array [open]
        h, with its labels too, of the judged items that were open to the audits, in their order.
    spread : array [open]
        s2, the predicted variance of the gold gain given h: not negative.
    """

    before: Floats
    after: Floats
    spread: Floats


@dataclass(frozen=True, eq=False)
class Foreknowledge:
    """What is known of every item of the frame before anything is judged; arrays are [frame].

    Attributes
    ----------
    features : array [frame, column]
        `sampling.prediction.rank_features`, imported scores; standardised here.
    ridge : array [column]
        How firmly each column's coefficient is held near 0.
    fold : int array
        `sampling.prediction.folds`.
    prior : array
        Within (0, 1): the share of the largest gain that is expected.

    Raises
    ------
    ValueError
        Arrays that do not fit together, or values outside these bounds.
    """

    features: Floats
    ridge: Floats
    fold: Ints
    prior: Floats

    def __post_init__(self) -> None:
        prior = finite("prior", self.prior)
        if prior.ndim != 1 or ((prior <= 0) | (prior >= 1)).any():
            raise ValueError(f"prior must be flat and within (0, 1), got shape {prior.shape}")
        features = np.asfortranarray(standardise(self.features))  # so that `columns` are no copies
        if features.shape[0] != prior.size:
            raise ValueError(f"features must have {prior.size} items, got {features.shape[0]}")
        fold = integers("fold", self.fold, 0)
        if fold.size != prior.size:
            raise ValueError(f"fold must have {prior.size} items, got {fold.size}")
        ridge = finite("ridge", self.ridge, (features.shape[1],))
        if (ridge <= 0).any():
            raise ValueError(f"ridge must be above 0, got {ridge.min()}")
        for name, array in {"features": features, "ridge": ridge, "fold": fold, "prior": prior}.items():
            object.__setattr__(self, name, array)

    @property
    def offset(self) -> Floats:
        """Return the logit of the prior."""
        return np.asarray(scipy.special.logit(self.prior), dtype=np.float64)

    @property
    def columns(self) -> list[Floats]:
        """Return [frame] columns: 1, the prior's logit around its mean, the features."""
        offset = self.offset
        return [np.ones(offset.size), offset - offset.mean(), *self.features.T]

    @property
    def ridges(self) -> Floats:
        """Return the penalties of `columns`."""
        return np.concatenate([[CALIBRATION_RIDGE, CALIBRATION_RIDGE], self.ridge])


# -- columns of the labels ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LabelColumns:
    """What the labels say of the judged items, before it is centred: `common` [column, item], and a panel's labels.

    `own` [assessor, item] is the mean grade that an assessor gave an item, NaN without one, of those assessors who
    labelled nearly all judged items outside some fold; `is_panel` [fold, assessor] says outside which.
    """

    common: Floats
    own: Floats
    is_panel: Bools

    def outside(self, fold: int, others: Bools) -> Floats:
        """Return [column, item], centred and scaled over the items of other folds, a mask; a gap is their mean."""
        return np.stack(
            [_scale_over(column, others) for column in (*self.common, *self.own[self.is_panel[fold]])]
        )


def label_columns(
    labels: Labels, bronze_class: Ints, part: Ints, n_folds: int, usable: Bools
) -> LabelColumns:
    """Return the columns of the labels: which they are depends on no label of the fold that they are made for.

    In this order: the share of the item's labels at each grade but the lowest, its bronze score, the logarithm of the
    number of its labels; and the own labels of each assessor who labelled 90 % of the judged items of other folds, the
    ten with most of them.

    Parameters
    ----------
    labels : Labels
        Of the judged items.
    bronze_class, part : int arrays [item]
        The campaign's bronze score in steps; the fold, from 0 to n_folds - 1.
    usable : bool array [item]
        Items that fits may use.
    """
    count = labels.counts
    share = labels.table()[:, 1:].T / count
    common = np.concatenate([share, [bronze_class.astype(np.float64), np.log(count)]])
    n_outside = usable.sum() - np.bincount(part[usable], minlength=n_folds)
    # Who gave fewer labels than any panel asks for is in none: mostly there is nobody else.
    has_many = np.bincount(labels.assessor, minlength=labels.n_assessors) >= PANEL_SHARE * n_outside.min()
    of_many = np.flatnonzero(has_many[labels.assessor])
    pair, place = compress(labels.item[of_many] * labels.n_assessors + labels.assessor[of_many])
    item, assessor = pair // labels.n_assessors, pair % labels.n_assessors
    grade = np.bincount(place, labels.grade[of_many], pair.size) / np.bincount(place, minlength=pair.size)
    cell = (part[item] * labels.n_assessors + assessor)[usable[item]]
    by_fold = np.bincount(cell, minlength=n_folds * labels.n_assessors).reshape(n_folds, -1)
    outside = by_fold.sum(axis=0) - by_fold
    order = np.argsort(-outside, axis=1, kind="stable")[:, :LARGEST_PANEL]
    is_panel = np.zeros(outside.shape, dtype=bool)
    np.put_along_axis(is_panel, order, True, axis=1)
    is_panel &= (outside >= PANEL_SHARE * n_outside[:, None]) & (outside > 0)
    members = np.flatnonzero(is_panel.any(axis=0))
    own = np.full((members.size, part.size), np.nan)
    row = np.full(labels.n_assessors, -1)
    row[members] = np.arange(members.size)
    kept = row[assessor] >= 0
    own[row[assessor[kept]], item[kept]] = grade[kept]
    return LabelColumns(common, own, is_panel[:, members])


def _scale_over(column: Floats, others: Bools) -> Floats:
    """Return the column with mean 0 and standard deviation 1 over some items; a gap, or a constant, becomes 0."""
    known = np.isfinite(column)
    seen = column[known & others]
    if not seen.size:
        return np.zeros(column.size)
    centred = np.where(known, column - seen.mean(), 0.0)
    spread = float(np.sqrt(np.square(centred[others]).mean()))
    return centred / spread if spread > CONSTANT else np.zeros(column.size)


# -- the two predictions --------------------------------------------------------------------------------------


def predicted_gold(
    frame: Frame,
    audit: AuditSample,
    gains: ArrayLike,
    *,
    labels: Labels,
    known: Foreknowledge,
    learnable: Bools | None = None,
    fitted_gold: Bools | None = None,
) -> GoldPrediction:
    """Return the predicted gold gain of every item of the frame, and of every judged one with its labels.

    h on fold k is fitted to the audited gold outside k, g on fold k to the values which this fit gives all judged items
    outside k: of a fold with more than 10,000 of them every nth. The variance s2 is h (G - h) if the only gains are 0
    and G, else a second fit's prediction of v^2 less h^2, at least 0. Without gold outside a fold both are the prior
    there. Where every item of the frame is judged for certain, g cancels and is not fitted: it is 0 then.

    Parameters
    ----------
    frame : Frame
    audit : AuditSample
        The items that were open to the audits; its bronze classes are the campaign's bronze score in steps.
    gains : array [grade]
        Not negative.
    labels : Labels
        Of all judged items.
    known : Foreknowledge
    learnable : bool array [judged], optional
        Items that fits may use; default, all. Those of a batch whose sizes followed from earlier labels carry what was
        learned, of all folds: they are predicted, and not learned from.
    fitted_gold : bool array [open], optional
        Audited items whose gold fits may use; default, all. An audit whose sizes followed from earlier ones has
        selected by what these brought in all folds: without its gold the estimate is exactly unbiased, with it to
        second order.

    Raises
    ------
    ValueError
        Input that does not fit together; a negative gain.
    """
    return GoldFits(
        frame, audit, labels=labels, known=known, learnable=learnable, fitted_gold=fitted_gold
    ).predict(gains)


class _After(NamedTuple):
    """h and s2 of every open item, [open]; `outside` [fold, learned] is what the fit without a fold says."""

    after: Floats
    spread: Floats
    outside: Floats


@dataclass(frozen=True)
class _Columns:
    """The columns of one fold's fit: those that are known of the frame, and those of the open items' labels."""

    of_frame: list[Floats]  # [frame] each
    here: Ints  # [open] in the frame
    of_labels: Floats  # [column, open]

    def of_items(self, items: Ints) -> Iterator[Floats]:
        """Yield column after column of these open items."""
        places = self.here[items]
        yield from (column[places] for column in self.of_frame)
        yield from (column[items] for column in self.of_labels)


class GoldFits:
    """What predictions of any gains are fitted with: made once for all gains. Arguments are those of `predicted_gold`.

    Fits are in shares of the largest gain.
    """

    def __init__(
        self,
        frame: Frame,
        audit: AuditSample,
        *,
        labels: Labels,
        known: Foreknowledge,
        learnable: Bools | None = None,
        fitted_gold: Bools | None = None,
    ) -> None:
        if known.prior.size != frame.topic_index.size:
            raise ValueError(f"prior must have {frame.topic_index.size} items, got {known.prior.size}")
        self.known, self.audit, self.opened = known, audit, frame.open_to(audit)
        self.usable = np.ones(audit.member.size, dtype=bool) if learnable is None else learnable[audit.member]
        self.seen = audit.audited if fitted_gold is None else audit.audited & fitted_gold
        folds, part = np.unique(known.fold, return_inverse=True)
        self.n_folds, self.part = folds.size, part  # [frame]
        self.here = self.opened.judged
        self.own = part[self.here]  # [open]
        self.columns, self.offset = known.columns, known.offset
        own_labels = labels.of_items(audit.member)
        self.labels = label_columns(own_labels, audit.bronze_class, self.own, self.n_folds, self.usable)
        self.g_cancels = self.here.size == part.size and bool((self.opened.draw_probability == 1).all())
        items = np.flatnonzero(self.usable)
        # From which open items g learns.
        self.learned = (
            items[:0] if self.g_cancels else items[some_of_each_fold(self.own[items], self.n_folds)]
        )

    def predict(self, gains: ArrayLike) -> GoldPrediction:
        """Return `predicted_gold` of these gains."""
        scale, gold = self.audit.gains(gains)
        largest = float(scale.max())
        if scale.min() < 0:
            raise ValueError(f"gains must be at least 0, got {scale.min()}")
        if largest == 0:
            return GoldPrediction(np.zeros(self.part.size), *np.zeros((2, self.own.size)))
        has_two_gains = bool(np.isin(scale, (0.0, largest)).all())
        found = self.after(gold / largest, has_two_gains)
        before = self.before(found.outside)
        return GoldPrediction(before * largest, found.after * largest, found.spread * largest**2)

    def items_of(self, fold: int) -> Ints:
        """Return the open items of a fold: those of which the fit without it speaks."""
        return np.flatnonzero(self.own == fold)

    def after(self, share: Floats, has_two_gains: bool) -> _After:
        """Return h, fitted to the share of audited items outside each fold, and s2."""
        after, square = np.empty((2, self.own.size))
        outside = np.empty((self.n_folds, self.learned.size))
        for k in range(self.n_folds):
            others, mine = (self.own != k) & self.usable, self.items_of(k)
            columns = _Columns(self.columns, self.here, self.labels.outside(k, others))
            rows = np.flatnonzero(others & self.seen)
            fit = self._fit(columns, rows, share[rows])
            after[mine] = self._predict(columns, fit, mine)
            outside[k] = self._predict(columns, fit, self.learned)
            if not has_two_gains:
                square[mine] = self._predict(columns, self._fit(columns, rows, share[rows] ** 2), mine)
        spread = after * (1 - after) if has_two_gains else np.maximum(0.0, square - after**2)
        return _After(after, spread, outside)

    def _fit(self, columns: _Columns, rows: Ints, share: Floats) -> LogisticFit:
        """Return the fit to these open items."""
        problem = LogisticProblem(
            np.stack(list(columns.of_items(rows))),
            share,
            self.offset[self.here[rows]],
            self.opened.judged_topic[rows],
            self.opened.n_topics,
            np.concatenate([self.known.ridges, np.full(len(columns.of_labels), LABEL_RIDGE)]),
            TOPIC_RIDGE,
        )
        return minimise(problem)

    def _predict(self, columns: _Columns, fit: LogisticFit, items: Ints) -> Floats:
        """Return what the fit says of these open items."""
        eta = self.offset[self.here[items]] + fit.effects[self.opened.judged_topic[items]]
        # One by one: not a bit may depend on how many items the own fold has.
        for column, coefficient in zip(columns.of_items(items), fit.coefficients, strict=True):
            eta += coefficient * column
        return _share(eta)

    def before(self, outside: Floats) -> Floats:
        """Return g [frame]; 0 where it cancels."""
        if self.g_cancels:
            return np.zeros(self.part.size)
        topic, rows = self.opened.topic_index, self.here[self.learned]
        problem = LogisticProblem(
            np.stack([column[rows] for column in self.columns]),
            outside,
            self.offset[rows],
            topic[rows],
            self.opened.n_topics,
            self.known.ridges,
            TOPIC_RIDGE,
        )
        coefficients, effects = fits_without_each_fold(problem, self.own[self.learned], self.n_folds)
        eta = self.offset + effects[self.part, topic]
        for column, of_fold in zip(self.columns, coefficients.T, strict=True):
            eta += of_fold[self.part] * column
        return _share(eta)


def _share(eta: Floats) -> Floats:
    return np.asarray(scipy.special.expit(np.clip(eta, -FARTHEST, FARTHEST)), dtype=np.float64)
