"""Try to tell gold checks from other items: by everything a browser sees, by time, by order, and in company.

    python benchmarks/gold.py --seconds 240

Five questions; the first three are asked of the real product on servers of its own, in a throw-away folder:

- "http": up to 2,000 gold and 2,000 ordinary presentations over HTTP. A gradient-boosted classifier on all
  observables is judged on folds it has not seen;
- "services": 500 sessions of claims and submits, each timed on its own. Sign tests on pairs that are near in time;
  whether gold has a place of its own in a session, a gap of its own, or a place of its own in a topic;
- "controls": the same with a sleep of a millisecond on gold, and with a scheduler that gives gold first. Both must be
  caught: else the program is blind and the other numbers prove nothing;
- "colluders": assessors who tell each other what they have seen, in a simulation that is compared with the product
  on a small campaign;
- "managers": the same while a manager requeues, suspends, audits and tops up, in any order; and in the product, what B
  meets again of what A had judged.

JSON on standard output; tables on standard error, unless --json.
"""

import argparse
import json
import math
import os
import sys
import warnings
from pathlib import Path
from typing import Any

# The repository comes before this folder: benchmarks/judging.py is not the package `judging`.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "platform"))

os.environ.setdefault("OMP_NUM_THREADS", "1")  # the classifier's threads would wait for each other

import numpy as np
from parts import colluders, managers, presentations, telling
from parts.throwaway import folder, in_child, migrated
from scipy.stats import fisher_exact

SEED = 20
PARTS = {"http": 0.4, "services": 0.3, "controls": 0.3, "colluders": 0.0, "managers": 0.0}  # of the seconds
N_EACH = 2000  # gold and ordinary presentations for the classifier
N_SESSIONS = 500
AUC_LIMIT, P_LIMIT, INTERVAL_LIMIT, COLLUDERS_LIMIT = 0.53, 0.005, 0.25, 0.60
SIZES = (2, 5, 10)  # colluders


# -- what a browser sees -----------------------------------------------------------------------------------------


def classify(seen: list[presentations.Seen], n_each: int, n_shuffled: int) -> dict[str, Any]:
    """Return how well a classifier recognises gold, and what it reaches by chance."""
    presentations.add_context(seen)
    features, is_gold, names = presentations.matrix(seen)
    chosen = telling.matched(is_gold, n_each, np.random.default_rng(SEED))
    features, is_gold = features[chosen], is_gold[chosen]
    n_gold, n_ordinary = int(is_gold.sum()), int((~is_gold).sum())
    shuffled = telling.shuffled_aucs(features, is_gold, SEED, n_shuffled)
    return {
        "gold": n_gold,
        "ordinary": n_ordinary,
        "observables": names,
        "auc": round(telling.cross_validated_auc(features, is_gold, SEED), 4),
        "null_quantile_995": round(telling.null_quantile(n_gold, n_ordinary), 4),
        "largest_of_shuffled": round(max(shuffled), 4) if shuffled else None,
        "n_shuffled": n_shuffled,
    }


def pairs(seen: list[presentations.Seen]) -> dict[str, Any]:
    """Return a sign test for each thing that was timed."""
    rng = np.random.default_rng(SEED)
    tests = {}
    for name in seen[0].milliseconds:
        ordered = presentations.in_order(seen, name)
        times = np.array([one.milliseconds[name] for one in ordered])
        is_gold = np.array([one.is_gold for one in ordered])
        tests[name] = telling.sign_test(telling.pair_differences(times, is_gold, rng))
    return tests


def places(seen: list[presentations.Seen]) -> dict[str, Any]:
    """Return whether gold has places of its own in sessions, gaps, topics."""
    whole = [
        [one.is_gold for one in session]
        for session in presentations.sessions_of(seen).values()
        if len(session) == presentations.SESSION
    ]
    gold_first, n_first, gold_else, n_else = presentations.first_of_topic(seen)
    table = [[gold_first, n_first - gold_first], [gold_else, n_else - gold_else]]
    return {
        "position": telling.position_test(whole),
        "gap": telling.gap_test(whole),
        "first_of_topic": {
            "presentations": n_first,
            "share_gold": round(gold_first / max(n_first, 1), 4),
            "share_gold_elsewhere": round(gold_else / max(n_else, 1), 4),
            "p": float(fisher_exact(table).pvalue),
        },
    }


def measure_http(seconds: float) -> dict[str, Any]:
    n_sessions = math.ceil(2.4 * N_EACH / presentations.SESSION)
    world = presentations.make_world("http", n_sessions, n_topics=2)
    presentations.over_http(world, 5, SEED + 1, n_sessions=4, n_each=3)  # what is slow only once
    world = presentations.make_world("http measured", n_sessions)
    seen = presentations.over_http(world, seconds, SEED, n_sessions)
    return {"presentations": len(seen), **classify(seen, N_EACH, 8), "pairs": pairs(seen)}


