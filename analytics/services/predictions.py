"""What judgments so far predict of every item of the frame, each item without its own label."""

from functools import cached_property

import numpy as np

from analytics.estimation.gold_prediction import Foreknowledge
from analytics.frames import CampaignArrays, Floats
from sampling.prediction import FEATURE_RIDGE, cross_fitted, rank_features

SCORE_RIDGE = 1.0


class Predictions:
    """The predictions of a campaign, by the gains of a measure; each is fitted once."""

    def __init__(self, arrays: CampaignArrays) -> None:
        self.arrays = arrays
        self._features: tuple[Floats, Floats] | None = None
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
        independently, so that labels of other folds would tell a little about an item's own selection.
        """
        key = tuple(gains.tolist())
        if key not in self._fitted:
            self._fitted[key] = self._fit(gains, relevant_grade)
        return self._fitted[key]

    def _fit(self, gains: Floats, relevant_grade: int) -> Floats:
        arrays = self.arrays
        prior = arrays.frame["prior"].to_numpy()
        usable = arrays.batch < arrays.n_learned
        if arrays.draw.selection_kind.with_replacement or not usable.any() or not gains.any():
            return np.asarray(prior * float(np.mean(gains[relevant_grade:])))
        label = arrays.labels.means(gains[arrays.label_grade]) / gains.max()
        features, ridge = self._evidence()
        share = cross_fitted(
            features=features,
            topic_index=arrays.topic_index,
            fold=arrays.frame["fold"].to_numpy().astype(np.int64),
            prior=prior,
            labelled=arrays.judged[usable],
            label=label[usable],
            feature_ridge=ridge,
        )
        return np.asarray(share * gains.max())

    def _evidence(self) -> tuple[Floats, Floats]:
        """Return what all runs say of each item, and the imported scores with which the draw was made.

        With them how firmly each column is held near 0: what a program said of the documents may count for much.
        """
        if self._features is None:
            parameters = self.arrays.draw.parameters
            # A run that came after the draw must not move the numbers of the others.
            pooled = [
                place for place, run in enumerate(self.arrays.runs) if run.run_id in parameters["pooled"]
            ]
            columns = [rank_features(self.arrays.returned.rows(pooled), parameters["depth"])]
            ridge = [np.full(columns[0].shape[1], FEATURE_RIDGE)]
            if "score" in self.arrays.frame.columns:
                score = self.arrays.frame["score"].to_numpy()
                missing = np.isnan(score)
                columns += [np.where(missing, 0.5, score)[:, None], missing[:, None].astype(float)]
                ridge.append(np.array([SCORE_RIDGE, FEATURE_RIDGE]))
            self._features = np.concatenate(columns, axis=1), np.concatenate(ridge)
        return self._features
