"""The loop of a machine assessor: claim a batch, ask the model for each item in parallel, send the judgments.

What may go wrong, and what becomes of the item:

- the model answers without a clear grade, or the endpoint refuses this prompt: judged "failed", for others to judge;
- nobody answers, after the retries: nothing is judged, the run ends, the leases go back;
- too many requests, after the retries: the item stays held and is asked again with the next batch.
"""

import random
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from judging.management.machine_clients import Client, NotServed, Verdict, Work
from judging.management.machine_model import (
    SET_UP_IS_WRONG,
    TOO_MANY_REQUESTS,
    Model,
    Pace,
    Purse,
    Reply,
)
from judging.models import Judgment
from judging.prompts import check_prompt, grades_text, messages_of
from judging.services.errors import Refused

FIRST_WAIT, LAST_WAIT = 1.0, 60.0
# So many failures and not one grade: then it is not the documents.
SUSPICIOUS = 3
GOOD_ENDS = ("no work", "quota", "limit", "cost", "interrupted")


@dataclass
class Summary:
    """What a run did."""

    reason: str = ""
    judged: int = 0
    failed: int = 0
    refused: int = 0  # judgments that the Touchstone did not take
    calls: Counter[str] = field(default_factory=Counter)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cost: Decimal = Decimal(0)
    seconds: float = 0.0

    def count(self, reply: Reply, cost: Decimal) -> None:
        self.calls[reply.status] += 1
        self.prompt_tokens += reply.prompt_tokens
        self.completion_tokens += reply.completion_tokens
        self.cost += cost

    def as_json(self) -> dict[str, Any]:
        return {
            **vars(self),
            "calls": dict(self.calls),
            "cost": str(self.cost),
            "seconds": round(self.seconds, 3),
        }


@dataclass(frozen=True)
class Outcome:
    """What came of an item; neither a grade nor a failure leaves it as it was."""

    work: Work
    replies: Sequence[Reply]
    grade: int | None = None
    is_failed: bool = False

    @property
    def is_judged(self) -> bool:
        return self.grade is not None or self.is_failed


class StopReason:
    """Why the run ends: the first reason counts. Waiting threads wake up."""

    def __init__(self) -> None:
        self.reason = ""
        self.event = threading.Event()
        self.lock = threading.Lock()

    def record(self, reason: str) -> None:
        with self.lock:
            self.reason = self.reason or reason
        self.event.set()

    def __bool__(self) -> bool:
        return self.event.is_set()


