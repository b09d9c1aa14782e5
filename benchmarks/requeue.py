"""Measure what requeueing flagged assessors does to the numbers of a campaign like the demo's third.

    python benchmarks/requeue.py [--campaigns 3] [--seed 1]

Ten honest assessors and one each constant, alternating, sticky, disgruntled and optimist judge 300 documents each; 300
documents are audited. The numbers are computed and the log is screened. Whoever is flagged is suspended, and their
judgments are made again by the honest ones. Then the numbers are computed again, and both are compared with the value
from the true grades of all documents that were drawn. Prints JSON: by campaign who was flagged, and the estimates of
the pair that was drawn for, before and after; over all campaigns the mean distance from the truth and the mean
half-width.
"""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "platform"))

from parts import throwaway

# The demo's systems import numba, which looks for the library coverage and would find benchmarks/coverage.py.
sys.path.remove(str(Path(__file__).resolve().parent))

PAIR, METHODS = ("bm25-description", "fusion"), ("naive", "corrected", "true")
N_HONEST = 10


def estimates(campaign: Any) -> dict[str, Any]:
    """Compute the numbers anew; return the pair's difference by method, with its half-width."""
    from analytics.services.recomputation import recompute

    rows = recompute(campaign=campaign).estimates.filter(run__run_id__in=PAIR, run_b__run_id__in=PAIR)
    found = {}
    for row in rows.filter(measure=campaign.draws.latest("id").parameters["measure"], method__in=METHODS):
        if row.value is None:
            raise SystemExit(f"no number by the method {row.method}: {row.refusal}")
        found[row.method] = {"value": row.value, "half_width": (row.high - row.low) / 2}
    return found


def flagged(campaign: Any) -> dict[str, list[str]]:
    """Screen the log; return by user name the tests that flag."""
    from analytics.services.screening import screen_campaign

    made = screen_campaign(campaign=campaign)
    found: dict[str, list[str]] = {}
    for flag in made.computation.flags.select_related("assessor__user").order_by("p_adjusted"):
        found.setdefault(flag.assessor.user.username, []).append(flag.kind)
    return found


def requeue_flagged(campaign: Any, names: list[str], seed: int) -> int:
    """Suspend these assessors and have the honest ones judge what they judged; return how many judgments that was."""
    from judging.models import Assessor
    from judging.services.campaigns import set_status
    from judging.services.leases import requeue
    from touchstone.demo.filling import fill
    from touchstone.demo.mixes import parse_mix

    n = 0
    for assessor in campaign.assessors.filter(user__username__in=names):
        set_status(assessor=assessor, status=Assessor.Status.SUSPENDED, actor=None)
        n += requeue(assessor=assessor, actor=None)
    left = [one for one in parse_mix(f"honest={N_HONEST}") if one.username not in names]
    fill(campaign, left, seed=seed)
    return n


def one_campaign(command: Any, number: int, seed: int) -> dict[str, Any]:
    """Make a campaign, requeue whom its log flags, and return both states."""
    campaign = command.erring_campaign(f"Errors, {number}", seed)
    before = estimates(campaign)
    flags = flagged(campaign)
    n = requeue_flagged(campaign, list(flags), seed + 1)
    return {"flags": flags, "requeued": n, "before": before, "after": estimates(campaign)}


def summary(campaigns: list[dict[str, Any]]) -> dict[str, Any]:
    """Return by state and method the mean distance from the truth, and the mean half-width."""
    return {
        state: {
            method: {
                "distance": _mean(
                    [abs(one[state][method]["value"] - one[state]["true"]["value"]) for one in campaigns]
                ),
                "half_width": _mean([one[state][method]["half_width"] for one in campaigns]),
            }
            for method in METHODS[:2]
        }
        for state in ("before", "after")
    }


def _mean(values: list[float]) -> float:
    return round(sum(values) / len(values), 6)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--campaigns", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with throwaway.folder() as root, throwaway.migrated(root / "servers"):
        from django.core.management import call_command

        from touchstone.management.commands.load_demo import Command

        os.environ.pop(
            "DATABASE_URL"
        )  # the demo refuses a database of the user's own; this one is thrown away
        call_command("load_demo", stdout=sys.stderr)
        command = Command(stdout=sys.stderr)
        campaigns = [
            one_campaign(command, number, arguments.seed + 10 * number)
            for number in range(arguments.campaigns)
        ]
    names = [name for one in campaigns for name in one["flags"]]
    told = {
        "benchmark": "requeue",
        "seed": arguments.seed,
        "honest_flagged": sum(name.startswith("sim-honest") for name in names),
        "honest": N_HONEST * len(campaigns),
        "summary": summary(campaigns),
        "campaigns": campaigns,
    }
    print(json.dumps(told, indent=2))


if __name__ == "__main__":
    main()
