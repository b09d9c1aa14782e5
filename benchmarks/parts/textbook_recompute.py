"""A recomputation as a textbook has it, beside which benchmarks/recompute.py sets the product's.

fetchall(), dictionaries by item, a dense weight for every item, run by run and pair by pair, rows saved as objects.
"""

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

EVERY = 10  # topics: one of so many

ROWS = """
SELECT t.topic_id, d.doc_id, j.assessor_id, j.sequence, j.grade, s.purpose, e.inclusion_probability
  FROM judging_judgment j JOIN judging_slot s ON s.id = j.slot_id JOIN judging_item i ON i.id = j.item_id
  JOIN judging_topic t ON t.id = i.topic_id JOIN judging_document d ON d.id = i.document_id
  JOIN sampling_drawentry e ON e.item_id = i.id
 WHERE i.campaign_id = %s AND t.id %% %s = 0 ORDER BY j.id
"""
AUDITED = """
SELECT t.topic_id, d.doc_id, max(e.inclusion_probability) FROM sampling_auditentry e
  JOIN judging_item i ON i.id = e.item_id JOIN judging_topic t ON t.id = i.topic_id
  JOIN judging_document d ON d.id = i.document_id
 WHERE i.campaign_id = %s AND t.id %% %s = 0 GROUP BY 1, 2
"""


def recompute(campaign: Any, clock: Any) -> dict[str, Any]:
    """Recompute the naive and the corrected number of every run and pair on every tenth topic, and time it."""
    from django.db import connection

    clock.start()
    with connection.cursor() as cursor:
        cursor.execute(ROWS, [campaign.pk, EVERY])
        rows = cursor.fetchall()
        cursor.execute(AUDITED, [campaign.pk, EVERY])
        audit_probability = {row[:2]: row[2] for row in cursor.fetchall()}
    newest: dict[tuple, tuple] = {}
    chance: dict[tuple, float] = {}
    for topic, document, assessor, sequence, grade, purpose, probability in rows:
        key = topic, document, assessor
        if key not in newest or sequence > newest[key][0]:
            newest[key] = sequence, grade, purpose
        chance[topic, document] = probability
    grades: dict[tuple, list[int]] = defaultdict(list)
    gold: dict[tuple, int] = {}
    for (topic, document, _), (_, grade, purpose) in newest.items():
        if purpose == "audit":
            gold[topic, document] = grade
        else:
            grades[topic, document].append(grade)
    weights = _dense_weights(campaign, list(grades))
    reading = clock.seconds()
    clock.start()
    values = _textbook(weights, grades, gold, chance, audit_probability)
    estimating = clock.seconds()
    clock.start()
    _save(campaign, values)
    return {
        "judgments": len(rows),
        "items": len(grades),
        "seconds": {"reading": reading, "estimating": estimating, "storing": clock.seconds()},
    }


def _dense_weights(campaign: Any, items: list[tuple]) -> dict[str, np.ndarray]:
    """Return by measure w[run, item] from the run files."""
    from judging.rankings import rankings_frame, read_rankings

    place = {item: index for index, item in enumerate(items)}
    n_topics = campaign.collection.topics.count()
    runs = list(campaign.collection.runs.all())
    weights = {measure: np.zeros((len(runs), len(items))) for measure in ("P@10", "DCG@10")}
    for row, run in enumerate(runs):
        frame = rankings_frame(read_rankings(Path(run.rankings.path)))
        for topic, document, rank in frame.select("topic_id", "doc_id", "rank").iter_rows():
            index = place.get((topic, document))
            if index is not None and rank <= 10:
                weights["P@10"][row, index] = 0.1 / n_topics
                weights["DCG@10"][row, index] = 1 / np.log2(rank + 1) / n_topics
    return weights


def _textbook(
    weights: dict[str, np.ndarray], grades: dict, gold: dict, chance: dict, audit_probability: dict
) -> list[tuple[str, int, int | None, str, float, float]]:
    """Return measure, run, second run, method, value and standard error of every run and pair."""
    items = list(grades)
    pi = np.array([chance[item] for item in items])
    is_audited = np.array([item in gold for item in items])
    audit_pi = np.array([audit_probability[item] for item in items])
    estimates = []
    for measure, table in weights.items():
        gain = {grade: float(grade >= 1) if measure == "P@10" else float(grade) for grade in range(4)}
        utility = np.array([np.mean([gain[grade] for grade in grades[item]]) for item in items])
        true = np.array([gain[gold[item]] if item in gold else 0.0 for item in items])
        error = np.where(is_audited, true - utility, 0.0)
        spread = float(error[is_audited].var())
        for run in range(len(table)):
            for run_b in [None, *range(run + 1, len(table))]:
                w = (table[run] if run_b is None else table[run] - table[run_b]) / pi
                naive, drawing = float((w * utility).sum()), float((w**2 * (1 - pi) * utility**2).sum())
                corrected = naive + float((w * error / audit_pi).sum())
                design = float((w**2 * (1 - audit_pi) / audit_pi**2 * error**2).sum())
                pooled = float((w**2 * (1 / audit_pi - 1)).sum()) * spread
                estimates.append((measure, run, run_b, "naive", naive, drawing**0.5))
                variance = drawing + max(design, pooled)
                estimates.append((measure, run, run_b, "corrected", corrected, variance**0.5))
    return estimates


def _save(campaign: Any, values: list[tuple[str, int, int | None, str, float, float]]) -> None:
    from django.db import transaction

    from analytics.models import Computation, Estimate

    runs = list(campaign.collection.runs.all())
    none = dict.fromkeys(
        ("last_judgment_id", "n_judgments", "n_items", "n_audited", "n_gold_checks", "seconds"), 0
    )
    with transaction.atomic():
        computation = Computation.objects.create(campaign=campaign, **none)
        Estimate.objects.bulk_create(
            [
                Estimate(
                    computation=computation,
                    run=runs[run],
                    run_b=None if run_b is None else runs[run_b],
                    measure=measure,
                    method=method,
                    value=value,
                    standard_error=error,
                    low=value - 1.96 * error,
                    high=value + 1.96 * error,
                    n=0,
                )
                for measure, run, run_b, method, value, error in values
            ],
            batch_size=1000,
        )
