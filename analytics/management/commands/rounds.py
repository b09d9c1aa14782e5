"""`manage.py rounds FIRST RUN SECOND RUN MEASURE`: a run in one round of judging against a run in another."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from analytics.estimation.rounds import CLAIMS
from analytics.services.rounds import (
    compare_rounds,
    forbidden_rounds,
    rounds_sentence,
    rounds_under_conditions,
)
from analytics.services.rounds.question import AUDITS, RoundChoice, RoundsQuestion, RoundsRefused
from sampling.frames import FrameRefused
from sampling.management.commands.draw import find_campaign


class Command(BaseCommand):
    help = (
        "Compare a run in one campaign with a run in another, or before a date with after it: the difference of the "
        "corrected numbers for topics like these and for these topics, and what the papers' methods say. Nothing is "
        "stored."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("first", help="the first round's campaign: its name or id")
        parser.add_argument("first_run", help="the run in the first round")
        parser.add_argument("second", help="the second round's campaign, which may be the same with dates")
        parser.add_argument("second_run", help="the run in the second round")
        parser.add_argument("measure", help="a sum over documents, such as DCG@10 or P@3")
        parser.add_argument("--until", default="", help="the first round ends before this date (UTC)")
        parser.add_argument("--since", default="", help="the second round starts at this date (UTC)")
        parser.add_argument("--claim", choices=CLAIMS, default=CLAIMS[0])
        audits = "; ".join(f"{key}: {words}" for key, words in AUDITS.items())
        parser.add_argument("--audit", choices=list(AUDITS), default="own", help=audits)
        parser.add_argument("--output", choices=["table", "json"], default="table")

    def handle(self, *args: Any, **options: Any) -> None:
        first, second = find_campaign(options["first"]), find_campaign(options["second"])
        question = RoundsQuestion(
            RoundChoice(str(first.pk), options["first_run"], until=options["until"]),
            RoundChoice(str(second.pk), options["second_run"], since=options["since"]),
            options["measure"],
            options["claim"],
            options["audit"],
        )
        try:
            made = compare_rounds(question=question, first=first, second=second)
        except (RoundsRefused, FrameRefused) as refusal:
            raise CommandError(str(refusal)) from refusal
        shown = rounds_under_conditions(made, first, second)
        if options["output"] == "json":
            self.stdout.write(json.dumps(shown, indent=2))
            return
        self.stdout.write(rounds_sentence(shown))
        forbidden = forbidden_rounds(first, second)
        if forbidden:
            self.stdout.write(f"One audit may not serve both rounds: {forbidden}.")
        for line in shown["lines"]:
            self.stdout.write(f"{line['name']}: {_numbers(line)}")
        if shown["drift"]:
            self.stdout.write(shown["drift"])


def _numbers(line: dict[str, Any]) -> str:
    if line["refusal"]:
        return f"not estimable: {line['refusal']}"
    said = []
    if line["value"] is not None:
        said.append(f"{line['value']:+.6f}")
    if line["low"] is not None:
        said.append(f"95 % confidence interval {line['low']:.6f} to {line['high']:.6f}")
    if line["p_value"] is not None:
        said.append(f"p = {line['p_value']:.6f}")
    return ", ".join(said)
