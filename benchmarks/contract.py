"""Prove the contract with assessors, or break it: claims of a crowd, judgments sent again, servers killed.

    python benchmarks/contract.py --seconds 300

Four parts, each on servers of its own in a throw-away folder:

- "claims": 24 assessors with two tabs each judge 200 items x 3 to the end, up to 20 times, each time in another order
  and with another look-ahead; every "no work" is compared with the truth. Then three callers ask for the last three
  slots of an item. Control: the usual queryset (SKIP LOCKED and a count in a subquery) under the same crowd;
- "resending": over HTTP, one judgment 8 times at once, after a reply that was cut off, and with another grade;
- "kills": PostgreSQL is killed up to 32 times under 16 clients; and "control", the same without synchronous commit.

JSON on standard output. Expected: over_assigned, duplicates, false_empty, lost and doubled 0; of the controls,
over_assigned > 50 and lost > 0, else the measurement is blind.
"""

import argparse
import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "platform"))

from parts.assessors import WebClient
from parts.claims import N_ASSESSORS, N_ITEMS, TABS, last_items, naive_storm, storm
from parts.kills import measure_services
from parts.resending import measure_resending
from parts.throwaway import folder, in_child, make_campaign, migrated, web

PARTS = {"claims": 0.4, "resending": 0.05, "kills": 0.47, "control": 0.08}  # of the seconds
N_SEEDS = 20
N_CLIENTS, N_KILLS = 16, 32  # of "kills": spread over its seconds
# By turns: how many items a tab is given at once, and whether one request submits and claims.
MODES = [(1, False), (2, True), (2, False), (1, True)]
SUMS = ("assignments", "over_assigned", "duplicates", "empty", "false_empty", "unfilled", "unexplained")


def measure_claims(root: Path, seconds: float) -> dict[str, Any]:
    """Repeat the storm with other seeds as often as the seconds allow, then ask for last items, then the control."""
    with migrated(root) as servers:
        began, storms, longest = time.monotonic(), [], 0.0
        # The first four seeds, one a mode, whatever the seconds.
        while len(storms) < len(MODES) or (
            len(storms) < N_SEEDS and time.monotonic() - began + longest < 0.9 * seconds
        ):
            start, (ahead, is_one_request) = time.monotonic(), MODES[len(storms) % len(MODES)]
            storms.append(storm(seed=len(storms), ahead=ahead, is_one_request=is_one_request))
            longest = max(longest, time.monotonic() - start)
        last = [last_items(seed=0, ahead=ahead) for ahead in (1, 2)]
        return {
            "callers": N_ASSESSORS * TABS,
            "items": N_ITEMS,
            "seeds": len(storms),
            **{name: sum(one[name] for one in storms) for name in SUMS},
            "too_many_ahead": too_many_ahead(storms),
            "faults_seen_by_callers": dict(sum((one["faults"] for one in storms), Counter())),
            "milliseconds": {name: milliseconds(storms, name) for name in ("claim", "submit")},
            "last_items": {name: sum(one[name] for one in last) for name in last[0]},
            "control": naive(servers.database_url, is_unique=False),
            "control_with_unique_pairs": naive(servers.database_url, is_unique=True),
        }


def naive(database_url: str, *, is_unique: bool) -> dict[str, int]:
    """Return the middle one of five runs of the control."""
    runs = [naive_storm(database_url, is_unique=is_unique) for _ in range(5)]
    return sorted(runs, key=lambda run: run["over_assigned"])[2]


def too_many_ahead(storms: list[dict[str, Any]]) -> int:
    """Return in how many storms an assessor held more leases at once than requested."""
    allowed = [MODES[number % len(MODES)][0] for number in range(len(storms))]
    return sum(
        one["too_many_ahead"] > 0 or one["leases_at_once"] > n for one, n in zip(storms, allowed, strict=True)
    )


def milliseconds(storms: list[dict[str, Any]], name: str) -> dict[str, float]:
    """Return quantiles of what one call took, with all callers in one process: its own work and waiting included."""
    seconds = np.concatenate([one["seconds"][name] for one in storms])
    return {f"p{q}": round(1000 * float(np.percentile(seconds, q)), 1) for q in (50, 95, 99)}


def measure_http(root: Path, seconds: float) -> dict[str, Any]:
    with migrated(root):
        campaign = make_campaign(2000, 1)
        with web(root) as address:
            return measure_resending(WebClient(address, campaign.pk, f"{campaign.name}-bob0"), seconds)


def measure(part: str, seconds: float) -> dict[str, Any]:
    with folder() as root:
        if part == "claims":
            return measure_claims(root / "servers", seconds)
        if part == "resending":
            return measure_http(root / "servers", seconds)
        is_durable = part == "kills"
        period = seconds / N_KILLS if is_durable else 0.0
        return measure_services(
            root / "servers", seconds, N_KILLS, N_CLIENTS, durable=is_durable, period=period
        )


def summary(parts: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Put the promises first, then what the controls broke, then all figures."""
    claims, resending, kills, control = (parts[name] for name in PARTS)
    return {
        "over_assigned": claims["over_assigned"] + kills["items_over_k"],
        "duplicates": claims["duplicates"] + claims["too_many_ahead"],
        "false_empty": claims["false_empty"] + claims["last_items"]["false_empty"],
        "acknowledged": kills["acknowledged"],
        "lost": kills["lost"] + kills["wrong"],
        "doubled": kills["doubled"] + kills["phantom"] + resending["wrong_rows"],
        "controls": {
            "over_assigned": claims["control"]["over_assigned"],
            "of_items": claims["control"]["items"],
            "over_assigned_with_unique_pairs": claims["control_with_unique_pairs"]["over_assigned"],
            "acknowledged": control["acknowledged"],
            "lost": control["lost"],
        },
        **parts,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Prove the contract with assessors, or break it.")
    parser.add_argument("--seconds", type=float, default=300, help="over all parts (default 300)")
    parser.add_argument("--json", action="store_true", help="what is printed anyway")
    parser.add_argument("--part", choices=PARTS, help="only this one, for all the seconds")
    arguments = parser.parse_args()
    if arguments.part:
        result = measure(arguments.part, arguments.seconds)
    else:
        parts = {part: in_child(__file__, part, share * arguments.seconds) for part, share in PARTS.items()}
        result = summary(parts)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
