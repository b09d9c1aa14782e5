"""Is what `evaluate` says of a release's own runs and pairs what the release records, and what the API says?

    python benchmarks/demo_release.py
    python benchmarks/demo_release.py --address http://127.0.0.1:8000 --key touchstone_... [--campaign NAME ...]

Without an address it starts the demo on an empty folder, on loopback, waits until its simulated assessors have judged
and been audited, and ends it afterwards. With one it takes the demo, or any Touchstone, that runs there, with a
manager's key. Of each campaign a release is made and downloaded.

Every row of estimates.json by the methods that `evaluate` has, of every published run in every measure, and of every
pair the reported differences, is compared with `touchstone_ir.evaluate`; so is the API's row of the computation that
the release holds: values, standard errors, degrees of freedom, both intervals, both p, both p adjusted (of
comparisons.json), shares of judged documents. A number that one has and another has not is a difference without a size;
but of a run that returns what could not be drawn, the server does not keep in which topics, and has no share.

Control: one recorded number, altered by 1e-6, must be found.

JSON on standard output; exit code 1 where something differs by more than 1e-9, or where the control is not found.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from parts.demo_process import listen, started_demo

import touchstone_ir as ts
from analytics.methods import REPORTED
from analytics.releases.reading import open_release
from touchstone_ir.client import Client

HERE = Path(__file__).resolve().parents[1]
CAMPAIGNS = tuple(
    f"Judged by {who}: Python's standard library" for who in ("simulated assessors", "assessors who err")
)
TOLERANCE, ALTERED_BY = 1e-9, 1e-6
AS_GIVEN = "naive"  # the method whose number `evaluate` has as `estimate`
CLAIMS = {"these-topics": "", "topics-like-these": "topics_"}
ENDS = ("low", "high")
OF_RUN = ("value", "standard_error", *ENDS, "degrees_of_freedom")
SHARES = ("judged_share", "gold_share")
COUNTS = ("n_judgments", "n_items", "n_audited", "n_gold_checks", "n_batches", "n_audits")
FEWEST_AUDITED = 100  # of the demo, whose campaigns are audited after they were judged
QUIET_SECONDS, LONGEST_WAIT = 45, 1500

Key = tuple[str, str, str, str | None]  # method, measure, run, against
Numbers = dict[Key, dict[str, float | None]]


# -- what each says ----------------------------------------------------------------------------------------------


def recorded_numbers(release: Path) -> tuple[Numbers, dict[str, Any]]:
    """Return what the release records, with p adjusted in its family; and what it says of its computation."""
    with open_release(release) as opened:
        told, compared = opened.value("estimates.json"), opened.value("comparisons.json")
    found: Numbers = {key_of(row): dict(row) for row in told["estimates"] if is_compared(row)}
    for row in compared["comparisons"]:
        own = found[REPORTED.key, row["measure"], row["run"], row["run_b"]]
        own |= {f"{prefix}p_adjusted": row[claim]["p_adjusted"] for claim, prefix in CLAIMS.items()}
    return found, told["computation"]


def key_of(row: Mapping[str, Any]) -> Key:
    return row["method"], row["measure"], row["run"], row["run_b"]


def is_compared(row: Mapping[str, Any]) -> bool:
    """Return whether `evaluate` has such a number: of runs as given and reported, of pairs the reported one."""
    return row["method"] == REPORTED.key or (row["method"] == AS_GIVEN and row["run_b"] is None)


def evaluated_numbers(release: Path, keys: list[Key]) -> Numbers:
    """Return what `evaluate` says of the runs and pairs that the release records."""
    runs = sorted({run for _, _, run, against in keys if against is None})
    measures = sorted({measure for _, measure, _, _ in keys})
    found: Numbers = {}
    for one in ts.evaluate(release, runs, measures).details["measures"]:
        for method, name in ((AS_GIVEN, "estimate"), (REPORTED.key, "corrected")):
            these, topics = one[name], one[f"{name}_over_topics"]
            numbers = {field: these.get(field) for field in OF_RUN}
            numbers |= {f"topics_{field}": topics.get(field) for field in OF_RUN[1:-1]}
            numbers |= (
                {field: one[field] for field in ("judged_share", "gold_share")} if has_value(these) else {}
            )
            found[method, one["measure"], one["run"], None] = numbers
    for against in sorted({against for *_, against in keys if against is not None}):
        others = sorted({run for _, _, run, second in keys if second == against})
        for row in ts.evaluate(release, others, measures, against=against).details["comparisons"]:
            numbers = {"value": row["value"]}
            for side in (row, row["other"]):
                prefix = CLAIMS[side["claim"]]
                numbers |= {f"{prefix}{end}": side[end] for end in ENDS}
                numbers |= {f"{prefix}p_value": side["p"], f"{prefix}p_adjusted": side["p_adjusted"]}
            found[REPORTED.key, row["measure"], row["run"], row["against"]] = numbers
    return found


def has_value(numbers: Mapping[str, Any]) -> bool:
    return numbers.get("value") is not None


def answered_numbers(client: Client, campaign: str, computation: int) -> Numbers:
    """Return what the API says of the computation, with p adjusted in the declared family."""
    found: Numbers = {}
    for method in (AS_GIVEN, REPORTED.key):
        for row in client.estimates(campaign, computation=computation, method=method):
            told: Any = {**row, "run_b": row["against"]}
            if not is_compared(told):
                continue
            numbers = dict(told)
            for side in (told, told["other"]):
                numbers[f"{CLAIMS[side['claim']]}p_adjusted"] = side["p_adjusted"]
            found[key_of(told)] = numbers
    return found


# -- comparing ---------------------------------------------------------------------------------------------------


def compare(one: Numbers, other: Numbers, fields: Numbers) -> dict[str, Any]:
    """Compare two sides in the fields that `fields` has of each row; the recorded side says which rows there are."""
    rows: Counter[str] = Counter()
    n_values, n_shares_known_here_alone, largest = 0, 0, 0.0
    differences: list[tuple[Any, ...]] = []
    for key, numbers in one.items():
        if key not in other:
            differences.append((*key, "no such row"))
            continue
        rows[f"{'pairs' if key[3] else 'runs'}, {'with a number' if has_value(numbers) else 'refused'}"] += 1
        for field in fields[key]:
            first, second = numbers.get(field), other[key].get(field)
            if first is None and second is None:
                continue
            if first is None and field in SHARES:
                n_shares_known_here_alone += 1
                continue
            n_values += 1
            distance = math.inf if first is None or second is None else abs(first - second)
            if distance > TOLERANCE:
                differences.append((*key, field, first, second))
            if math.isfinite(distance):
                largest = max(largest, distance)
    return {
        "rows": dict(sorted(rows.items())),
        "n_values": n_values,
        "n_shares_of_evaluate_alone": n_shares_known_here_alone,
        "largest_difference": largest,
        "differences": differences,
    }


def is_altered_number_found(recorded: Numbers, evaluated: Numbers) -> bool:
    """Return whether a recorded number, altered, is the only further difference."""
    key = next(key for key, numbers in recorded.items() if numbers["value"] is not None)
    altered = {**recorded, key: {**recorded[key], "value": (recorded[key]["value"] or 0.0) + ALTERED_BY}}
    before, after = (compare(one, evaluated, evaluated)["differences"] for one in (recorded, altered))
    return [one[:5] for one in after if one not in before] == [(*key, "value")]


# -- where from --------------------------------------------------------------------------------------------------


@contextmanager
def fresh_demo(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield address and a manager's key of a demo on an empty folder."""
    with started_demo(HERE, folder) as process:
        address, _ = listen(process, time.monotonic())
        command = [sys.executable, str(HERE / "manage.py"), "api_token", "mara", "--name", "benchmark"]
        environment = {**os.environ, "TOUCHSTONE_VAR": str(folder)}
        key = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        yield address, key.strip()


