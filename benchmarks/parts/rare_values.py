"""Rare values for a large campaign: three rows of each, in its last topics, where whoever looks in order comes last."""

from typing import Any

RARE_WORD = "zebra"
FEW = 3
# Of the newest but one judgments those that nobody revised; a grade that is on no scale stands for one hardly given.
STATEMENTS = (
    """
UPDATE judging_document SET title = 'A zebra crossing' WHERE id IN (
  SELECT document_id FROM judging_item WHERE campaign_id = %(campaign)s
   ORDER BY topic_id DESC, document_id DESC LIMIT %(few)s)
""",
    """
CREATE TEMPORARY TABLE chosen ON COMMIT DROP AS
SELECT j.id, row_number() OVER () AS place FROM judging_judgment j JOIN judging_slot s ON s.id = j.slot_id
 WHERE s.campaign_id = %(campaign)s AND s.purpose = 'judge' ORDER BY s.topic_id DESC, j.id LIMIT 4 * %(few)s
""",
    "UPDATE judging_judgment SET comment = 'Hardly readable' WHERE id IN (SELECT id FROM chosen WHERE place %% 4 = 0)",
    "UPDATE judging_judgment SET active_milliseconds = 400 WHERE id IN (SELECT id FROM chosen WHERE place %% 4 = 1)",
    "UPDATE judging_judgment SET grade = 8 WHERE id IN (SELECT id FROM chosen WHERE place %% 4 = 2)",
    # One in a hundred was given back afterwards, three of them for a rare reason.
    """
INSERT INTO judging_judgment (item_id, assessor_id, sequence, grade, obstacle, lease_token, client_token,
                              active_milliseconds, document_version, created_at)
SELECT j.item_id, j.assessor_id, 2, NULL, CASE WHEN c.id IS NULL THEN 'unreadable' ELSE 'harmful' END,
       j.lease_token, gen_random_uuid(), 3000, 1, j.created_at + interval '1 minute'
  FROM judging_judgment j JOIN judging_assessor a ON a.id = j.assessor_id
  LEFT JOIN chosen c ON c.id = j.id AND c.place %% 4 = 3
 WHERE a.campaign_id = %(campaign)s AND (j.id %% 100 = 0 OR c.id IS NOT NULL)
""",
    # Somebody who judged once.
    """
INSERT INTO judging_judgment (item_id, assessor_id, sequence, grade, lease_token, client_token, active_milliseconds,
                              document_version, created_at)
SELECT j.item_id, %(once)s, 1, 1, gen_random_uuid(), gen_random_uuid(), 9000, 1, j.created_at
  FROM judging_judgment j WHERE j.id = (SELECT max(id) FROM chosen)
""",
)


def make(campaign: Any, manager: Any) -> None:
    """Give a computed campaign its rare values; what the computation found of it stays."""
    from django.db import connection, transaction
    from quick_flush import unguarded

    from judging.models import Assessor, Item
    from judging.services.adjudication import adjudicate
    from judging.services.places_left import compute_places_left
    from touchstone.models import User

    once = Assessor.objects.create(campaign=campaign, user=User.objects.create(username="judged-once"))
    keys = {"campaign": campaign.pk, "few": FEW, "once": once.pk}
    with (
        transaction.atomic(),
        unguarded(["judging_document", "judging_judgment"]),
        connection.cursor() as cursor,
    ):
        for statement in STATEMENTS:
            cursor.execute(statement, keys)
    for item in Item.objects.filter(campaign=campaign).order_by("-topic", "-document")[:FEW]:
        adjudicate(item=item, grade=1, reason="", actor=manager)
    compute_places_left(campaign=campaign)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
