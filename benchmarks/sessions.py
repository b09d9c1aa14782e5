"""A thousand open sessions: how long a judgment takes, and whether each that was acknowledged is stored once.

    python benchmarks/sessions.py --sessions 1000 --every 24 --seconds 120

So many assessors, each logged in with a connection of their own through the front door, judge once every so many
seconds, at moments of their own, and halfway between two judgments their screen renews its leases (a browser does so
more rarely). Everything goes to the product's web processes with the options of `manage.py stack`.

Then the database is asked for every judgment that was acknowledged, by its client token. The control is the same
question with one token that nobody sent: it must be missed. `--every 1` is more than one machine answers in time.

JSON on standard output. Goals: p99 < 500 ms, no error, none lost or doubled.
"""

import argparse
import asyncio
import json
import random
import re
import sys
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "platform"))

from parts.load import Answer
from parts.places import GRADES, Place, first_token, open_places, say

from touchstone import embedded, front
from touchstone.processes import Program, answers

SLOTS = 100_000
PATIENCE = 60.0  # seconds; an answer that takes longer is an error
STATUS = re.compile(rb"HTTP/1\.1 (\d{3})")
LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)


@dataclass
class Told:
    """What all sessions were told: milliseconds and statuses by kind of request, and the tokens acknowledged."""

    milliseconds: dict[str, list[float]] = field(default_factory=dict)
    statuses: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    acknowledged: list[uuid.UUID] = field(default_factory=list)
    reconnected: int = 0


class Session:
    """An assessor's browser: one connection, one request at a time."""

    def __init__(self, port: int, campaign: str, headers: str, told: Told) -> None:
        self.port, self.headers, self.told = port, headers, told
        self.api = f"/api/v1/campaigns/{campaign}"
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def judge(self, every: float, until: float, rng: random.Random) -> None:
        """Claim, then judge once in each period until the end, with a heartbeat in the middle."""
        await asyncio.sleep(rng.uniform(0, every))
        answer = await self.post("claim", "/claim", {})
        while time.monotonic() < until and answer and (token := first_token(answer)):
            began = time.monotonic()
            await asyncio.sleep(every / 2)
            await self.post("heartbeat", "/heartbeat", {"tokens": [token]})
            await asyncio.sleep(max(0.0, every - (time.monotonic() - began)))
            client_token = uuid.uuid4()
            body = {
                "client_token": str(client_token),
                "token": token,
                "grade": rng.randrange(GRADES),
                "active_milliseconds": round(1000 * every),
            }
            answer = await self.post("judgment", "/judgments", body)
            if answer is not None and answer.status == 200:
                self.told.acknowledged.append(client_token)
        if self.streams:
            self.streams[1].close()

    async def post(self, kind: str, path: str, body: dict[str, Any]) -> Answer | None:
        began = time.perf_counter()
        try:
            answer = await asyncio.wait_for(self._sent(path, json.dumps(body).encode()), PATIENCE)
        except (OSError, asyncio.IncompleteReadError, TimeoutError, ValueError) as fault:
            self.told.faults[f"{kind}: {type(fault).__name__}"] += 1
            return None
        self.told.milliseconds.setdefault(kind, []).append(1000 * (time.perf_counter() - began))
        self.told.statuses[f"{kind} {answer.status}"] += 1
        return answer

    async def _sent(self, path: str, body: bytes) -> Answer:
        """Send once more, on a new connection, where the server has closed an idle one: the token is the same."""
        if self.streams is not None:
            try:
                return await self._asked(path, body)
            except (ConnectionError, asyncio.IncompleteReadError):
                self.told.reconnected += 1
        self.streams = await asyncio.open_connection("127.0.0.1", self.port)
        return await self._asked(path, body)

    async def _asked(self, path: str, body: bytes) -> Answer:
        assert self.streams is not None
        reader, writer = self.streams
        host = f"Host: 127.0.0.1:{self.port}\r\n"
        length = f"Content-Length: {len(body)}\r\n\r\n"
        head = f"POST {self.api}{path} HTTP/1.1\r\n{host}{self.headers}{length}"
        writer.write(head.encode() + body)
        await writer.drain()
        said = await reader.readuntil(b"\r\n\r\n")
        status, size = STATUS.match(said), LENGTH.search(said)
        if status is None or size is None:
            raise ValueError("an answer without a status or a length")
        return Answer(int(status[1]), await reader.readexactly(int(size[1])))


async def play(place: Place, port: int, every: float, seconds: float, seed: int) -> Told:
    told, until = Told(), time.monotonic() + seconds
    sessions = [Session(port, place.campaign, headers, told) for headers in place.callers]
    await asyncio.gather(
        *(
            session.judge(every, until, random.Random(f"{seed} {number}"))
            for number, session in enumerate(sessions)
        )
    )
    return told


def missed(place: Place, tokens: list[uuid.UUID]) -> int:
    """Return how many of the tokens are not stored exactly once."""
    with place.connect() as database:
        rows = database.execute(
            "SELECT client_token FROM judging_judgment WHERE client_token = ANY(%s)", [tokens]
        ).fetchall()
    found = Counter(token for (token,) in rows)
    return sum(found[token] != 1 for token in tokens)


def figures(milliseconds: list[float]) -> dict[str, float]:
    p50, p99, most = np.percentile(milliseconds, [50, 99, 100])
    return {
        "n": len(milliseconds),
        "p50_ms": round(float(p50), 1),
        "p99_ms": round(float(p99), 1),
        "max_ms": round(float(most), 1),
    }


def start_front(place: Place) -> int:
    """Start the front door before the web processes; return its port."""
    port = embedded.free_port()
    address = f"http://127.0.0.1:{port}"
    environment = front.environment(
        f"http://:{port}", [f"127.0.0.1:{place.ports['product']}"], place.root / "front", bind="127.0.0.1"
    )
    door = Program("front", front.command(), environment, ready=answers(f"{address}/livez"))
    place.programs["front"] = door
    door.start(place.root / "log")
    door.ready()
    return port


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument(
        "--every", type=float, default=24.0, help="seconds between two judgments of a session"
    )
    parser.add_argument("--seconds", type=float, default=120.0)
    parser.add_argument("--slots", type=int, default=SLOTS)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with open_places([options.slots], options.sessions) as (place,):
        port = start_front(place)
        say(f"{options.sessions} sessions judge for {options.seconds:.0f} s")
        told = asyncio.run(play(place, port, options.every, options.seconds, options.seed))
        lost = missed(place, told.acknowledged)
        control = missed(place, [*told.acknowledged, uuid.uuid4()])
    assert control == lost + 1, "the comparison does not see a judgment that is missing"
    errors = {what: n for what, n in told.statuses.items() if not what.endswith(" 200")} | dict(told.faults)
    print(
        json.dumps(
            {
                "benchmark": "sessions",
                "sessions": options.sessions,
                "every_seconds": options.every,
                "requests": {kind: figures(all_of) for kind, all_of in sorted(told.milliseconds.items())},
                "errors": errors,
                "reconnected": told.reconnected,
                "acknowledged": len(told.acknowledged),
                "lost_or_doubled": lost,
                "control_missed": control - lost,
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
