"""`manage.py simulate_assessors`: fill a campaign with judgments of simulated assessors who err in known ways."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from analytics.services.recomputation import queue_recomputation
from judging.erring_assessors import BEHAVIOURS
from sampling.management.commands.draw import find_campaign, one_error
from touchstone.demo.filling import fill
from touchstone.demo.mixes import parse_mix

EPILOG = "Behaviours: honest (skill), " + ", ".join(
    f"{one.key} ({', '.join(one.parameters)})" for one in BEHAVIOURS
)


class Command(BaseCommand):
    help = (
        "Let simulated assessors judge a campaign without people; its screens then say that it is simulated."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.epilog = EPILOG
        parser.add_argument("campaign", help="the campaign's name or id")
        parser.add_argument(
            "--mix",
            required=True,
            metavar="BEHAVIOUR[:PARAMETER...]=NUMBER,...",
            help="who judges, such as honest=6,optimist:1:16=1,pattern:01=1,sticky:.5=1",
        )
        parser.add_argument(
            "--share", type=float, default=1.0, help="of the open places that they fill (default 1)"
        )
        parser.add_argument(
            "--most-each", type=int, help="judgments of one assessor at most (default: no limit)"
        )
        parser.add_argument("--seed", type=int, required=True, help="of the errors and the seconds")
        parser.add_argument("--output", choices=["table", "json"], default="table")

    def handle(
        self,
        *,
        campaign: str,
        mix: str,
        share: float,
        most_each: int | None,
        seed: int,
        output: str,
        **options: Any,
    ) -> None:
        with one_error():
            members = parse_mix(mix)
            stored_campaign = find_campaign(campaign)
            n = fill(stored_campaign, members, share=share, seed=seed, most_each=most_each)
        queue_recomputation(campaign=stored_campaign)
        if output == "json":
            self.stdout.write(json.dumps({"n_judgments": n, "assessors": [one.username for one in members]}))
        else:
            self.stdout.write(
                f"{n:,} judgments by {len(members)} simulated assessors in {stored_campaign.name}"
            )
