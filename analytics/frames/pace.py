"""How many first answers on long documents an assessor gave, and how many of them within a second."""

from collections.abc import Sequence
from typing import Any

from django.db import connection

from analytics.screening.carelessness import FAST_MILLISECONDS, FEWEST_ANSWERS, LONG_TEXT, MOST_FAST
from judging.models import Campaign

# Whoever has too few fast answers in all is told from an index (judging_judgment_pace); lengths are read of the others'
# documents alone. No character takes more than four bytes, so that of most texts the stored length is enough. Ordinary:
# checks, audits and imports are left out; late judgments and those set aside say how somebody judges.
_ANSWERS = """
WITH suspects AS MATERIALIZED (
  SELECT a.id FROM judging_assessor a
   WHERE a.campaign_id = %(campaign)s AND a.id = ANY(%(people)s)
     AND (SELECT count(*) FROM (SELECT FROM judging_judgment j WHERE j.assessor_id = a.id
             AND j.active_milliseconds BETWEEN 1 AND %(fast)s - 1 LIMIT %(fewest)s) k) >= %(fewest)s)
SELECT j.assessor_id, count(*) FILTER (WHERE j.active_milliseconds < %(fast)s), count(*)
  FROM suspects JOIN judging_judgment j ON j.assessor_id = suspects.id
  LEFT JOIN judging_lease l ON l.token = j.lease_token
  JOIN judging_slot s ON s.id = coalesce(j.slot_id, l.slot_id)
  JOIN judging_item i ON i.id = j.item_id JOIN judging_document d ON d.id = i.document_id
 WHERE j.sequence = 1 AND j.grade IS NOT NULL AND j.active_milliseconds > 0
   AND (s.purpose = 'judge' OR (s.purpose = 'void' AND s.was IN ('judge', '')))
   AND (octet_length(d.text) >= 4 * %(long)s OR char_length(d.text) >= %(long)s)
 GROUP BY 1 ORDER BY 1
"""


def first_answers(campaign: Campaign, people: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return assessor, fast first answers and all of them, of who has enough fast ones to be too fast at all."""
    keys: dict[str, Any] = {
        "campaign": campaign.pk,
        "people": list(people),
        "fast": FAST_MILLISECONDS,
        "fewest": int(FEWEST_ANSWERS * MOST_FAST) + 1,
        "long": LONG_TEXT,
    }
    with connection.cursor() as cursor:
        cursor.execute(_ANSWERS, keys)
        return list(cursor.fetchall())
