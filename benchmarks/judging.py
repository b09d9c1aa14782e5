"""How many judgments a second, and how long one takes: assessors in a closed loop against the real web process.

    python benchmarks/judging.py --seconds 8 --slots 1000,100000,1000000 --clients 16,64

With --pooler, the product a third time, through Debian's PgBouncer in transaction mode (POOLER=transaction), and the
price: its rate to the product's in the same run. With --former FOLDER, also another checkout with a .venv of its own,
on a database that its own migrations made: what judging costs now, to what it cost then.

For each size a database of its own with a campaign of 50 topics and so many open slots, and two gunicorns with the
product's own options: the product, and the floor (parts/floor.py). 16, then 64 assessors with sessions of their own
judge over HTTP keep-alive; every submit answers with what is next. All sizes and both servers take turns, forwards and
backwards, in short rounds: what disturbs the machine disturbs all of them. Only judgments answered with 200 after the
warm-up count. A round uses at most half of the open slots; before each they are filled up again.

JSON on standard output. Goals: ratio to the floor >= 0.6; p99 < 150 ms with 16 assessors, < 500 ms with 64; the rates
of the largest and the smallest campaign within 20 %; <= 8 SQL statements.
"""

import argparse
import json
import re
import sys
from itertools import pairwise
from pathlib import Path
from statistics import median_low
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "platform"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from parts import load
from parts.load import Round, Script
from parts.places import (
    FORMER,
    JUDGMENTS_PER_ITEM,
    POOLED,
    PRODUCT,
    Place,
    assessor,
    fill,
    fill_up,
    open_places,
    say,
    web_options,
)

WARM_UP, ROUND = 0.6, 2.0  # seconds
TRANSACTION = re.compile(r"BEGIN|COMMIT|SAVEPOINT|RELEASE", re.IGNORECASE)


# -- scripts ------------------------------------------------------------------------------------------------


def floor_caller(below: str = "") -> Script:
    while (slot := (yield load.request(f"{below}/claim", b"", ends=False))).body:
        yield load.request(f"{below}/submit", slot.body + b" 1", ends=True)


def scripts(place: Place, name: str, n_clients: int) -> list[Script]:
    if name not in PRODUCT:
        return [floor_caller("" if name == "floor" else "/sql") for _ in range(n_clients)]
    return [assessor(place.campaign, headers) for headers in place.callers[:n_clients]]


# -- measuring ----------------------------------------------------------------------------------------------


def measure(places: list[Place], n_clients: int, seconds: float) -> dict[int, dict[str, Round]]:
    """Let all places and both of their servers take turns, there and back, until each had its seconds."""
    rounds = {place.n_slots: {name: Round() for name in place.turns} for place in places}
    turns = [(place, name) for place in places for name in place.turns]
    while min(rounds[place.n_slots][name].seconds for place, name in turns) < seconds:
        for place, name in turns:
            take_turn(place, name, n_clients, min(ROUND, seconds), rounds[place.n_slots][name])
        turns.reverse()
    return rounds


