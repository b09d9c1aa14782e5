"""The same judgment sent again: eight times at once, after a reply that was cut off, and with another grade."""

import json
import socket
import struct
import time
import uuid
from collections import Counter
from collections.abc import Callable
from threading import Barrier
from typing import Any

from parts.assessors import WebClient
from parts.claims import at_once

AT_ONCE = 8
RESET = struct.pack("ii", 1, 0)  # SO_LINGER of 0 s: close() answers whatever still comes with a reset
CUTS = ("reply", "body", "request")
Answer = tuple[int, bytes]


def measure_resending(client: WebClient, seconds: float, rounds: int = 1000) -> dict[str, Any]:
    """Send judgments again in every way, for so many seconds; say what was stored and what was answered."""
    statuses: Counter[int] = Counter()
    wrong: Counter[str] = Counter(rows=0, answers=0, conflicts=0, progress=0)
    judged, end = 0, time.monotonic() + seconds
    while judged < rounds and (judged == 0 or time.monotonic() < end):
        token = client.claim()
        if token is None:
            break
        body = {"client_token": str(uuid.uuid4()), "token": token, "grade": judged % 4, "n": 2}
        if judged % 2:
            cut_off(client, body, CUTS[judged // 2 % len(CUTS)])
            answers = [client.post("/judgments", body) for _ in range(3)]
        else:
            answers = at_once([sender(client, body) for _ in range(AT_ONCE)])
        judged += 1
        others = [client.post("/judgments", other) for other in contradictions(body)]
        statuses.update(status for status, _ in answers + others)
        note(wrong, answers, others, body, judged)
    return {
        "judgments": judged,
        "sent_at_once": AT_ONCE,
        "statuses": {str(status): n for status, n in sorted(statuses.items())},
        "server_errors": sum(n for status, n in statuses.items() if status >= 500),
        **{f"wrong_{what}": n for what, n in wrong.items()},
    }


def sender(client: WebClient, body: dict[str, Any]) -> Callable[[Barrier], Answer]:
    def send(barrier: Barrier) -> Answer:
        barrier.wait()
        return client.post("/judgments", body)

    return send


def contradictions(body: dict[str, Any]) -> list[dict[str, Any]]:
    """Return what no honest client sends: the same request with another grade, and with none."""
    without = {key: value for key, value in body.items() if key != "grade"}
    return [{**body, "grade": (body["grade"] + 1) % 4}, {**without, "obstacle": "language"}]


def note(
    wrong: Counter[str], answers: list[Answer], others: list[Answer], body: dict[str, Any], judged: int
) -> None:
    """Count what differs from: one row with the grade sent, one answer to all, 409 to everything else."""
    from judging.models import Judgment

    rows = Judgment.objects.filter(lease_token=body["token"]).values_list("client_token", "grade")
    wrong["rows"] += list(rows) != [(uuid.UUID(body["client_token"]), body["grade"])]
    same = len(set(answers)) == 1 and answers[0][0] == 200
    wrong["answers"] += not same
    wrong["conflicts"] += [(status, problem_of(text)) for status, text in others] != [
        (409, "TokenReused")
    ] * 2
    if same:
        answer = json.loads(answers[0][1])
        saved = {"token": body["token"], "grade": body["grade"], "obstacle": ""}
        wrong["answers"] += answer["saved"] != saved
        wrong["progress"] += answer["progress"]["judged"] != judged


def problem_of(answer: bytes) -> str:
    """Return the class name in an answer of the kind application/problem+json."""
    return str(json.loads(answer).get("type", "")).rpartition("/")[2]


def cut_off(client: WebClient, body: dict[str, Any], where: str) -> None:
    """Send the judgment and break the connection: before the reply, within its body, or within the request."""
    request = raw_request(client, body)
    host, port = client.api.split("/")[2].split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        connection.sendall(request[:-10] if where == "request" else request)
        if where == "body":
            read_into_body(connection)


def raw_request(client: WebClient, body: dict[str, Any]) -> bytes:
    _, _, host, path = client.api.split("/", 3)
    data = json.dumps(body).encode()
    headers = {"Host": host, "Cookie": client.cookie_header(), "Content-Length": str(len(data))}
    lines = [f"POST /{path}/judgments HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in {**headers, **client.headers()}.items()]
    return "\r\n".join([*lines, "", ""]).encode() + data


def read_into_body(connection: socket.socket) -> None:
    """Read the headers of the reply and one byte more."""
    read = b""
    while not read.partition(b"\r\n\r\n")[2]:
        byte = connection.recv(1)
        assert byte, "the server closed the connection first"
        read += byte
