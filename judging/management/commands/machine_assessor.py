"""`manage.py machine_assessor`: a language model judges, under the same contract as people."""

import ipaddress
import json
import logging
import os
import signal
import ssl
import threading
import uuid
from argparse import ArgumentParser, ArgumentTypeError
from contextlib import ExitStack
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
from django.core.management.base import BaseCommand, CommandError

from judging.management.importing import one_line
from judging.management.machine_clients import Client, Direct, Remote
from judging.management.machine_model import Model, Pace, Purse
from judging.management.machine_run import GOOD_ENDS, Run, StopReason, Summary
from judging.models import Assessor, Campaign
from judging.prompts import MOST_CHARACTERS, check_prompt
from judging.services.machines import MOST_AT_ONCE, add_machine

MOST_PARALLEL = 64
ENDS = {
    "unreachable": "the endpoint does not answer; nothing was judged in its place, and the items wait for the next run",
    "refused": "the endpoint refuses: look at its address, the key and the model's name (--output json, or the calls)",
    "no usable answer": "the model gave no grade at all; none of it was stored as judged: look at the prompt",
    "no usage": "the endpoint does not say how many tokens it used, so --most-cost cannot be kept",
    "not taken": "the Touchstone took none of the judgments",
    "fault": "the machine assessor itself failed",
}


