"""Gold that was chosen elsewhere, recorded as an audit of the judged items, with what is declared of the choice."""

import numpy as np
from django.db import connection

from judging.judgment_tables import LEAST_CHANCE
from judging.models import Campaign, Item
from judging.services.errors import ImportRefused
from judging.services.imported_samples import ImportedGold
from sampling.arrays import FloatArray
from sampling.gold_samples import BY_TOPIC, PROBABILITIES, UNIFORM, ChoiceTest, uniform_choice_test
from sampling.models import Audit, AuditEntry, AuditTier
from sampling.services.auditing import complete_items
from sampling.services.layout import BATCH
from sampling.strategies import SIMPLE
from touchstone.models import record

NO_SEED = 0  # nothing was drawn here
MOST_USUAL_CHANCE = 0.5  # of what a sample's file does not list; at least `LEAST_CHANCE`, as in files of gold
LABELS = """
SELECT item_id, avg(grade)::float8, count(*) FROM (
  SELECT DISTINCT ON (j.item_id, j.assessor_id) j.item_id, j.grade
    FROM judging_judgment j JOIN judging_slot s ON s.id = j.slot_id
   WHERE s.campaign_id = %s AND s.purpose = 'judge' AND j.grade IS NOT NULL
   ORDER BY j.item_id, j.assessor_id, j.sequence DESC) newest
 GROUP BY item_id
"""


def record_gold_audit(gold: ImportedGold) -> Audit:
    """Record the items with gold as the selected ones of an audit, with the chance that the declaration gives each."""
    campaign = gold.campaign
    items = complete_items(campaign)
    topics = sorted({item.key.topic for item in items})
    place = {topic: number for number, topic in enumerate(topics)}
    topic_index = np.array([place[item.key.topic] for item in items], dtype=np.int64)
    has_gold = np.isin([str(item.pk) for item in items], [str(pk) for pk in gold.gold_items])
    declaration = BY_TOPIC if gold.by_topic else gold.chosen
    chance = _chances(gold, declaration, items, topic_index, has_gold)
    tested = _choice_test(campaign, declaration, items, topic_index, has_gold)
    made = Audit.objects.create(
        campaign=campaign,
        sequence=campaign.audits.count() + 1,
        strategy=SIMPLE,
        tier=AuditTier.GOLD,
        seed=NO_SEED,
        expected_in_total=float(chance.sum()),
        n_eligible=len(items),
        n_selected=int(has_gold.sum()),
        declaration=declaration,
        choice_p_value=tested.p_value if tested else None,
    )
    rows = zip(items, chance.tolist(), has_gold.tolist(), strict=True)
    AuditEntry.objects.bulk_create(
        (
            AuditEntry(audit=made, item=item, inclusion_probability=pi, selected=is_gold)
            for item, pi, is_gold in rows
            if pi > 0
        ),
        batch_size=BATCH,
    )
    about = {"sequence": made.sequence, "n_selected": made.n_selected, "tier": made.tier}
    record("declared an audit", campaign, actor=gold.actor, declaration=declaration, **about)
    return made


def _chances(
    gold: ImportedGold,
    declaration: str,
    items: list[Item],
    topic_index: np.ndarray,
    has_gold: np.ndarray,
) -> FloatArray:
    """Return the chance of gold of every judged item; ImportRefused where one has none."""
    if declaration == PROBABILITIES:
        missing = [item for item in items if item.pk not in gold.probability]
        if missing and not gold.lists_all:
            return _with_usual_chance(gold, items)
        if missing:
            first = missing[0].key
            raise ImportRefused(
                f"{len(missing):,} of {len(items):,} judged documents have no probability in the file, for example "
                f"{first.document} of topic {first.topic}: give each one a line, with an empty grade where it was not "
                "chosen"
            )
        return np.array([gold.probability[item.pk] for item in items], dtype=np.float64)
    if declaration == UNIFORM:
        return np.full(len(items), has_gold.mean())
    n = np.bincount(topic_index)
    share = (np.bincount(topic_index[has_gold], minlength=n.size) / n)[topic_index]
    without = sorted({item.key.topic for item, chance in zip(items, share, strict=True) if chance == 0})
    if without:
        raise ImportRefused(
            f"{len(without):,} topics have no gold grade, for example {without[0]}: by topic nothing is known of them"
        )
    return np.asarray(share)


def _with_usual_chance(gold: ImportedGold, items: list[Item]) -> FloatArray:
    """Return the recorded chance of every item in a sample's file, and one chance for all that it does not list.

    Values read the chances of chosen items alone. That of the others says that they could have been chosen, too, and
    how many were expected: as many as were chosen.
    """
    listed = np.array([gold.probability.get(item.pk, np.nan) for item in items], dtype=np.float64)
    is_listed = np.isfinite(listed)
    if (listed[is_listed] == 1).all():
        raise ImportRefused(
            f"{int((~is_listed).sum()):,} of {len(items):,} judged documents are not in the file, in which every "
            "probability is 1: these were not drawn from all, and nothing is known of the others"
        )
    usual = (is_listed.sum() - listed[is_listed].sum()) / (~is_listed).sum()
    return np.where(is_listed, listed, np.clip(usual, LEAST_CHANCE, MOST_USUAL_CHANCE))


def _choice_test(
    campaign: Campaign, declaration: str, items: list[Item], topic_index: np.ndarray, has_gold: np.ndarray
) -> ChoiceTest | None:
    if declaration == PROBABILITIES:
        return None
    with connection.cursor() as cursor:
        cursor.execute(LABELS, [campaign.pk])
        known = {item: (score, n) for item, score, n in cursor.fetchall()}
    about = np.array([known[item.pk] for item in items], dtype=np.float64)
    return uniform_choice_test(
        has_gold,
        bronze_score=about[:, 0],
        n_labels=about[:, 1],
        topic_index=topic_index,
        by_topic=declaration == BY_TOPIC,
    )
