"""What is known of a campaign before it is judged, and of what becomes of it in plays."""

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from sampling.arrays import FloatArray
from sampling.audit_plays import AuditPlay
from sampling.measures.sparse import SparseRuns


@dataclass(frozen=True, eq=False)
class CampaignPlan:
    """A campaign to come; the documents that can be drawn are `places` of the items of the tables.

    Attributes
    ----------
    judging : AuditPlay
        How these documents are drawn, judged and chosen for the audit.
    places : int array
        Of these documents among the items, rising.
    runs : SparseRuns [run, item]
        Weights w of the runs whose numbers are forecast.
    comparisons : tuple of (run, run or None)
        The numbers: of a run, or of a pair w_a - w_b.
    gains : array [grade]
        Of these numbers.
    ranks : SparseRuns [run, item]
        Of the pooled runs: what predictions are made from.
    depth : int
        Of the pool.
    prior : array
        Of these documents, within (0, 1): the prior of relevance that predictions start from.
    score : array or None
        Of these documents, imported scores, NaN where there is none.
    n_assessors : int
        Of the tier that judges; 0: nobody is named yet.
    strategy : str
        Of the planned audits.
    n_items : float or None
        How many documents these select in all. None: gold assessors judge, so every label is right.
    drawn : bool array or None
        Which of these documents were drawn, once that is known.
    """

    judging: AuditPlay
    places: NDArray[np.int64]
    runs: SparseRuns
    comparisons: tuple[tuple[int, int | None], ...]
    gains: FloatArray
    ranks: SparseRuns
    depth: int
    prior: FloatArray
    score: FloatArray | None
    n_assessors: int
    strategy: str
    n_items: float | None
    drawn: NDArray[np.bool_] | None = None


@dataclass(frozen=True)
class TopicSpread:
    """What the spread between topics adds to the variance of a number: between/n, and in words how that is known."""

    variance: float
    origin: str
    is_assumed: bool


@dataclass(frozen=True)
class PlayedWidths:
    """What the corrected number came to in plays of a campaign; of several comparisons root mean squares.

    Attributes
    ----------
    half_widths : tuple
        Of the intervals for these topics, of the plays that had one.
    variances : tuple
        Of the number, in these plays.
    drawing_share : float
        The mean share of the drawing in them.
    n_plays : int
        How many simulated campaigns had an interval; 0 where nothing was played.
    """

    half_widths: tuple[float, ...]
    variances: tuple[float, ...]
    drawing_share: float
    n_plays: int

    @property
    def median(self) -> float:
        return float(np.median(self.half_widths))

    @property
    def middle(self) -> tuple[float, float]:
        """Return between what the middle 80 % of the plays lie.

        >>> PlayedWidths((1.0, 2.0, 3.0, 4.0, 5.0, 6.0), (1.0,) * 6, 0.5, 6).middle
        (1.5, 5.5)
        """
        low, high = np.quantile(self.half_widths, (0.1, 0.9))
        return float(low), float(high)

    def over_topics(self, between: float, n_topics: int, rng: np.random.Generator) -> "PlayedWidths":
        """Return the intervals for topics like these: ``max(t S/sqrt(n), h)`` with n - 1 degrees of freedom.

        S^2/n is played as (between + V) times a chi-square variable over its degrees of freedom: that of topics whose
        values are normal.

        Parameters
        ----------
        between : float
            The spread between topics over n, as `TopicSpread`.
        n_topics : int
            At least 2.
        rng : numpy Generator
        """
        freedom = n_topics - 1
        variance = np.array(self.variances) + between
        # Where nothing was played one draw of the spread would be no forecast: its mean is taken.
        chance = rng.chisquare(freedom, variance.size) / freedom if self.n_plays else np.ones(variance.size)
        played = variance * chance
        widths = np.maximum(scipy.special.stdtrit(freedom, 0.975) * np.sqrt(played), self.half_widths)
        return PlayedWidths(
            tuple(widths.tolist()), tuple(variance.tolist()), self.drawing_share, self.n_plays
        )