def wait_until_judged(client: Client, campaign: str) -> None:
    """Return when the campaign has been audited, and its numbers have not changed for a while."""
    began = changed = time.monotonic()
    before: Any = None
    while (
        before is None or before["n_audited"] < FEWEST_AUDITED or time.monotonic() - changed < QUIET_SECONDS
    ):
        if time.monotonic() - began > LONGEST_WAIT:
            raise SystemExit("the demo's assessors are still judging")
        time.sleep(2)
        now = client.measures(campaign)["computation"]
        if now is not None and (before is None or now["id"] != before["id"]):
            before, changed = now, time.monotonic()


def computation_of(client: Client, campaign: str, told: Mapping[str, Any]) -> int:
    """Return the newest computation that has counted what the release's has."""
    for one in client.http.pages(f"campaigns/{campaign}/computations"):
        if all(one[name] == told[name] for name in COUNTS):
            return int(one["id"])
    raise SystemExit("no computation of the campaign is that of the release")


def sweep(client: Client, campaign: str, release: Path) -> dict[str, Any]:
    began = time.monotonic()
    recorded, computation = recorded_numbers(release)
    evaluated = evaluated_numbers(release, [*recorded])
    seconds = time.monotonic() - began
    answered = answered_numbers(client, campaign, computation_of(client, campaign, computation))
    return {
        "release": release.name,
        "computation": computation,
        "n_runs": len({run for _, _, run, against in recorded if against is None}),
        "n_pairs": len({(run, against) for _, _, run, against in recorded if against}),
        "measures": sorted({measure for _, measure, _, _ in recorded}),
        "evaluate_and_estimates_json": compare(recorded, evaluated, evaluated),
        "evaluate_and_api": compare(answered, evaluated, evaluated),
        "is_control_found": is_altered_number_found(recorded, evaluated),
        "seconds_of_evaluate": round(seconds, 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--address", help="of a Touchstone that runs (default: a demo is started)")
    parser.add_argument("--key", help="an API key of a manager there")
    parser.add_argument(
        "--campaign", action="append", help="its name; may be repeated (default: the demo's two)"
    )
    given = parser.parse_args()
    if (given.address is None) != (given.key is None):
        parser.error("--address and --key belong together")
    names = given.campaign or CAMPAIGNS
    with tempfile.TemporaryDirectory(prefix="touchstone-release-", ignore_cleanup_errors=True) as made:
        if given.address is not None:
            found = [swept_campaign(given.address, given.key, name, Path(made)) for name in names]
        else:
            with fresh_demo(Path(made)) as (address, key):
                with Client(address, key) as client:
                    for name in names:
                        wait_until_judged(client, campaign_named(client, name))
                found = [swept_campaign(address, key, name, Path(made)) for name in names]
    print(json.dumps({"benchmark": "demo_release", "tolerance": TOLERANCE, "campaigns": found}, indent=2))
    sides = [one[name] for one in found for name in ("evaluate_and_estimates_json", "evaluate_and_api")]
    return int(
        any(side["differences"] for side in sides) or not all(one["is_control_found"] for one in found)
    )


def campaign_named(client: Client, name: str) -> str:
    """Return the id of the campaign."""
    found = next((one["id"] for one in client.campaigns() if one["name"] == name), None)
    if found is None:
        raise SystemExit(f"there is no campaign {name!r}")
    return str(found)


def swept_campaign(address: str, key: str, name: str, folder: Path) -> dict[str, Any]:
    """Make a release of the campaign, and compare all it says."""
    with Client(address, key) as client:
        campaign = campaign_named(client, name)
        made = client.make_release(campaign, f"0.{int(time.time())}", "Compared with what it records")
        return {"campaign": name, **sweep(client, campaign, client.download(campaign, made, folder))}


if __name__ == "__main__":
    sys.exit(main())
