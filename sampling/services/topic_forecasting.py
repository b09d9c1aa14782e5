"""Forecasts of a budget where whole topics are drawn: half-widths under the values that the runs let one expect."""

import numpy as np

from sampling.forecasts import NORMAL_97_5
from sampling.measures.families import FloatArray
from sampling.services.topic_population import TopicPopulation


class TopicCurve:
    """Half-width against budget: with the design's chances, or with all topics equally likely ("even")."""

    def __init__(self, population: TopicPopulation, name: str, before: FloatArray) -> None:
        self.population, self.name, self.before = population, name, before
        self.cost = population.cost(population.is_needed | (before > 0))
        self.variance = np.square(population.share * population.spread)

    def chances(self, budget: float) -> FloatArray:
        """Return rho of every pooled topic."""
        if self.name == "even":
            return np.full(self.cost.size, min(1.0, budget / float(self.cost.sum())))
        return self.population.chances(self.before, budget)[0]

    def half_width(self, budget: float) -> float | None:
        """Return the half-width of the 95 % confidence interval; for several comparisons their root mean square."""
        rho = self.chances(budget)
        return float(NORMAL_97_5 * np.sqrt(((1 - rho) / rho * self.variance).sum()))

    def n_topics(self, budget: float) -> float:
        """Return how many topics are judged, in expectation."""
        return float(self.chances(budget).sum())
