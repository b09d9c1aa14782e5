"""Half-sent requests, stalled uploads and a killed master: the front door, and gunicorn alone as the control.

    python benchmarks/front_door.py --seconds 8

Both serve the product on one database: gunicorn alone with two workers of four threads, and the front door (Caddy)
with two masters of one worker. For each: 60 and 1,000 connections that send half a header, or half a body, and 60
uploads of a manager that stall after 2 MiB; while they are open, 20 requests for /livez, of which those are
blocked that are not answered within 3 s. Then the rate of judging, in turns; and the longest time that an assessor
waits for an answer while a master is killed and started again after half a second, as the stack does.

JSON on standard output. Expected: none of 20 blocked behind the front door, all without; rate at least .9 of that
without; pause below 5 s. Everything runs on the loopback address, and only processes started here are killed.
"""

import argparse
import contextlib
import json
import re
import resource
import socket
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "platform"))

from parts import load
from parts.load import Answer, Round, Script
from parts.places import Place, assessor, environment, fill_up, open_places, say, web_options

from touchstone import embedded, front
from touchstone.processes import Program, answers

N_PROBES, PATIENCE = 20, 3.0
CONNECTIONS = (60, 1000)
STALLED_AT, UPLOAD = 2 * 2**20, 8 * 2**20
ASSESSORS, SLOTS = 16, 20_000
HALF_HEADER = b"GET /login/ HTTP/1.1\r\nHost: 127.0."
HALF_BODY = b"POST /login/ HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5000\r\n\r\nusername=b"


class Door:
    """The front door and its two masters, on a place's database."""

    def __init__(self, place: Place) -> None:
        self.place, self.port = place, embedded.free_port()
        ports = [embedded.free_port() for _ in range(2)]
        words = web_options()
        words[words.index("--workers") + 1] = "1"
        self.masters = [
            Program(
                f"web-{n}",
                [sys.executable, "-m", *words, "--bind", f"127.0.0.1:{port}"],
                {**environment(place), "TRUSTED_PROXIES": "1"},
                ready=answers(f"http://127.0.0.1:{port}/livez"),
            )
            for n, port in enumerate(ports, 1)
        ]
        places = [f"127.0.0.1:{port}" for port in ports]
        settings = front.environment(f"http://:{self.port}", places, place.root / "front", bind="127.0.0.1")
        ready = answers(f"http://127.0.0.1:{self.port}/livez")
        self.programs = [*self.masters, Program("front", front.command(), settings, ready=ready)]

    @contextlib.contextmanager
    def open(self) -> Iterator["Door"]:
        try:
            for program in self.programs:
                program.start(self.place.root / "log")
            for program in self.programs:
                program.ready()
            yield self
        finally:
            for program in reversed(self.programs):
                program.stop()


# -- half-sent ----------------------------------------------------------------------------------------------


def is_blocked(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/livez", timeout=PATIENCE) as page:
            return bool(page.status != 200)
    except OSError:
        return True


def blocked(port: int, data: bytes, n: int) -> int:
    """Return how many probes are blocked while so many connections have sent this and nothing more."""
    with contextlib.ExitStack() as stack:
        senders = ThreadPoolExecutor(60)
        connections = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=5)) for _ in range(n)
        ]
        list(senders.map(lambda connection: send(connection, data), connections))
        senders.shutdown()
        time.sleep(1)
        with ThreadPoolExecutor(N_PROBES) as probes:
            found = sum(probes.map(lambda _: is_blocked(port), range(N_PROBES)))
    time.sleep(1)  # what was cut off is noticed
    return found


def send(connection: socket.socket, data: bytes) -> None:
    with contextlib.suppress(OSError):  # refused, or not read: both are answers
        connection.sendall(data)


def stalled_upload(place: Place) -> bytes:
    """Return the beginning of a manager's upload: the first caller becomes one."""
    with place.connect() as database:
        database.execute(
            "UPDATE touchstone_user SET role = 'manager' WHERE id = "
            "(SELECT user_id FROM judging_assessor ORDER BY id LIMIT 1)"
        )
        (collection,) = database.execute("SELECT id FROM judging_collection").fetchone() or ("",)
    head = (
        f"POST /manage/collections/{collection}/ HTTP/1.1\r\nHost: 127.0.0.1\r\n{place.callers[0]}"
        f"Content-Length: {UPLOAD}\r\n"
    )
    head = (
        re.sub(r"Content-Type: [^\r]*\r\n", "", head)
        + "Content-Type: multipart/form-data; boundary=b\r\n\r\n"
    )
    part = '--b\r\nContent-Disposition: form-data; name="files"; filename="d.jsonl"\r\n\r\n'
    return (head + part).encode() + b"x" * STALLED_AT


