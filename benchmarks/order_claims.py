"""What a submit-and-claim costs where judging goes by what it tells, beside random order.

    python benchmarks/order_claims.py --slots 1000,100000,1000000 --judgments 400

For each size a database of its own with a campaign of 50 topics, one judgment an item and so many open slots. The same
assessors judge in turns of 20 judgments: in random order, and in the other, whose slots exchange places after every
fifth judgment as the job `order` has them do. Then the first half of a topic's slots is filled at once, so that what a
claim must pass at the front has never been cleaned up, and both take turns in this topic. Milliseconds of the service,
without the web; the order's own time apart. JSON on standard output. Goal: medians within 20 % of random order, and of
the largest and the smallest campaign.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from statistics import median, quantiles
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "platform"))

from parts import places

from touchstone import embedded

PEOPLE, TURN, FEW = 8, 20, 5
places.JUDGMENTS_PER_ITEM = 1
places.PROGRAM = str(Path(__file__).resolve())
FILL_HALF = """
UPDATE judging_slot SET state = 'done', assessor_id = %(somebody)s, token = gen_random_uuid(), leased_at = now()
 WHERE id IN (SELECT id FROM judging_slot WHERE topic_id = %(topic)s AND purpose = 'judge' AND state = 'open'
               ORDER BY position LIMIT %(half)s)
"""


class Bench:
    """The assessors of a place, what they hold, and how long each answer took."""

    def __init__(self, campaign: str) -> None:
        from judging.models import Assessor, Campaign

        self.campaign = Campaign.objects.get(pk=campaign)
        self.people = list(Assessor.objects.filter(campaign=self.campaign).order_by("pk")[:PEOPLE])
        self.seconds: dict[str, list[float]] = {}
        self.order_seconds: list[float] = []
        self.n = 0

    def choose(self, order: str) -> None:
        from judging.models import Campaign

        Campaign.objects.filter(pk=self.campaign.pk).update(judging_order=order)

    def turn(self, name: str, order: str) -> None:
        """Judge a few documents in this order; what was held from another turn goes back first."""
        from judging.services.assign import claim, submit_and_claim
        from judging.services.leases import release_all

        self.choose(order)
        held = {}
        for person in self.people:
            release_all(assessor=person)
            held[person.pk] = claim(assessor=person, n=2).item
        for _ in range(TURN):
            person = self.people[self.n % len(self.people)]
            self.n += 1
            item = held[person.pk]
            assert item
            sent = {"token": item.token, "client_token": uuid.uuid4(), "grade": self.n % 4}
            started = time.perf_counter()
            _, answer = submit_and_claim(user_id=person.user_id, campaign_id=self.campaign.pk, n=2, **sent)
            self.seconds.setdefault(name, []).append(time.perf_counter() - started)
            held[person.pk] = answer.item
            if order == "informative" and self.n % FEW == 0:
                self.order_topics()

    def order_topics(self) -> None:
        """Let the slots of the assessors' topics exchange places, 50 to the front of each, chosen at random."""
        import numpy as np

        from judging.models import Slot
        from judging.services.places import exchange_places
        from sampling.judging_order import leading

        started = time.perf_counter()
        mine = Slot.objects.filter(assessor__in=self.people, state="leased")
        for topic in set(mine.values_list("topic_id", flat=True)):
            rows = list(
                Slot.objects.filter(topic_id=topic, purpose="judge", state="open").values_list(
                    "pk", "position"
                )
            )
            worth = np.random.default_rng(self.n).random(len(rows))
            order = leading(worth, np.array([place for _, place in rows]))
            exchange_places([rows[n][0] for n in order.tolist()])
        self.order_seconds.append(time.perf_counter() - started)

    def fill_half(self) -> int:
        """Fill half of one topic from the front, and send everybody there; return how many slots."""
        from django.db import connection
        from django.utils import timezone

        from judging.models import Lease, Slot
        from judging.services.leases import release_all

        topic = self.campaign.collection.topics.order_by("pk")[0]
        n_open = Slot.objects.filter(topic=topic, purpose="judge", state="open").count()
        with connection.cursor() as cursor:
            cursor.execute("SET session_replication_role = replica")
            cursor.execute(
                FILL_HALF, {"topic": topic.pk, "half": n_open // 2, "somebody": self.people[-1].pk}
            )
            cursor.execute("SET session_replication_role = origin")
        places_left = list(
            Slot.objects.filter(topic=topic, purpose="judge", state="open")[: len(self.people)]
        )
        for person, slot in zip(
            self.people, places_left, strict=True
        ):  # a claim stays in the newest lease's topic
            Lease.objects.create(token=uuid.uuid4(), slot=slot, assessor=person, leased_at=timezone.now())
            release_all(assessor=person)
        return n_open // 2


def measure(campaign: str, n_judgments: int) -> dict[str, Any]:
    """Return the figures of one place, in a process of its own."""
    import django

    django.setup()
    bench = Bench(campaign)
    for order in ("random", "informative"):  # connections and plans
        bench.turn("warm-up", order)
    bench.order_seconds.clear()
    for _ in range(max(1, n_judgments // TURN)):
        for order in ("random", "informative"):
            bench.turn(order, order)
    n_filled = bench.fill_half()
    for _ in range(max(1, n_judgments // TURN // 4)):
        for order in ("random", "informative"):
            bench.turn(f"{order}, half of the topic filled", order)
    figures = {name: _figures(seconds) for name, seconds in bench.seconds.items() if name != "warm-up"}
    return {**figures, "order": _figures(bench.order_seconds), "filled": n_filled}


def _figures(seconds: list[float]) -> dict[str, float]:
    return {
        "n": len(seconds),
        "median_ms": round(1000 * median(seconds), 2),
        "p95_ms": round(1000 * quantiles(seconds, n=20)[-1], 2),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--slots", default="1000,100000,1000000", help="sizes, separated by commas")
    parser.add_argument("--judgments", type=int, default=400, help="for each size and order")
    parser.add_argument("--fill", nargs=2, type=int, help=argparse.SUPPRESS)
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.fill:
        print(json.dumps(places.fill(*given.fill)))
        return
    if given.measure:
        print(json.dumps(measure(given.measure[0], int(given.measure[1]))))
        return
    found = {}
    with (
        tempfile.TemporaryDirectory(prefix="touchstone-order-") as folder,
        embedded.stack(Path(folder) / "servers") as servers,
    ):
        for n_slots in (int(text) for text in given.slots.split(",")):
            places.say(f"making a campaign of {n_slots:,} open slots")
            place = places.make_place(Path(folder) / f"order_{n_slots}", servers, n_slots, PEOPLE)
            n_judgments = min(given.judgments, n_slots // 6)
            command = [sys.executable, places.PROGRAM, "--measure", place.campaign, str(n_judgments)]
            child = subprocess.run(command, env=places.environment(place), stdout=subprocess.PIPE, check=True)
            found[f"{n_slots} slots"] = json.loads(child.stdout)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