def take_turn(place: Place, name: str, n_clients: int, seconds: float, total: Round) -> None:
    """Measure for so long; a small campaign is filled up in between."""
    if name == FORMER and place.former:
        place, name = place.former, "product"
    end = total.seconds + seconds
    while total.seconds < end - 0.05:
        if place.n_used > place.n_slots // 20:
            with place.connect() as database:
                fill_up(place, database)
        players = scripts(place, name, n_clients)
        left = end - total.seconds
        turn = load.play(place.port(name), players, warm_up=WARM_UP, seconds=left, limit=place.n_slots // 4)
        place.n_used += turn.answered
        total.add(turn)


def report(places: list[Place], clients: list[int], seconds: float) -> dict[str, Any]:
    figures: dict[str, Any] = {"web": " ".join(web_options()), "judgments_per_item": JUDGMENTS_PER_ITEM}
    figures["statements"] = statements(places[0])
    for n_clients in clients:
        say(f"{n_clients} assessors")
        rounds = measure(places, n_clients, seconds)
        figures[f"{n_clients} assessors"] = compare(rounds)
    return figures


def compare(rounds: dict[int, dict[str, Round]]) -> dict[str, Any]:
    table: dict[str, Any] = {}
    for n_slots, pair in rounds.items():
        figures = {name: total.figures() for name, total in pair.items()}
        rates = {name: figures[name]["judgments_per_second"] for name in pair}
        table[f"{n_slots} slots"] = {
            **figures,
            "ratio_to_floor": round(rates["product"] / rates["floor"], 3),
            "ratio_to_floor_in_sql": round(rates["product"] / rates["floor in SQL"], 3),
        }
        if POOLED in rates:
            table[f"{n_slots} slots"]["ratio_of_pooled_to_direct"] = round(
                rates[POOLED] / rates["product"], 3
            )
        if FORMER in rates:
            table[f"{n_slots} slots"]["ratio_to_former"] = round(rates["product"] / rates[FORMER], 3)
    sizes = sorted(rounds)
    rate = {n: table[f"{n} slots"]["product"]["judgments_per_second"] for n in sizes}
    table["rate_of_largest_to_smallest"] = round(rate[sizes[-1]] / rate[sizes[0]], 3)
    return table


# -- statements ---------------------------------------------------------------------------------------------


def statements(place: Place) -> dict[str, Any]:
    """Return what PostgreSQL itself logs for a submit-and-next: one assessor alone, request by request."""
    with place.connect() as superuser:
        superuser.execute("ALTER SYSTEM SET log_statement = 'all'")
        superuser.execute("SELECT pg_reload_conf()")
        marks: list[int] = []
        load.play(
            place.ports["product"], [watched(place, marks)], warm_up=0.1, seconds=10, limit=place.n_slots // 8
        )
        superuser.execute("ALTER SYSTEM RESET log_statement")
        superuser.execute("SELECT pg_reload_conf()")
    text = place.server_log.read_bytes()
    # The first requests open the connections of the threads.
    requests = [logged(text[begin:end]) for begin, end in pairwise(marks[20:])]
    totals = [len(request) for request in requests]
    typical = next(request for request in requests if len(request) == median_low(totals))
    around = [statement for statement in typical if TRANSACTION.match(statement)]
    return {
        "requests": len(requests),
        "median": len(typical),
        "most": max(totals),
        "begin_and_commit": len(around),
        "others": len(typical) - len(around),
        "typical": typical,
    }


def watched(place: Place, marks: list[int]) -> Script:
    """Play an assessor, and note before each request how long the server's log is."""
    script = assessor(place.campaign, place.callers[0])
    request = next(script)
    while len(marks) < 80:
        marks.append(place.server_log.stat().st_size)
        answer = yield request
        request = script.send(answer)


def logged(log: bytes) -> list[str]:
    """Return the beginnings of the logged statements."""
    statements = re.findall(r"LOG:  (?:statement|execute [^:]*):\s+(.{1,100})", log.decode(errors="replace"))
    return [" ".join(statement.split()) for statement in statements]


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Assessors in a closed loop against the product and a bare floor."
    )
    parser.add_argument(
        "--seconds", type=float, default=8, help="for each size, server and number of clients"
    )
    parser.add_argument("--slots", default="1000,100000,1000000", help="sizes, separated by commas")
    parser.add_argument("--clients", default="16,64", help="numbers of assessors, separated by commas")
    parser.add_argument(
        "--pooler", action="store_true", help="also through PgBouncer, which must be installed"
    )
    parser.add_argument("--former", type=Path, help="another checkout, with a .venv of its own")
    parser.add_argument("--fill", nargs=2, type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.fill:
        print(json.dumps(fill(*arguments.fill)))
        return
    sizes, clients = ([int(n) for n in text.split(",")] for text in (arguments.slots, arguments.clients))
    with open_places(sizes, max(clients), arguments.pooler, arguments.former) as places:
        figures = report(places, clients, arguments.seconds)
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
