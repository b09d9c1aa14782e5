"""`manage.py plan CAMPAIGN`: what to buy next for a run or a pair, as the page and the API say it."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from analytics.estimation.claims import CLAIMS
from analytics.services.plan_answers import plan_json, plan_lines
from analytics.services.plan_terms import USUAL_POWER, TermsRefused, terms_of
from analytics.services.planning import plan
from sampling.frames import FrameRefused
from sampling.management.commands.draw import find_campaign

ASKED = ("run", "against", "measure", "difference", "money", "cost_judgment", "cost_gold", "claim", "family")


class Command(BaseCommand):
    help = "Say what to buy next: judgments, gold at random, gold on named documents, or topics."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("campaign", help="the campaign's name or id")
        parser.add_argument(
            "--run", default="", help="the run, or the first of the pair (default: the usual pair)"
        )
        parser.add_argument("--against", default="", help="the second run of the pair")
        parser.add_argument("--measure", default="", help="a sum over documents, such as DCG@10")
        parser.add_argument("--difference", type=float, help="the smallest that matters (default: none)")
        parser.add_argument("--power", type=float, default=100 * USUAL_POWER, help="to detect it, in percent")
        parser.add_argument("--money", type=float, help="what can be spent")
        parser.add_argument("--cost-judgment", type=float, help="default: the campaign's")
        parser.add_argument("--cost-gold", type=float, help="default: the campaign's")
        parser.add_argument("--claim", choices=[claim.key for claim in CLAIMS], default="")
        parser.add_argument(
            "--family",
            default="",
            help="question, all, baseline:RUN or runs:RUN,RUN (default: the declared family)",
        )
        parser.add_argument("--output", choices=["table", "json"], default="table")

    def handle(self, *, campaign: str, output: str, **options: Any) -> None:
        stored = find_campaign(campaign)
        asked = {name: options[name] for name in ASKED}
        try:
            found = plan(campaign=stored, terms=terms_of(stored, **asked, power=options["power"] / 100))
        except (TermsRefused, FrameRefused) as refusal:
            raise CommandError(str(refusal)) from refusal
        if output == "json":
            self.stdout.write(json.dumps({"campaign": str(stored.pk), **plan_json(found)}, indent=2))
            return
        for line in plan_lines(found):
            self.stdout.write(line)