def measure_services(seconds: float) -> dict[str, Any]:
    world = presentations.make_world("services", N_SESSIONS)
    seen = presentations.through_services(world, seconds, SEED, N_SESSIONS)
    return {**control(seen), "pairs": pairs(seen), **places(seen)}


def measure_controls(seconds: float) -> dict[str, Any]:
    controls: dict[str, Any] = {}
    world = presentations.make_world("sleep in services", N_SESSIONS)
    with presentations.sleep_on_gold(world):
        seen = presentations.through_services(world, 0.6 * seconds, SEED, N_SESSIONS)
        controls["sleep_in_services"] = {**control(seen), "pairs": pairs(seen)}
    world = presentations.make_world("sleep over http", 120, n_topics=60)
    with presentations.sleep_on_gold(world):
        seen = presentations.over_http(world, 0.25 * seconds, SEED, 120)
        controls["sleep_over_http"] = {**control(seen), "pairs": pairs(seen)}
    world = presentations.make_world("gold first", 120, n_topics=60)
    with presentations.gold_first():
        seen = presentations.over_http(world, 0.15 * seconds, SEED, 120)
        controls["gold_first"] = {**control(seen), **places(seen)}
    return controls


def control(seen: list[presentations.Seen]) -> dict[str, Any]:
    classified = classify(seen, N_EACH, 0)
    return {
        "presentations": len(seen),
        "auc": classified["auc"],
        "null_quantile_995": classified["null_quantile_995"],
    }


# -- in company ----------------------------------------------------------------------------------------------------


def settings() -> list[tuple[str, colluders.Setting]]:
    """Return the campaigns of the table: assessors, k, gold answers enough or two a topic, decoys for each check."""
    chosen = []
    for n_assessors in (10, 20, 50):
        for k in (1, 3):
            chosen.append(("enough", colluders.Setting(n_assessors, k, 1000, 0)))
            for decoys in (0, 1, 2):
                chosen.append(("2 a topic", colluders.Setting(n_assessors, k, 2, decoys)))
                chosen.append(
                    ("2 a long topic", colluders.Setting(n_assessors, k, 2, decoys, n_topics=2, n_items=400))
                )
    return chosen


def measure_colluders(n_campaigns: int) -> list[dict[str, Any]]:
    rows = []
    for gold, setting in settings():
        gains = colluders.collude(setting, n_campaigns, SIZES, SEED)
        plan = setting.plan()
        rows.append(
            {
                "assessors": setting.n_assessors,
                "k": setting.judgments_per_item,
                "gold": gold,
                "decoys": setting.decoys_per_check,
                "exposures": plan.exposures,
                "share_of_checks": round(plan.rate, 4),
                "gain": {size: None if gain is None else rounded(vars(gain)) for size, gain in gains.items()},
            }
        )
    return rows


def rounded(values: dict[str, float]) -> dict[str, float | None]:
    return {name: None if math.isnan(value) else round(value, 3) for name, value in values.items()}


def compare_simulation() -> dict[str, Any]:
    """Run one small campaign through the product and many in the simulation: how often items and checks are seen."""
    setting = colluders.Setting(6, 3, 60, 0, n_topics=12, n_items=15, gold_rate=0.3)
    world = presentations.make_world(
        "compared",
        setting.n_assessors,
        n_topics=setting.n_topics,
        n_items=setting.n_items,
        k=setting.judgments_per_item,
        rate=setting.gold_rate,
        n_gold=setting.n_gold,
    )
    real = presentations.as_simulated(world, setting, SEED)
    simulated = [colluders.Campaign(setting, SEED + n).run() for n in range(40)]
    expected = np.array([summary(one) for one in simulated])
    spread = expected.std(axis=0, ddof=1)
    names = ["presentations", "share_of_checks", "mean_times_a_met_check_is_seen", "auc_count_of_3"]
    return {
        name: {
            "product": round(float(of_product), 3),
            "simulation": round(float(mean), 3),
            "standard_deviation": round(float(deviation), 3),
        }
        for name, of_product, mean, deviation in zip(
            names, summary(real), expected.mean(axis=0), spread, strict=True
        )
    }


def summary(campaign: colluders.Campaign) -> tuple[float, float, float, float]:
    all_seen = colluders.pool(campaign, set(range(campaign.setting.n_assessors)))
    three = colluders.pool(campaign, {0, 1, 2})
    return (
        len(campaign.sightings),
        float(all_seen.times_seen[all_seen.is_checked].sum() / all_seen.times_seen.sum()),
        float(all_seen.times_seen[all_seen.is_gold].mean()),
        float(colluders.roc_auc_score(three.is_gold, three.times_seen)),
    )


