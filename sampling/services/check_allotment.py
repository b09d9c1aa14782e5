"""Of which grades the checks of a batch are: allotted with the draw, so that all of them follow one distribution."""

import random
from typing import Any

import numpy as np
import polars as pl

from judging.check_grades import IN_TURN, TopicGold, allot_checks, shares_of_checks, told_by_grade
from judging.kinds import ITEM_COLUMNS
from judging.models import Campaign
from judging.scheduler import plan_checks
from judging.services.check_gold import checks_by_grade, gold_left, ordinary_grades
from sampling.services.population import PooledPairs


def allotted_grades(
    population: PooledPairs, drawn_in: np.ndarray, batch: int, seed: int
) -> dict[str, Any] | None:
    """Return how many checks of which grade each topic of the batch gets; None where they are taken in turn.

    `drawn_in` has for each pair of the frame the batch that drew it first, or 0. The answer is recorded with the draw:
    topics are laid out by whichever worker, in any order, while labels come in.
    """
    campaign = population.campaign
    campaign.refresh_from_db(fields=["check_grades", "gold_check_rate"])
    if campaign.check_grades == IN_TURN.key or not campaign.gold_check_rate:
        return None
    known = ordinary_grades(campaign)
    if known is None:
        return None
    drawn = population.pairs.with_columns(drawn_in=pl.Series(drawn_in, dtype=pl.Int64))
    n_new = _new_items(drawn, batch)
    names = sorted(n_new)
    random.Random(f"{seed} checks of batch {batch}").shuffle(names)
    gold = _gold_of_topics(campaign, drawn)
    none = ([0] * len(known.shares), [0] * len(known.shares))
    topics = [_topic_gold(campaign, n_new[name], *gold.get(name, none)) for name in names]
    shares = shares_of_checks(known.shares, campaign.check_grades, known.has_gold)
    before = checks_by_grade(campaign)
    allotted = allot_checks(topics, shares, before)
    return {
        "choice": campaign.check_grades,
        "ordinary": known.shares,
        "ordinary_of": "labels" if known.are_labels else "gold",
        "shares": shares,
        "auc": told_by_grade(known.shares, shares),
        "checks": [sum(column) for column in zip(before, *allotted, strict=True)],
        "numbers": {name: own for name, own in sorted(zip(names, allotted, strict=True)) if any(own)},
    }


def _new_items(drawn: pl.DataFrame, batch: int) -> dict[str, int]:
    new = drawn.filter(pl.col("drawn_in") == batch).group_by("topic_id").len()
    return {name: int(n) for name, n in new.iter_rows()}


def _gold_of_topics(campaign: Campaign, drawn: pl.DataFrame) -> dict[str, tuple[list[int], list[int]]]:
    """Return by topic the gold that may become checks, by grade: of pooled documents, and of others."""
    place = {grade: index for index, grade in enumerate(campaign.scale.values())}
    rows = list(gold_left(campaign).values_list("topic__topic_id", "document__doc_id", "grade").iterator())
    answers = pl.DataFrame(
        rows, schema={"topic_id": pl.String, "doc_id": pl.String, "grade": pl.Int64}, orient="row"
    )
    joined = answers.join(drawn.select(*ITEM_COLUMNS, "drawn_in"), on=list(ITEM_COLUMNS), how="left")
    counts = joined.group_by("topic_id", "grade", "drawn_in").len()
    found: dict[str, tuple[list[int], list[int]]] = {}
    for name, grade, drawn_in, n in counts.iter_rows():
        pooled, unpooled = found.setdefault(name, ([0] * len(place), [0] * len(place)))
        if drawn_in is None:
            unpooled[place[grade]] += n
        elif drawn_in == 0:
            pooled[place[grade]] += n
    return found


def _topic_gold(campaign: Campaign, n_new: int, pooled: list[int], unpooled: list[int]) -> TopicGold:
    plan = plan_checks(
        n_items=n_new,
        judgments_per_item=campaign.judgments_per_item,
        gold_rate=campaign.gold_check_rate,
        n_gold=sum(pooled) + sum(unpooled),
        max_exposures=campaign.gold_check_exposures,
        decoys_per_check=campaign.decoys_per_check,
        n_undrawn=0,
    )
    return TopicGold(plan.n_checks, pooled, unpooled)
