"""How long somebody who types `make demo` waits: for the address, for bob's first document, and for any line.

    python benchmarks/start.py --rounds 3 [--former FOLDER]

Each round starts `manage.py demo` on an empty folder: installing the packages is not part of it. The seconds until the
line with the address, until bob (logged in over HTTP) has his first document, and the longest time without a line until
the address. --former names another checkout, with a .venv of its own, which takes turns with this one.

JSON on standard output. Goals: no silence above 5 s; the address after at most .6 of the former time.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "platform"))

from parts.assessors import WebClient
from parts.demo_process import listen, started_demo

HERE = Path(__file__).resolve().parents[1]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--former", type=Path, help="another checkout, with a .venv of its own")
    arguments = parser.parse_args()
    checkouts = {"product": HERE} | ({"former": arguments.former.resolve()} if arguments.former else {})
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in checkouts}
    for number in range(arguments.rounds):
        for name, folder in sorted(checkouts.items(), reverse=bool(number % 2)):
            rounds[name].append(start(folder))
            print(f"{name}: {rounds[name][-1]}", file=sys.stderr, flush=True)
    found = {
        name: {what: median(one[what] for one in made) for what in made[0]} for name, made in rounds.items()
    }
    told: dict[str, Any] = {"benchmark": "start", "rounds": rounds, "median": found}
    if "former" in found:
        told["ratio"] = {
            what: round(found["product"][what] / found["former"][what], 3) for what in found["former"]
        }
    print(json.dumps(told, indent=2))


def start(folder: Path) -> dict[str, float]:
    """Start the checkout's demo on an empty folder; stop it when bob has his first document."""
    with tempfile.TemporaryDirectory(prefix="touchstone-start-", ignore_cleanup_errors=True) as var:
        began = time.monotonic()
        with started_demo(folder, Path(var)) as process:
            address, silence = listen(process, began)
            seen = time.monotonic()
            first_document(address, Path(var))
            return {
                "address_seconds": round(seen - began, 2),
                "first_document_seconds": round(time.monotonic() - began, 2),
                "longest_silence_seconds": round(silence, 2),
            }


def bobs_password(var: Path) -> str:
    logins = json.loads((var / "demo.json").read_text())
    return str(next(login["password"] for login in logins if login["username"] == "bob"))


def first_document(address: str, var: Path) -> None:
    """Log bob in and claim an item of his own campaign; raise where there is none."""
    with psycopg.connect(json.loads((var / "stack.json").read_text())["owner_url"]) as connection:
        row = connection.execute("SELECT id FROM judging_campaign WHERE NOT is_simulated").fetchone()
    if row is None:
        raise SystemExit("the demo has no campaign for people")
    client = WebClient(address, row[0], "bob", bobs_password(var))
    if not client.claim():
        raise SystemExit("bob got no document")


if __name__ == "__main__":
    main()