class Command(BaseCommand):
    help = "Have a language model judge a campaign's items, over any endpoint with OpenAI's chat completions."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("campaign", help="its name or its id; its id if --address is given")
        parser.add_argument("--as", dest="username", help="the machine's user name; made if there is none")
        parser.add_argument(
            "--endpoint", type=_address,
            help="such as http://127.0.0.1:8080/v1; without it, the assessor is made and nothing judged",
        )  # fmt: skip
        parser.add_argument("--model", help="its name at the endpoint")
        parser.add_argument(
            "--api-key-env", metavar="NAME", help="the variable that holds the endpoint's key"
        )
        parser.add_argument("--prompt", metavar="FILE", help="instead of the campaign's prompt")
        parser.add_argument(
            "--characters", type=_integer_between(100, 10_000_000), default=MOST_CHARACTERS,
            help=f"of a document that the model sees (default: {MOST_CHARACTERS:,})",
        )  # fmt: skip
        parser.add_argument(
            "--set", dest="parameters", action="append", default=[], type=_parameter, metavar="NAME=JSON",
            help="one more parameter of the call; null removes one (default: temperature=0)",
        )  # fmt: skip
        parser.add_argument(
            "--batch", type=_integer_between(1, MOST_AT_ONCE), default=16, help="items claimed at once (16)"
        )
        parser.add_argument(
            "--parallel",
            type=_integer_between(1, MOST_PARALLEL),
            default=4,
            help="calls at the same time (4)",
        )
        parser.add_argument("--rate", type=_positive, metavar="PER_MINUTE", help="calls a minute at most")
        parser.add_argument(
            "--retries", type=_integer_between(0, 20), default=5, help="after the first try (5)"
        )
        parser.add_argument("--timeout", type=_positive, default=60.0, help="seconds for one call (60)")
        parser.add_argument("--price-in", type=_amount, default=Decimal(0), help="of a million tokens asked")
        parser.add_argument(
            "--price-out", type=_amount, default=Decimal(0), help="of a million tokens answered"
        )
        parser.add_argument(
            "--most-cost", type=_amount, help="stop when the calls of this run have cost so much"
        )
        parser.add_argument("--limit", type=_integer_between(1, 2**31), help="stop after so many items")
        parser.add_argument("--address", type=_address, help="of a Touchstone, to judge over its REST API")
        parser.add_argument(
            "--token-env", metavar="NAME", help="the variable that holds the Touchstone's key"
        )
        parser.add_argument(
            "--output", choices=["text", "json"], default="text", help="of the summary (text)"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        logging.getLogger("httpx").setLevel(logging.WARNING)  # else a line a call
        if options["most_cost"] is not None and not (options["price_in"] or options["price_out"]):
            raise CommandError("--most-cost needs --price-in or --price-out")
        if not options["endpoint"]:
            return self._only_make(options)
        if not options["model"]:
            raise CommandError("name the --model")
        with ExitStack() as stack, one_line():
            prompt = Path(options["prompt"]).read_text("utf-8") if options["prompt"] else ""
            if prompt:
                check_prompt(prompt)
            stopped = StopReason()
            stack.enter_context(_Interrupts(stopped))
            run = Run(
                client=self._client(stack, options),
                model=self._model(stack, options),
                prompt=prompt,
                pace=Pace(options["rate"], options["parallel"]),
                purse=Purse(options["price_in"], options["price_out"], options["most_cost"]),
                say=lambda line: self.stderr.write(line, str),
                stopped=stopped,
                most_characters=options["characters"],
                **{name: options[name] for name in ("batch", "parallel", "retries", "limit")},
            )
            summary = run.start()
        self._report(summary, options)

    def _only_make(self, options: dict[str, Any]) -> None:
        if options["address"]:
            raise CommandError("name the --endpoint of the model")
        with one_line():
            made = _machine(options)
        self.stdout.write(f"{made} is a machine assessor of {made.campaign}")

    def _client(self, stack: ExitStack, options: dict[str, Any]) -> Client:
        if not options["address"]:
            return Direct(_machine(options))
        try:
            campaign = uuid.UUID(options["campaign"])
        except ValueError:
            raise CommandError(
                "over --address the campaign is named by its id: it is in its pages' addresses"
            ) from None
        key = _secret(options["token_env"])
        if not key:
            raise CommandError("--address needs --token-env: the name of the variable that holds the key")
        self._warn_of_clear_text(options["address"])
        http = stack.enter_context(_http(30.0, 1))
        return Remote(options["address"], campaign, http, key)

    def _model(self, stack: ExitStack, options: dict[str, Any]) -> Model:
        key = _secret(options["api_key_env"])
        if key:
            self._warn_of_clear_text(options["endpoint"])
        return Model(
            endpoint=options["endpoint"],
            name=options["model"],
            key=key,
            timeout=options["timeout"],
            parameters={"temperature": 0, **dict(options["parameters"])},
            client=stack.enter_context(_http(options["timeout"], options["parallel"])),
        )

    def _warn_of_clear_text(self, address: str) -> None:
        parts = urlsplit(address)
        if parts.scheme == "http" and not _is_loopback(parts.hostname or ""):
            self.stderr.write(f"The key travels unencrypted to {parts.hostname}.", str)

    def _report(self, summary: Summary, options: dict[str, Any]) -> None:
        if options["output"] == "json":
            facts = {"campaign": options["campaign"], "model": options["model"], **summary.as_json()}
            self.stdout.write(json.dumps(facts))
        else:
            calls = ", ".join(f"{n:,} {status}" for status, n in sorted(summary.calls.items())) or "none"
            self.stdout.write(
                f"{summary.judged:,} judged, {summary.failed:,} failed; calls: {calls}; cost {summary.cost:f}; "
                f"ended: {summary.reason}"
            )
        if summary.reason not in GOOD_ENDS:
            raise CommandError(ENDS.get(summary.reason, summary.reason))


class _Interrupts:
    """Ctrl-C and SIGTERM let the calls under way end, and their answers be stored; a second Ctrl-C does not wait."""

    def __init__(self, stopped: StopReason) -> None:
        self.stopped = stopped
        self.before: dict[int, Any] = {}

    def __enter__(self) -> None:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self.before[number] = signal.signal(number, self._stop)

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def _stop(self, number: int, _: object) -> None:
        # In a thread: what was interrupted may hold the very lock that this needs.
        threading.Thread(target=self.stopped.record, args=["interrupted"]).start()
        signal.signal(number, self.before[number])


def _http(timeout: float, n_connections: int) -> httpx.Client:
    """Return a client that goes where it is told: no proxy, no .netrc, no redirect; the system's certificates."""
    return httpx.Client(
        timeout=httpx.Timeout(timeout, connect=min(10.0, timeout)),
        limits=httpx.Limits(max_connections=n_connections),
        verify=ssl.create_default_context(),
        trust_env=False,
    )


def _machine(options: dict[str, Any]) -> Assessor:
    if not options["username"]:
        raise CommandError("name the machine with --as")
    return add_machine(campaign=_campaign(options["campaign"]), username=options["username"])


def _campaign(name: str) -> Campaign:
    try:
        found = Campaign.objects.filter(pk=uuid.UUID(name)).first()
    except ValueError:
        found = Campaign.objects.filter(name=name, deleted_at=None).first()
    if found is None:
        raise CommandError(f"there is no campaign {name!r}")
    return found


def _secret(variable: str | None) -> str:
    if not variable:
        return ""
    value = os.environ.get(variable, "").strip()
    if not value:
        raise CommandError(f"the variable {variable} is not set")
    if not (value.isascii() and value.isprintable()):
        raise CommandError(f"the variable {variable} holds no key")
    return value


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _address(text: str) -> str:
    try:
        parts = urlsplit(text)
        is_address = parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.username
        httpx.URL(text)
    except (ValueError, httpx.InvalidURL):
        is_address = False
    if not is_address:
        raise ArgumentTypeError("an address begins with http:// or https:// and names a host")
    return text


def _integer_between(least: int, most: int) -> Any:
    def parse(text: str) -> int:
        number = int(text)
        if not least <= number <= most:
            raise ArgumentTypeError(f"{number} is not in {least}..{most}")
        return number

    parse.__name__ = "whole number"
    return parse


def _positive(text: str) -> float:
    number = float(text)
    if not 0 < number < 1e6:
        raise ArgumentTypeError(f"{text} is not more than 0 and less than a million")
    return number


def _amount(text: str) -> Decimal:
    try:
        amount = Decimal(text)
    except InvalidOperation:
        raise ArgumentTypeError(f"{text} is no amount") from None
    if not 0 <= amount < 1_000_000:
        raise ArgumentTypeError(f"{text} is not in 0..999999")
    return amount


def _parameter(text: str) -> tuple[str, Any]:
    name, _, value = text.partition("=")
    if name in ("model", "messages", "stream", "n", ""):
        raise ArgumentTypeError(f"{name!r} cannot be set")
    try:
        return name, json.loads(value)
    except ValueError:
        raise ArgumentTypeError(f"{value!r} is no JSON; a text needs quotes") from None
