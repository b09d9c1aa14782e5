"""Callers in a closed loop over HTTP/1.1 keep-alive, cheap enough to share the cores with what they measure.

A script is a generator: it yields requests and is sent the answers, for as long as the round lasts. Each caller has
one connection and one script; everything runs in one thread, without a coroutine or a parser of headers a request.
"""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

MOST_RECONNECTED = 1000  # in one round: a worker that is replaced closes the connections it has


class Request(NamedTuple):
    """Bytes to send. The answer to the last request of a judgment, `ends`, makes it count."""

    data: bytes
    ends: bool


class Answer(NamedTuple):
    status: int
    body: bytes


Script = Generator[Request, Answer, None]


def request(path: str, body: bytes, headers: str = "", *, ends: bool) -> Request:
    """Return a POST; `headers` are whole lines, each with its line end."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{headers}Content-Length: {len(body)}\r\n\r\n"
    return Request(head.encode() + body, ends)


@dataclass
class Round:
    """What came back in the measured window. A latency is that of a whole judgment, in seconds."""

    latencies: list[float] = field(default_factory=list)
    answered: int = 0  # judgments, those of the warm-up and after the window included
    seconds: float = 0.0
    own_seconds: float = 0.0  # of processor time, used by the callers themselves
    refused: Counter[int] = field(default_factory=Counter)
    reconnected: int = 0
    out_of_work: int = 0

    def add(self, other: "Round") -> None:
        self.latencies += other.latencies
        self.answered += other.answered
        self.seconds += other.seconds
        self.own_seconds += other.own_seconds
        self.refused += other.refused
        self.reconnected += other.reconnected
        self.out_of_work += other.out_of_work

    def figures(self) -> dict[str, Any]:
        milliseconds = 1000 * np.asarray(self.latencies)
        p50, p95, p99 = np.percentile(milliseconds, [50, 95, 99]) if len(milliseconds) else [np.nan] * 3
        return {
            "judgments_per_second": round(len(milliseconds) / self.seconds, 1),
            "p50_ms": round(float(p50), 1),
            "p95_ms": round(float(p95), 1),
            "p99_ms": round(float(p99), 1),
            "judgments": len(milliseconds),
            "seconds": round(self.seconds, 2),
            "refused": {str(status): n for status, n in self.refused.items()},
            "reconnected": self.reconnected,
            "out_of_work": self.out_of_work,
            "load_generator_cpu_share": round(self.own_seconds / self.seconds, 3),
        }


class Caller(asyncio.Protocol):
    """One connection that plays one script, and begins a new connection when the server closes it."""

    def __init__(self, script: Script, play: "Play") -> None:
        self.script, self.play = script, play
        self.pending: Request | None = None
        self.buffer = b""
        self.began = 0.0
        self.transport: Any = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport, self.buffer = transport, b""
        if self.pending is None:
            self.began = time.perf_counter()
            self.advance(None)
        else:  # not answered yet: a judgment that comes twice is stored once
            self.transport.write(self.pending.data)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        head, separator, rest = self.buffer.partition(b"\r\n\r\n")
        if not separator:
            return
        try:
            length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
            if len(rest) >= length:
                self.buffer = b""
                self.answered(Answer(int(head[9:12]), rest))
        except ValueError:
            self.play.give_up(f"this answer cannot be read: {self.buffer[:300]!r}")

    def answered(self, answer: Answer) -> None:
        now = time.perf_counter()
        assert self.pending is not None
        if self.pending.ends or answer.status != 200:
            self.play.note(answer.status, self.began, now)
            self.began = now
        if self.play.over:
            self.finish()
        else:
            self.advance(answer)

    def advance(self, answer: Answer | None) -> None:
        try:
            self.pending = next(self.script) if answer is None else self.script.send(answer)
        except StopIteration:
            self.play.round.out_of_work += 1
            self.finish()
        else:
            self.transport.write(self.pending.data)

    def finish(self) -> None:
        self.pending = None
        self.transport.close()
        self.play.leave()

    def connection_lost(self, error: Exception | None) -> None:
        if self.pending is None or self.play.fault:
            return
        self.play.round.reconnected += 1
        if self.play.round.reconnected > MOST_RECONNECTED:
            self.play.give_up("the server closes every connection")
        else:
            self.play.connect(self)


class Play:
    """One round: all scripts at once, a warm-up that is not counted, then the window that is."""

    def __init__(self, port: int, scripts: list[Script], limit: int) -> None:
        self.port, self.limit = port, limit
        self.round, self.over, self.window_began = Round(), False, 0.0
        self.callers = [Caller(script, self) for script in scripts]
        self.present, self.empty = len(scripts), asyncio.Event()
        self.warm, self.enough = asyncio.Event(), asyncio.Event()
        self.tasks: set[asyncio.Task[Any]] = set()
        self.fault = ""

    def connect(self, caller: Caller) -> None:
        loop = asyncio.get_running_loop()
        task = loop.create_task(loop.create_connection(lambda: caller, "127.0.0.1", self.port))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    def note(self, status: int, began: float, now: float) -> None:
        self.round.answered += status == 200
        if self.over:
            return
        if not self.window_began:
            if self.round.answered >= self.limit // 4:
                self.warm.set()
            return
        if status != 200:
            self.round.refused[status] += 1
            return
        self.round.latencies.append(now - began)
        if len(self.round.latencies) >= self.limit:
            self.enough.set()

    def give_up(self, fault: str) -> None:
        self.fault = fault
        self.enough.set()
        self.empty.set()

    def leave(self) -> None:
        self.present -= 1
        if not self.present:
            self.enough.set()
            self.empty.set()

    async def run(self, warm_up: float, seconds: float) -> Round:
        for caller in self.callers:
            self.connect(caller)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.warm.wait(), warm_up)
        self.window_began, cpu = time.perf_counter(), time.process_time()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.enough.wait(), seconds)
        self.over = True
        self.round.seconds = time.perf_counter() - self.window_began
        self.round.own_seconds = time.process_time() - cpu
        await asyncio.wait_for(self.empty.wait(), 60)
        if self.fault:
            raise RuntimeError(self.fault)
        return self.round


def play(port: int, scripts: list[Script], *, warm_up: float, seconds: float, limit: int) -> Round:
    """Let every script call the server on this port, each in a closed loop.

    The window ends after so many seconds, or at this number of judgments, whichever comes first.
    """

    async def run() -> Round:
        return await Play(port, scripts, limit).run(warm_up, seconds)

    return asyncio.run(run())