def half_sent(port: int, upload: bytes) -> dict[str, int]:
    table = {}
    for n in CONNECTIONS:
        table[f"{n} headers"] = blocked(port, HALF_HEADER, n)
        table[f"{n} bodies"] = blocked(port, HALF_BODY, n)
    table[f"{CONNECTIONS[0]} uploads"] = blocked(port, upload, CONNECTIONS[0])
    return table


# -- judging ------------------------------------------------------------------------------------------------


def patient(script: Script) -> Script:
    """Play the script, and send a request again that is answered with 500 or more."""
    request = next(script)
    while True:
        answer: Answer = yield request
        if answer.status >= 500:
            time.sleep(0)
            continue
        try:
            request = script.send(answer)
        except StopIteration:
            return


def judge(place: Place, port: int, seconds: float) -> Round:
    with place.connect() as database:
        fill_up(place, database)
    players = [patient(assessor(place.campaign, headers)) for headers in place.callers[1:]]
    return load.play(port, players, warm_up=0.6, seconds=seconds, limit=place.n_slots // 2)


def rates(place: Place, ports: dict[str, int], seconds: float) -> dict[str, Any]:
    rounds = {name: Round() for name in ports}
    turns = list(ports)
    while min(total.seconds for total in rounds.values()) < seconds:
        for name in turns:
            rounds[name].add(judge(place, ports[name], min(2.0, seconds)))
        turns.reverse()
    figures: dict[str, Any] = {name: total.figures() for name, total in rounds.items()}
    per_second = [figures[name]["judgments_per_second"] for name in ("front door", "gunicorn alone")]
    return {**figures, "ratio": round(per_second[0] / per_second[1], 3)}


def pause(place: Place, port: int, master: Program, seconds: float = 12.0) -> dict[str, Any]:
    """Return the longest time without an answer, of any assessor, while the master is killed and started again."""

    def kill() -> None:
        assert master.process is not None
        master.process.kill()
        time.sleep(0.5)
        master.stop()
        master.start(place.root / "log")

    timer = threading.Timer(2.0, kill)
    timer.start()
    played = judge(place, port, seconds)
    timer.join()
    master.ready()
    return {
        "longest_seconds": round(max(played.latencies), 2),
        "judgments": len(played.latencies),
        "refused": {str(status): n for status, n in played.refused.items()},
        "reconnected": played.reconnected,
    }


def absence(place: Place, master: Program) -> float:
    """Return how long nobody answers where the only master is killed and started again."""
    assert master.process is not None
    began = time.monotonic()
    master.process.kill()
    time.sleep(0.5)
    master.stop()
    master.start(place.root / "log")
    master.ready()
    return round(time.monotonic() - began, 2)


def memory(programs: list[Program]) -> int:
    """Return the MB that the processes of these programs have, what they share counted once."""
    from touchstone.processes import family_of

    pids = {
        process.pid: process
        for program in programs
        if program.process
        for process in family_of(program.process.pid)
    }
    return sum(process.memory_full_info().pss for process in pids.values()) // 10**6


def main() -> None:
    parser = argparse.ArgumentParser(description="Half-sent requests, stalled uploads, a killed master.")
    parser.add_argument("--seconds", type=float, default=8, help="of judging, for each of the two")
    arguments = parser.parse_args()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 8192)), hard))
    with open_places([SLOTS], ASSESSORS + 1) as (place,), Door(place).open() as door:
        alone = place.programs["product"]
        ports = {"gunicorn alone": place.ports["product"], "front door": door.port}
        figures: dict[str, Any] = {}
        say("judging")
        figures["judging"] = rates(place, ports, arguments.seconds)
        figures["memory_mb"] = {
            "gunicorn alone": memory([alone]),
            "web processes": memory(door.masters),
            "front door": memory(door.programs[-1:]),
        }
        say("a master is killed")
        figures["killed"] = {
            "front door": pause(place, door.port, door.masters[0]),
            "gunicorn alone": {"longest_seconds": absence(place, alone)},
        }
        upload = stalled_upload(place)
        for name, port in ports.items():
            say(f"half-sent requests: {name}")
            figures[f"blocked of {N_PROBES}: {name}"] = half_sent(port, upload)
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
