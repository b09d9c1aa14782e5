import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from judging.models import Campaign
from sampling.management.commands.draw import find_campaign, one_error
from sampling.models import Audit, AuditTier, GoldFit
from sampling.serializers.audits import audit_json
from sampling.services.auditing import audit
from sampling.strategies import DEFAULT_STRATEGY, strategy_keys, strategy_of


class Command(BaseCommand):
    help = "Select judged items at random for the gold or the silver tier, with recorded probabilities."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("campaign", help="the campaign's name or id")
        parser.add_argument(
            "--items", type=int, help="items this audit adds, expected number; a census has none"
        )
        parser.add_argument(
            "--total", type=int, help="items in all audits of the tier, at most (default: no limit)"
        )
        parser.add_argument("--strategy", choices=strategy_keys(), default=DEFAULT_STRATEGY)
        parser.add_argument("--tier", choices=AuditTier.values, default=AuditTier.GOLD)
        parser.add_argument(
            "--gold-fit",
            choices=GoldFit.values,
            help="of the first audit that learns: what predictions of gold learn from",
        )
        parser.add_argument(
            "--measure",
            default="",
            help="what influence goes by, as nDCG@10 (default: that of the newest draw)",
        )
        parser.add_argument("--run", default="", help="of a census: the run, or the first of the pair")
        parser.add_argument("--against", default="", help="of a census of a pair: the second run")
        parser.add_argument("--seed", type=int, help="of a tier's first audit; later ones keep it")
        parser.add_argument(
            "--with",
            dest="joined",
            metavar="CAMPAIGN",
            help="draw with the random numbers of this campaign's audits: one audit of the documents of both",
        )
        parser.add_argument("--output", choices=["table", "json"], default="table")

    def handle(self, *, campaign: str, output: str, **options: Any) -> None:
        with one_error():
            stored_campaign = find_campaign(campaign)
            made = _make_audit(stored_campaign, options)
        if output == "json":
            self.stdout.write(json.dumps({"audit": audit_json(made) if made else None}, indent=2))
        elif made is None:
            self.stdout.write(
                "nothing to audit: no item is completely judged yet, or all that was asked for is audited"
            )
        else:
            self.stdout.write(_words(made, stored_campaign))


def _make_audit(campaign: Campaign, options: dict[str, Any]) -> Audit | None:
    total = options["total"]
    for name, number in (("--items", options["items"]), ("--total", total)):
        if number is not None and number < 1:
            raise ValueError(f"{name} must be at least 1, got {number}")
    is_census = strategy_of(options["strategy"]).takes_all
    if options["items"] is None and not is_census:
        raise ValueError("--items is required: how many items this audit adds (only a census has none)")
    if total is None and not is_census:
        total = sum(campaign.draws.values_list("n_drawn", flat=True))
    return audit(
        campaign=campaign,
        items_each_time=options["items"],
        items_in_total=total,
        strategy=options["strategy"],
        tier=options["tier"],
        gold_fit=options["gold_fit"],
        measure=options["measure"],
        run=options["run"],
        against=options["against"],
        seed=options["seed"],
        joined=find_campaign(options["joined"]) if options["joined"] else None,
    )


def _words(made: Audit, campaign: Campaign) -> str:
    return (
        f"audit {made.sequence} of {campaign.name}: {made.n_selected:,} of {made.n_eligible:,} judged items are with "
        f"the {made.tier} tier (strategy {made.strategy} for {made.measure}{_of_runs(made)}, "
        f"{made.expected_in_total:.1f} expected in all its audits, seed {made.seed})"
    )


def _of_runs(made: Audit) -> str:
    against = f" against {made.against}" if made.against else ""
    return f" of {made.run}{against}" if made.run else ""
