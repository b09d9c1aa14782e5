"""The topics of a design that draws whole topics: shares of the traffic, documents to judge, and spreads of values."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from judging.models import Campaign
from sampling.arrays import IndexArray
from sampling.measures.families import FloatArray
from sampling.questions import Design
from sampling.services.population import DrawRefused, PooledPairs, pairs_of_design
from sampling.sizes import IdenticalSystemsError
from sampling.topic_runs import TopicRuns, topic_outlook, with_floor
from sampling.whole_topics import topic_probabilities, traffic_shares

SAME = "the runs rank alike inside the cutoff: every difference is exactly 0, there is nothing to judge"


@dataclass(frozen=True)
class TopicPopulation(PooledPairs):
    """The pooled pairs of a design that draws whole topics, and what each pooled topic is worth and costs.

    Topics are those of the pool, in its order: where no run returns a document every value is 0, and known.
    """

    is_needed: np.ndarray  # [frame], to be judged where the topic is taken
    share: FloatArray  # [pooled topic], of the traffic; the shares of all topics of the collection sum to 1
    spread: FloatArray  # [pooled topic]

    def cost(self, is_needed: np.ndarray) -> IndexArray:
        """Return by pooled topic how many documents are judged."""
        topic = self.pooled.topic_index[is_needed]
        return np.bincount(topic, minlength=self.share.size).astype(np.int64)

    def chances(self, earlier: FloatArray, budget: float) -> tuple[FloatArray, FloatArray]:
        """Return rho by pooled topic, and pi of every pair, given the pairs' chances so far.

        What an earlier batch made judged is judged in every topic: batches are nested.
        """
        is_needed = self.is_needed | (earlier > 0)
        topic, n_topics = self.pooled.topic_index, self.share.size
        before = np.zeros(n_topics)
        np.maximum.at(before, topic, earlier)
        cost = self.cost(is_needed)
        there = cost > 0
        rho = np.ones(n_topics)
        rho[there] = topic_probabilities(
            self.share[there], self.spread[there], cost[there], budget, before[there]
        )
        return rho, np.where(is_needed, rho[topic], 0.0)


def topic_population_of(campaign: Campaign, design: Design) -> TopicPopulation:
    """Return the topics of the design, or refuse it by name."""
    common: dict[str, Any] = pairs_of_design(campaign, design)
    pooled, measure, rows = common["pooled"], common["measure"], common["rows"]
    rows_of_topics = campaign.collection.topics.values_list("topic_id", "weight")
    weights = {topic_id: weight for topic_id, weight in rows_of_topics if weight is not None}
    names: list[str] = common["topics"]
    runs = TopicRuns.of(pooled.returned, pooled.topic_index, pooled.topic_ids.size)
    try:
        share = traffic_shares(names, weights)
        outlook = topic_outlook(runs, measure, common["design_prior"], common["relevant_gain"])
    except ValueError as error:
        raise DrawRefused(str(error)) from error
    spread = outlook.spread(design.question, rows)
    if not spread.any():
        raise DrawRefused(SAME) from IdenticalSystemsError(SAME)
    place = {topic_id: index for index, topic_id in enumerate(names)}
    return TopicPopulation(
        is_needed=runs.is_needed(measure, rows),
        share=share[[place[topic_id] for topic_id in pooled.topic_ids]],
        spread=with_floor(spread),
        **common,
    )
