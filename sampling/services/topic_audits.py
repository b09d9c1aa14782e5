"""Audits of whole topics: what they can select, read from the rows, and with which strategy a campaign is audited."""

import numpy as np
import polars as pl
from django.db.models import Exists, OuterRef, Q, QuerySet

from judging.kinds import ITEM_COLUMNS
from judging.models import Campaign, Item
from sampling.audit_plan import Auditable
from sampling.design_options import WHOLE_TOPICS
from sampling.frames import item_probabilities, load_frame, returned_in_frame, tags_of_then
from sampling.judged import Judged, relevance_given_grade
from sampling.measures.families import FloatArray, grade_gains
from sampling.measures.registry import parse_measure
from sampling.models import AuditSchedule, Draw
from sampling.selections import NOT_BY_DOCUMENT
from sampling.services.auditable import (
    AuditRefused,
    asked_runs,
    bronze_grades,
    check_counts,
    earlier_probabilities,
)
from sampling.strategies import strategies_for, strategy_of
from sampling.topic_runs import TopicRuns, topic_outlook, with_floor

NEEDS_TOPICS = "this strategy audits whole topics, which need a draw of whole topics"


def draws_of_topics() -> QuerySet[Draw]:
    """Return the draws of whole topics."""
    return Draw.objects.filter(parameters__topic_selection=WHOLE_TOPICS)


def refuse_strategy(campaign: Campaign, strategy: str) -> None:
    """Raise AuditRefused where the strategy does not fit the campaign's draw; before a draw any may be planned."""
    if not campaign.draws.exists():
        return
    has_topics = draws_of_topics().filter(campaign=campaign).exists()
    if strategy_of(strategy).takes_topics != has_topics:
        labels = " or ".join(f"“{one.label}”" for one in strategies_for(has_whole_topics=has_topics)[:3])
        raise AuditRefused(
            f"{NOT_BY_DOCUMENT if has_topics else NEEDS_TOPICS}. Choose a strategy that fits, such as {labels}"
        )


def has_unfit_plan(campaign: Campaign, schedule: AuditSchedule | None) -> bool:
    """Return whether the schedule is active and does nothing, as its strategy does not fit the draw."""
    if schedule is None or schedule.pk is None or not schedule.is_active:
        return False
    return not fitting_schedules(AuditSchedule.objects.filter(pk=schedule.pk)).exists()


def fitting_schedules(schedules: QuerySet[AuditSchedule]) -> QuerySet[AuditSchedule]:
    """Return the schedules without those whose strategy does not fit the draw: a plan from before it does nothing."""
    has_topics = Exists(draws_of_topics().filter(campaign=OuterRef("campaign")))
    by_topic = Q(strategy__in=[one.key for one in strategies_for(has_whole_topics=True)])
    has_draw = Exists(Draw.objects.filter(campaign=OuterRef("campaign")))
    return schedules.exclude(has_topics, ~by_topic).exclude(has_draw, ~has_topics, by_topic)


def auditable_topics(campaign: Campaign, newest: Draw, items: list[Item], tier: str) -> Auditable:
    """Return the input of a strategy that takes whole topics; `items` are all that was drawn, with their judgments.

    The size of a topic is omega s / sqrt(cost), divided by its chance in the draw: s is the predicted spread of the
    measure's value in what the question compares, in worlds in which a document is relevant with its probability given
    its bronze grade and the gold checks; cost counts the documents drawn in it, whether gold is known of them or not:
    of which topics an audit brought gold, was chance, and later probabilities must not know it.
    """
    place = {item.pk: index for index, item in enumerate(items)}
    pairs = pl.DataFrame([item.key[:2] for item in items], schema=list(ITEM_COLUMNS), orient="row")
    known = pairs.join(load_frame(newest), on=list(ITEM_COLUMNS), how="left", maintain_order="left")
    _, topic = np.unique(pairs["topic_id"].to_numpy(), return_inverse=True)
    n_topics = int(topic.max()) + 1
    drawn = item_probabilities(campaign)
    chance = np.array([drawn[item.pk] for item in items])
    grade = bronze_grades(campaign, place)
    relevance = relevance_given_grade(
        known["prior"].to_numpy(), grade, check_counts(campaign), campaign.scale.relevant_grade
    )
    spread = _spread(campaign, newest, pairs, topic, relevance)
    cost = np.bincount(topic)
    size = known["topic_share"].to_numpy() * (spread / np.sqrt(cost))[topic] / chance
    earlier = np.zeros(n_topics)
    np.maximum.at(earlier, topic, earlier_probabilities(campaign, tier, place))
    judged = Judged(
        influence=size,
        inclusion_probability=chance,
        topic_index=topic.astype(np.int64),
        bronze_grade=grade,
        error_variance=np.zeros(len(items)),
        n_grades=len(campaign.scale.values()),
        topic_size=size,
    )
    return Auditable(judged, earlier[topic])


def _spread(
    campaign: Campaign, newest: Draw, pairs: pl.DataFrame, topic: np.ndarray, relevance: FloatArray
) -> FloatArray:
    """Return by topic the predicted spread of what the draw's question compares."""
    runs = list(campaign.collection.runs.all())
    measure = parse_measure(newest.parameters["measure"])
    returned = returned_in_frame(pairs, runs, newest.parameters["depth"])
    ranks = TopicRuns.of(returned, topic.astype(np.int64), int(topic.max()) + 1)
    relevant = measure.relevant_grade or campaign.scale.relevant_grade
    gains = grade_gains(measure, campaign.scale.gains(), relevant)
    outlook = topic_outlook(ranks, measure, relevance, float(gains[relevant:].mean()))
    spread = outlook.spread(newest.question, asked_runs(newest, tags_of_then(newest, runs)))
    return with_floor(spread) if spread.any() else np.ones(spread.size)