@dataclass
class Run:
    """One run of a machine assessor."""

    client: Client
    model: Model
    prompt: str
    pace: Pace
    purse: Purse
    batch: int = 16
    parallel: int = 4
    retries: int = 5
    limit: int | None = None
    most_characters: int = 24_000
    say: Callable[[str], None] = lambda line: None
    stopped: StopReason = field(default_factory=StopReason)
    summary: Summary = field(default_factory=Summary)
    n_reached: int = 0  # answers that show that the endpoint is there
    grades: list[int] = field(default_factory=list)
    fields: dict[str, str] = field(default_factory=dict)
    lease_seconds: float = 0.0

    def start(self) -> Summary:
        """Judge until there is nothing to judge, or something to stop for."""
        begun = time.monotonic()
        try:
            self._prepare()
            with ThreadPoolExecutor(self.parallel) as pool:
                self._judge_all(pool)
        except (Refused, NotServed) as refusal:
            self.stopped.record(str(refusal) or getattr(refusal, "title", ""))
        self.summary.reason = self.stopped.reason
        self.summary.seconds = time.monotonic() - begun
        return self.summary

    def _prepare(self) -> None:
        told = self.client.instructions()
        self.prompt = self.prompt or told["prompt"]
        check_prompt(self.prompt)
        self.grades = [grade["value"] for grade in told["grades"]]
        self.lease_seconds = float(told["lease_seconds"])
        self.fields = {
            "grades": grades_text([(grade["value"], grade["label"]) for grade in told["grades"]]),
            "guidelines": told["guidelines"],
        }

    def _judge_all(self, pool: ThreadPoolExecutor) -> None:
        try:
            while not self.stopped:
                self._one_batch(pool)
        finally:
            self.stopped.event.set()  # the threads wake up and end, whatever happened here

    def _one_batch(self, pool: ThreadPoolExecutor) -> None:
        n = self.batch
        if self.limit is not None:
            n = min(n, self.limit - self.summary.judged - self.summary.failed)
        works, reason = self.client.claim(n)
        if not works:
            self.stopped.record(reason)
            return
        surplus = works[n:]  # held since an earlier run with a larger batch
        outcomes = self._outcomes(pool, works[:n])
        if self._is_suspicious(outcomes):
            self.stopped.record("no usable answer")
            outcomes = [Outcome(outcome.work, outcome.replies) for outcome in outcomes]
        self._send(outcomes)
        if self.limit is not None and self.summary.judged + self.summary.failed >= self.limit:
            self.stopped.record("limit")
        left = [outcome.work.token for outcome in outcomes if not outcome.is_judged]
        if self.stopped and left + surplus:
            self.client.release([*left, *(work.token for work in surplus)])
        self.say(
            f"{self.summary.judged:,} judged, {self.summary.failed:,} failed, {self.summary.cost:f} spent"
        )

    def _outcomes(self, pool: ThreadPoolExecutor, works: Sequence[Work]) -> list[Outcome]:
        """Return what came of each, in order; meanwhile the leases of those that wait are kept alive."""
        futures: dict[Future[Outcome], Work] = {pool.submit(self._judge, work): work for work in works}
        pending = set(futures)
        while pending:
            _, pending = wait(pending, timeout=max(0.2, self.lease_seconds / 3), return_when=FIRST_EXCEPTION)
            if any(future.exception() for future in futures.keys() - pending):
                self.stopped.record("fault")
            if pending:
                self.client.extend([work.token for work in futures.values()])
        return [future.result() for future in futures]

    def _judge(self, work: Work) -> Outcome:
        """Ask the model until it answers, the retries are used up, or the run ends."""
        messages = messages_of(
            self.prompt, {**self.fields, **work.fields}, self.grades, most_characters=self.most_characters
        )
        reached_before = self.n_reached
        replies: list[Reply] = []
        for turn in range(self.retries + 1):
            if not self._may_ask():
                return Outcome(work, replies)
            reply = self.model.ask(messages, self.grades)
            replies.append(reply)
            self.purse.pay(reply)
            if not reply.is_worth_a_retry:
                return self._outcome(work, replies)
            if turn < self.retries:
                self.stopped.event.wait(wait_before(turn, reply.retry_after))
        is_there = self.n_reached > reached_before  # for others, while this item got nothing
        if not is_there:
            self.stopped.record("unreachable")
        # Too many requests are nobody's fault; what breaks the endpoint again and again is the item.
        return Outcome(work, replies, is_failed=is_there and replies[-1].http_status != TOO_MANY_REQUESTS)

    def _outcome(self, work: Work, replies: Sequence[Reply]) -> Outcome:
        reply = replies[-1]
        if reply.http_status in SET_UP_IS_WRONG:
            self.stopped.record("refused")
            return Outcome(work, replies)
        self.n_reached += 1
        if self.purse.most is not None and reply.http_status == 200 and not reply.tells_usage:
            self.stopped.record("no usage")  # what it costs is unknown: the next call might be too dear
        return Outcome(work, replies, reply.grade, is_failed=reply.grade is None)

    def _may_ask(self) -> bool:
        if self.purse.is_empty:
            self.stopped.record("cost")
        seconds = 0.0 if self.stopped else self.pace.take()
        if seconds:
            self.stopped.event.wait(seconds)
        return not self.stopped

    def _is_suspicious(self, outcomes: Collection[Outcome]) -> bool:
        n_failed = sum(outcome.is_failed for outcome in outcomes)
        none_graded = self.summary.judged == 0 and all(outcome.grade is None for outcome in outcomes)
        return none_graded and n_failed >= SUSPICIOUS

    def _send(self, outcomes: Sequence[Outcome]) -> None:
        verdicts = [self._verdict(outcome) for outcome in outcomes if outcome.replies]
        if not verdicts:
            return
        refused = self.client.send(verdicts)
        self.summary.refused += refused
        if refused and refused == sum(verdict.judgment is not None for verdict in verdicts):
            self.stopped.record("not taken")  # else the same items would be asked, and paid, for ever
        self.summary.judged += sum(outcome.grade is not None for outcome in outcomes)
        self.summary.failed += sum(outcome.is_failed for outcome in outcomes)

    def _verdict(self, outcome: Outcome) -> Verdict:
        calls = []
        for reply in outcome.replies:
            cost = self.purse.cost_of(reply)
            self.summary.count(reply, cost)
            calls.append(self._call_row(outcome.work, reply, cost))
        if not outcome.is_judged:
            return Verdict(None, calls)
        judgment: dict[str, Any] = {
            "token": outcome.work.token,
            "client_token": str(uuid.uuid4()),
            "active_milliseconds": outcome.replies[-1].milliseconds,
        }
        if outcome.grade is None:
            judgment["obstacle"] = str(Judgment.Obstacle.FAILED)
        else:
            judgment["grade"] = outcome.grade
        return Verdict(judgment, calls)

    def _call_row(self, work: Work, reply: Reply, cost: Decimal) -> Mapping[str, Any]:
        return {
            "token": work.token,
            "status": str(reply.status),
            "model": self.model.name,
            "detail": reply.detail,
            "prompt_tokens": reply.prompt_tokens,
            "completion_tokens": reply.completion_tokens,
            "cost": cost,
            "milliseconds": reply.milliseconds,
        }


def wait_before(turn: int, retry_after: float | None) -> float:
    """Return the seconds to wait after the given try, the first being 0: doubled each time, and never quite the same.

    What the endpoint asks for is kept, and a little more, so that all who were sent away do not come back at once.
    """
    if retry_after is not None:
        return retry_after * random.uniform(1.0, 1.1)
    return min(LAST_WAIT, FIRST_WAIT * 2.0**turn) * random.uniform(0.5, 1.0)
