"""Which gold answers become checks: those that are left, in which order they are taken, and what their grades tell."""

import random
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from django.db import connection
from django.db.models import Count, Exists, OuterRef, QuerySet

from judging.check_grades import CHECK_GRADES, CheckGrades, shares_of_checks, told_by_grade
from judging.models import Campaign, Collection, GoldAnswer, Item, Topic, TrainingItem

Rows = dict[int, dict[int, list[int]]]  # by topic and grade: documents
# The median of an item's newest grades, between two the lower one: how many drawn items have which.
LABELS = """
SELECT grade, count(*)
  FROM (SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY g.grade) AS grade
          FROM (SELECT DISTINCT ON (j.item_id, j.assessor_id) j.item_id, j.grade
                  FROM judging_judgment j JOIN judging_slot s ON s.id = j.slot_id
                 WHERE s.campaign_id = %s AND s.purpose = 'judge'
                 ORDER BY j.item_id, j.assessor_id, j.sequence DESC) g
         GROUP BY g.item_id) label
 GROUP BY grade
"""
# Items that are checks now, by their gold answer; decoys have none.
CHECKS = """
SELECT a.grade, count(*)
  FROM (SELECT DISTINCT item_id FROM judging_slot WHERE campaign_id = %s AND purpose = 'check') c
  JOIN judging_item i ON i.id = c.item_id
  JOIN judging_goldanswer a ON a.topic_id = i.topic_id AND a.document_id = i.document_id AND a.grade IS NOT NULL
 GROUP BY a.grade
"""


# -- what is left, and in which order it is taken --------------------------------------------------------------


def gold_left(campaign: Campaign) -> QuerySet[GoldAnswer]:
    """Return the gold answers on the campaign's scale that may still become checks.

    Never those of items, nor of the training: what it shows with feedback is no secret any more.
    """
    mine = {"campaign": campaign, "topic": OuterRef("topic"), "document": OuterRef("document")}
    known = GoldAnswer.objects.filter(
        topic__collection=campaign.collection_id, grade__in=campaign.scale.values()
    )
    return known.exclude(Exists(Item.objects.filter(**mine))).exclude(
        Exists(TrainingItem.objects.filter(**mine))
    )


def gold_by_grade(campaign: Campaign, topics: Sequence[int]) -> Rows:
    """Return by topic (its key) and grade the documents that may become checks."""
    found: Rows = defaultdict(lambda: defaultdict(list))
    rows = gold_left(campaign).filter(topic__in=topics).order_by("topic_id", "document_id")
    for topic, document, grade in rows.values_list("topic_id", "document_id", "grade").iterator():
        if grade is not None:  # never so: those were withdrawn
            found[topic][grade].append(document)
    return found


def in_turn(by_grade: Mapping[int, Sequence[int]], rng: random.Random) -> list[int]:
    """Return the documents in random order, the grades in turn: no row of a confusion matrix stays empty."""
    columns = [rng.sample(documents, len(documents)) for documents in by_grade.values()]
    rng.shuffle(columns)
    turns = range(max(map(len, columns), default=0))
    return [column[turn] for turn in turns for column in columns if turn < len(column)]


def as_allotted(
    by_grade: Mapping[int, Sequence[int]],
    numbers: Mapping[int, int],
    is_pooled: Callable[[int], bool],
    rng: random.Random,
) -> list[int]:
    """Return first so many documents of each grade, then the others in turn; of a grade the pooled ones come first."""
    first: list[int] = []
    rest: dict[int, list[int]] = {}
    for grade, documents in by_grade.items():
        shuffled = rng.sample(documents, len(documents))
        shuffled.sort(key=lambda document: not is_pooled(document))
        n = numbers.get(grade, 0)
        first += shuffled[:n]
        rest[grade] = shuffled[n:]
    return first + in_turn(rest, rng)


def told_by_topic(campaign: Campaign, topics: Sequence[Topic]) -> dict[int, set[int]]:
    """Return by topic the documents whose grade somebody knows, on this scale or another: no decoy is one of them."""
    told: dict[int, set[int]] = defaultdict(set)
    for known in (
        GoldAnswer.objects.filter(topic__in=topics),
        TrainingItem.objects.filter(campaign=campaign, topic__in=topics),
    ):
        for topic, document in known.values_list("topic_id", "document_id").iterator():
            told[topic].add(document)
    return told


# -- what grades tell ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OrdinaryGrades:
    """Shares of grades among ordinary items, of `n` labels or gold answers; and which grades have any gold answer."""

    shares: list[float]
    n: int
    are_labels: bool
    has_gold: list[bool]


def gold_grades(collection: Collection, grades: Sequence[int] = ()) -> OrdinaryGrades | None:
    """Return the shares of these grades among the gold answers; None where there is no gold answer.

    Without grades they are those of the gold answers, from 0 to the highest.
    """
    answers = GoldAnswer.objects.filter(topic__collection=collection)
    of_gold = dict(answers.order_by().values_list("grade").annotate(n=Count("pk")))
    counts = [of_gold.get(grade, 0) for grade in grades or range(max(of_gold, default=0) + 1)]
    if not any(counts):
        return None
    return OrdinaryGrades(
        [n / sum(counts) for n in counts], sum(counts), are_labels=False, has_gold=[n > 0 for n in counts]
    )


def ordinary_grades(campaign: Campaign) -> OrdinaryGrades | None:
    """Return the grades that ordinary items have: of the labels so far, before there are any of the gold answers.

    None where there is no gold answer. It reads every judgment: for draws, not for pages.
    """
    grades = campaign.scale.values()
    of_gold = gold_grades(campaign.collection, grades)
    if of_gold is None:
        return None
    with connection.cursor() as cursor:
        cursor.execute(LABELS, [campaign.pk])
        said = dict(cursor.fetchall())
    labels = [said.get(grade, 0) for grade in grades]
    if not any(labels):
        return of_gold
    return replace(of_gold, shares=[n / sum(labels) for n in labels], n=sum(labels), are_labels=True)


def checks_by_grade(campaign: Campaign) -> list[int]:
    """Return how many checks there are of each grade. It reads every check: for draws, not for pages."""
    with connection.cursor() as cursor:
        cursor.execute(CHECKS, [campaign.pk])
        found = dict(cursor.fetchall())
    return [found.get(grade, 0) for grade in campaign.scale.values()]


@dataclass(frozen=True)
class CheckChoice:
    """What a way to choose the grades of checks would tell and measure."""

    way: CheckGrades
    told: float  # AUC for somebody who knows all right grades
    rarest: int  # the grade that is rarest among ordinary items and has gold
    n_rarest: int  # checks of this grade


def check_choices(known: OrdinaryGrades, n_checks: int) -> list[CheckChoice]:
    """Return every way, as it would be with so many checks."""
    with_gold = [grade for grade, has in enumerate(known.has_gold) if has]
    rarest = min(with_gold, key=lambda grade: (known.shares[grade], -grade))
    made = []
    for way in CHECK_GRADES:
        shares = shares_of_checks(known.shares, way.key, known.has_gold)
        told = told_by_grade(known.shares, shares)
        made.append(CheckChoice(way, told, rarest, round(shares[rarest] * n_checks)))
    return made
