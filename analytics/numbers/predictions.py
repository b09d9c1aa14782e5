"""What judgments so far predict of every item of the frame, each item without its own label."""

from functools import cached_property

import numpy as np

from analytics.estimation.gold_prediction import Foreknowledge
from analytics.numbers.arrays import Arrays, Floats
from sampling.components import RunComponents, cross_fitted_with_components, run_components
from sampling.prediction import item_evidence


class Predictions:
    """The predictions of a campaign, by the gains of a measure; each is fitted once."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        self._features: tuple[Floats, Floats] | None = None
        self._components: RunComponents | None = None
        self._fitted: dict[tuple[float, ...], Floats] = {}

    @cached_property
    def foreknowledge(self) -> Foreknowledge:
        """Return what is known of every pair before anything is judged."""
        frame = self.arrays.frame
        features, ridge = self._evidence()
        return Foreknowledge(
            features, ridge, frame["fold"].to_numpy().astype(np.int64), frame["prior"].to_numpy()
        )

    def of_gains(self, gains: Floats, relevant_grade: int) -> Floats:
        """Return f [frame]: the predicted gain of every item, cross-fitted.

        Draws with replacement keep the prior that was there before anything was judged: their items are not selected
        independently, so that labels of other folds would tell a little about an item's own selection. Those of a
        foreign draw are 0: what was not drawn is not in its frame. Where whole topics were drawn the topics' values are
        predicted, not the items': the prior stays.
        """
        key = tuple(gains.tolist())
        if key not in self._fitted:
            self._fitted[key] = self._fit(gains, relevant_grade)
        return self._fitted[key]

    def _fit(self, gains: Floats, relevant_grade: int) -> Floats:
        arrays = self.arrays
        if arrays.is_foreign:
            return np.zeros(arrays.frame.height)
        prior = arrays.frame["prior"].to_numpy()
        usable = arrays.batch < arrays.n_learned
        # Without pooled runs there is nothing to learn from: a file that is all there is needs no prediction.
        is_known = bool(arrays.draw.parameters["pooled"])
        is_given = arrays.draw.selection_kind.with_replacement or arrays.has_whole_topics
        if is_given or not is_known or not usable.any() or not gains.any():
            return np.asarray(prior * float(np.mean(gains[relevant_grade:])))
        label = arrays.labels.means(gains[arrays.label_grade]) / gains.max()
        features, ridge = self._evidence()
        found = cross_fitted_with_components(
            components=self._run_components(),
            features=features,
            topic_index=arrays.topic_index,
            fold=arrays.frame["fold"].to_numpy().astype(np.int64),
            prior=prior,
            labelled=arrays.judged[usable],
            label=label[usable],
            feature_ridge=ridge,
        )
        return np.asarray(found.share * gains.max())

    def _run_components(self) -> RunComponents:
        if self._components is None:
            self._components = run_components(self.arrays.ranks_of_pool)
        return self._components

    def _evidence(self) -> tuple[Floats, Floats]:
        """Return what all runs say of each item, and the imported scores with which the draw was made."""
        if self._features is None:
            depth = self.arrays.draw.parameters["depth"]
            pool = self.arrays.ranks_of_pool
            scores = "score" in self.arrays.frame.columns
            score = self.arrays.frame["score"].to_numpy() if scores else None
            self._features = item_evidence(pool, depth, score)
        return self._features