# -- report ----------------------------------------------------------------------------------------------------------


def verdict(result: dict[str, Any]) -> dict[str, bool]:
    """Return which demands are met and which controls are caught."""
    http, services, controls = result["http"], result["services"], result["controls"]
    tests = {**{f"http {name}": test for name, test in http["pairs"].items()}, **services["pairs"]}
    limits = {
        f"latency of {name}": test["p"] > P_LIMIT
        and max(map(abs, test["interval_milliseconds"])) <= INTERVAL_LIMIT
        for name, test in tests.items()
    }
    return {
        "classifier over HTTP": http["auc"] <= AUC_LIMIT,
        "classifier on times of the services": services["auc"] <= AUC_LIMIT,
        **limits,
        "position": min(services["position"][p] for p in ("chi_square_p", "kolmogorov_smirnov_p")) > P_LIMIT,
        "gap": services["gap"]["chi_square_p"] > P_LIMIT,
        "first of topic": services["first_of_topic"]["p"] > P_LIMIT,
        "control: sleep caught by the classifier": controls["sleep_over_http"]["auc"]
        > controls["sleep_over_http"]["null_quantile_995"],
        "control: sleep caught by the sign test": controls["sleep_in_services"]["pairs"]["claim"]["p"]
        < P_LIMIT,
        "control: gold first caught by the classifier": caught(controls["gold_first"]),
        "control: gold first caught by its positions": controls["gold_first"]["position"]["chi_square_p"]
        < P_LIMIT,
    }


def caught(controls: dict[str, Any]) -> bool:
    return bool(controls["auc"] > controls["null_quantile_995"])


def table(rows: list[dict[str, Any]]) -> str:
    """Return the colluders' table in Markdown."""
    head = (
        "assessors,k,gold,decoys,shown at most,checks,AUC of 2,AUC of 5,AUC of 10,flagged by 5,of those gold"
    )
    names = head.split(",")
    lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    for row in rows:
        gains = [row["gain"].get(size, row["gain"].get(str(size))) for size in SIZES]
        areas = ["" if gain is None else f"{best(gain):.2f}" for gain in gains]
        five = gains[1]
        often = "" if five is None else f"{five['flagged']:.0%}"
        precision = "" if five is None or not five["flagged"] else f"{five['precision']:.0%}"
        cells = [row["assessors"], row["k"], row["gold"], row["decoys"], row["exposures"]]
        lines.append(
            "| "
            + " | ".join(map(str, [*cells, f"{row['share_of_checks']:.1%}", *areas, often, precision]))
            + " |"
        )
    return "\n".join(lines)


def best(gain: dict[str, float]) -> float:
    """Return the area of the better attack: counting (either way round), or the trained one."""
    return max(gain["auc_count"], 1 - gain["auc_count"], gain["auc_trained"])


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def measure(part: str, seconds: float, n_campaigns: int) -> Any:
    if part == "colluders":
        with folder() as place, migrated(place / "servers"):
            compared = compare_simulation()
        return {"compared": compared, "rows": measure_colluders(n_campaigns)}
    if part == "managers":
        with folder() as place, migrated(place / "servers"):
            met = {
                "checks come back": managers.met_again(brings_checks_back=True),
                "control": managers.met_again(brings_checks_back=False),
            }
        rows = managers.measure(n_campaigns, SEED)
        return {"met": met, "rows": rows, "verdict": managers.verdict(rows, met)}
    with folder() as place, migrated(place / "servers"):
        return {"http": measure_http, "services": measure_services, "controls": measure_controls}[part](
            seconds
        )


def main() -> None:
    parser = argparse.ArgumentParser(description="Try to tell gold checks from other items.")
    parser.add_argument("--seconds", type=float, default=240, help="of presentations, over all parts")
    parser.add_argument("--campaigns", type=int, default=40, help="simulated for each row of the table")
    parser.add_argument("--json", action="store_true", help="nothing but JSON")
    parser.add_argument("--part", choices=PARTS, help="only this one, for all the seconds")
    arguments = parser.parse_args()
    warnings.filterwarnings("ignore", message="No directory at")  # static files are not collected here
    if arguments.part:
        result = measure(arguments.part, arguments.seconds, arguments.campaigns)
    else:
        options = [f"--campaigns={arguments.campaigns}"]
        result = {
            part: in_child(__file__, part, share * arguments.seconds, *options)
            for part, share in PARTS.items()
        }
        result["met"] = verdict(result) | result["managers"]["verdict"]
        if not arguments.json:
            say(table(result["colluders"]["rows"]))
            say("\n".join(f"{'yes' if met else 'NO':4}{name}" for name, met in result["met"].items()))
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
