"""The places of open slots in their topic's order, for campaigns that judge by what a judgment tells."""

from collections.abc import Sequence

from django.db import connection

# The slots exchange their places: none is made, and none is given up, so that gold checks, which have places of their
# own in the same order, come as they would have come. Only open slots of ordinary judgments take part, and none that a
# request is working on: nobody waits for anybody, hence no deadlock. Whoever claims meanwhile skips these rows for the
# moment until the transaction ends.
EXCHANGE = """
WITH free AS MATERIALIZED (
  SELECT id, position FROM judging_slot
   WHERE id = ANY(%(slots)s) AND state = 'open' AND purpose = 'judge' FOR NO KEY UPDATE SKIP LOCKED),
places AS (SELECT position, row_number() OVER (ORDER BY position, id) AS n FROM free),
ranked AS (SELECT id, row_number() OVER (ORDER BY array_position(%(slots)s, id)) AS n FROM free)
UPDATE judging_slot s SET position = places.position
  FROM ranked JOIN places USING (n) WHERE s.id = ranked.id AND s.position <> places.position
"""


def exchange_places(slots: Sequence[int]) -> int:
    """Give the first of these slots of one topic the first of their places, and so on; return how many moved.

    Slots that were leased, filled or set aside meanwhile keep their place, and the others share theirs. Call it last
    in a transaction: until it ends, a claim skips these slots, and a late judgment of one of them is kept as surplus.
    """
    with connection.cursor() as cursor:
        cursor.execute(EXCHANGE, {"slots": list(slots)})
        return int(cursor.rowcount)
