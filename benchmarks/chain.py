"""Measure how often the stored 95 % confidence intervals hold the truth: the product's whole chain on a real
PostgreSQL.

    python benchmarks/chain.py [--repetitions 400] [--seed 1] [--noise popularity class_conditional] [--processes 2]
                               [--batches 2 [--learn]] [--judged 0.8]

One synthetic collection (topics, documents, runs, gold answers) is imported from files, once. Every repetition is a
campaign of its own: drawn for a pair of runs (the pairs take turns), judged twice an item by six simulated assessors,
with gold checks, audited when half of the topics are judged and again when all are, recomputed; then the stored
estimates are compared with the truth, which this program computes from its own arrays. Only the assessors' requests
are left out: judgments are written in bulk, as submit() leaves them, past the same triggers. Assessors err

- "popularity": by how many runs return the document, at the rates of touchstone/demo/simulated.py;
- "class_conditional": alike on all documents of a grade: what the papers' matrix inverse assumes.

With --batches 2 half of the items are drawn first and the campaign is topped up when half of the topics are judged
(with --learn when all are: sizes are then learned from the judgments). With --judged the estimates are computed when
so large a part of what is still wanted after that has been judged, at random.

JSON on standard output, for the measures whose true values this program knows. Expected: corrected .93-.97 for P@10
and DCG@10 under both, its bias within 3 bias_se of 0; matrix-inverse far below under "popularity"; naive far below
wherever judges are biased. Two processes use a copy of the database each.
"""

import argparse
import json
import math
import os
import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from parts.bulk_judges import SKILLS, Judges
from parts.synthetic import N_TOPICS, POOL_DEPTH, Population, make_population, write_files

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "platform")]

BUDGET, VOTES, AUDITED_EACH_TIME, AUDITED_IN_TOTAL = 500, 2, 100, 200
GOLD_CHECK_RATE, GOLD_CHECK_EXPOSURES = 0.1, 2
NOISES = ("popularity", "class_conditional")
COLLECTION = "Synthetic"


# -- import ------------------------------------------------------------------------------------------------


def import_collection(population: Population, folder: Path) -> None:
    """Bring the files in through the product's services."""
    from judging.models import Collection
    from judging.services.files import import_documents, import_runs, import_topics
    from judging.services.judgment_files import import_judgments

    write_files(population, folder)
    made = Collection.objects.create(name=COLLECTION)
    import_topics(collection=made, source=folder / "topics.tsv", name="topics.tsv")
    import_documents(collection=made, source=folder / "corpus.jsonl", name="corpus.jsonl")
    runs = sorted(folder.glob("*.run"))
    import_runs(collection=made, files=[(path, path.name) for path in runs])
    import_judgments(collection=made, source=folder / "gold.qrels", name="gold.qrels", as_gold=True)


# -- one repetition -----------------------------------------------------------------------------------------

Row = tuple[
    str, str, str, str, bool, float, float, float, bool
]  # measure, method, run, run_b, at hand, numbers


@dataclass(frozen=True)
class World:
    """What all repetitions share."""

    population: Population
    collection: Any
    users: list[Any]
    places: dict[tuple[int, int], int]


def open_world(population: Population) -> World:
    from judging.models import Collection, Document, Topic
    from touchstone.models import User

    names = [*(f"judge{number}" for number in range(len(SKILLS))), "gold"]
    users = [User.objects.get_or_create(username=name)[0] for name in names]
    topics = dict(Topic.objects.values_list("topic_id", "pk"))
    documents = dict(Document.objects.values_list("doc_id", "pk"))
    pairs = zip(population.topic_ids, population.doc_ids, strict=True)
    places = {(topics[topic], documents[doc]): place for place, (topic, doc) in enumerate(pairs)}
    return World(population, Collection.objects.get(name=COLLECTION), users, places)


@dataclass(frozen=True)
class Plan:
    """How a campaign is drawn and judged."""

    batches: int = 1
    learn: bool = False
    judged: float = 1.0  # of what is wanted after the first half, when estimates are computed


def repeat(world: World, noise: str, number: int, seed: int, plan: Plan) -> list[Row]:
    """Carry out one campaign; return what it stored for every run and pair."""
    from analytics.services.recomputation import recompute
    from judging.services.campaigns import DEFAULT_GRADES, close_campaign, create_campaign

    rng = np.random.default_rng([seed, NOISES.index(noise), number])
    pairs = world.population.pairs()
    pair = pairs[number % len(pairs)]
    campaign = create_campaign(
        collection=world.collection,
        name=f"{noise} {number}",
        user=None,
        grades=DEFAULT_GRADES,
        judgments_per_item=VOTES,
        gold_check_rate=GOLD_CHECK_RATE,
        gold_check_exposures=GOLD_CHECK_EXPOSURES,
        is_simulated=True,
    )
    judges = Judges(campaign, world.places, world.population, noise, rng)
    judges.enrol(world.users)
    draw_and_judge(campaign, judges, pair, plan, rng)
    computation = recompute(campaign=campaign)
    close_campaign(campaign=campaign, actor=None)
    return read_estimates(computation, pair)


def draw_and_judge(
    campaign: Any, judges: Judges, pair: tuple[str, str], plan: Plan, rng: np.random.Generator
) -> None:
    """Draw, judge and audit in two steps; before the second one the campaign may be topped up."""
    from judging.services.campaigns import open_campaign
    from sampling.questions import Design
    from sampling.services.auditing import audit
    from sampling.services.drawing import draw

    design = {"question": "pair", "runs": tuple(pair), "measure": "DCG@10", "depth": POOL_DEPTH}
    first = Design(**design, budget=BUDGET // plan.batches)
    draw(campaign=campaign, design=first, seed=int(rng.integers(2**62)))
    open_campaign(campaign=campaign, actor=None)
    topics = sorted(set(judges.population.topic_ids))
    audit_seed = int(rng.integers(2**62))
    steps = ((topics if plan.learn else topics[: N_TOPICS // 2], 1.0), (topics, plan.judged))
    for number, (part, share) in enumerate(steps):
        if number == 1 and plan.batches == 2:
            prior = "judgments" if plan.learn else "runs"
            draw(campaign=campaign, design=Design(**design, budget=BUDGET, prior=prior))
        judges.judge(part, share)
        audit(
            campaign=campaign,
            items_each_time=AUDITED_EACH_TIME,
            items_in_total=AUDITED_IN_TOTAL,
            seed=audit_seed,
        )
        judges.judge_audit()


def read_estimates(computation: Any, pair: tuple[str, str]) -> list[Row]:
    """Return the stored estimates; NaN for a refusal."""
    names = ("measure", "method", "run__run_id", "run_b__run_id", "value", "low", "high", "refusal")
    rows = []
    for measure, method, run, run_b, value, low, high, refusal in computation.estimates.values_list(*names):
        numbers = (math.nan,) * 3 if refusal else (value, low, high)
        rows.append((measure, method, run, run_b or "", (run, run_b) == pair, *numbers, bool(refusal)))
    return rows


# -- all repetitions ----------------------------------------------------------------------------------------


def connect(folder: str, database: str) -> None:
    """Make Django use the servers announced in the folder."""
    os.environ["TOUCHSTONE_VAR"] = folder
    os.environ["DJANGO_SETTINGS_MODULE"] = "touchstone.settings"
    for name in ("DATABASE_URL", "REDIS_URL", "SECRET_KEY", "HTTPS"):
        os.environ.pop(name, None)
    import django
    from django.conf import settings

    django.setup()
    settings.DATABASES["default"]["NAME"] = database


def work(
    folder: str, database: str, tasks: list[tuple[str, int]], seed: int, plan: Plan
) -> list[tuple[str, list[Row]]]:
    """Carry out a share of the repetitions on a database of its own."""
    connect(folder, database)
    from django.db import connection, transaction

    world = open_world(make_population(np.random.default_rng(seed)))
    results = []
    for done, (noise, number) in enumerate(tasks, start=1):
        with (
            transaction.atomic()
        ):  # one commit a repetition: 400 times some hundred milliseconds of disk are saved
            results.append((noise, repeat(world, noise, number, seed, plan)))
        if done in (5, 50) or done % 100 == 0:
            print(f"{database}: {done} of {len(tasks)}", file=sys.stderr, flush=True)
            with connection.cursor() as cursor:  # what autovacuum does in a database that lives longer
                cursor.execute("ANALYZE")
    connection.close()
    return results


@contextmanager
def databases(folder: Path, population: Population, count: int) -> Iterator[list[str]]:
    """Start the servers, migrate, import, and copy the database for every process."""
    import psycopg

    from touchstone import embedded

    servers = embedded.Servers(folder / "servers")
    servers.start()
    try:
        embedded.announce(folder, servers, servers.programs)
        connect(str(folder), embedded.DATABASE)
        from django.core.management import call_command
        from django.db import connections

        call_command("migrate", verbosity=0)
        (folder / "import").mkdir()
        import_collection(population, folder / "import")
        connections.close_all()
        names = [embedded.DATABASE, *(f"copy{number}" for number in range(1, count))]
        maintenance = servers.database_url.rpartition("/")[0] + "/postgres"
        with psycopg.connect(maintenance, autocommit=True) as session:
            for name in names[1:]:
                session.execute(f"CREATE DATABASE {name} TEMPLATE {embedded.DATABASE}")
        yield names
    finally:
        servers.stop()


def simulate(noises: list[str], repetitions: int, seed: int, processes: int, plan: Plan) -> dict[str, Any]:
    """Return the results of all repetitions, and how long they took."""
    tasks = [(noise, number) for number in range(repetitions) for noise in noises]
    population = make_population(np.random.default_rng(seed))
    folder = Path(tempfile.mkdtemp(prefix="touchstone-chain-"))
    # Inherited by the processes: each is one of several and should use one core.
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
    try:
        with databases(folder, population, processes) as names:
            started = time.perf_counter()
            shares = [
                (str(folder), name, tasks[place::processes], seed, plan) for place, name in enumerate(names)
            ]
            with get_context("spawn").Pool(processes) as pool:  # ends its processes when this one is stopped
                results = [result for share in pool.starmap(work, shares, 1) for result in share]
            seconds = time.perf_counter() - started
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    by_noise: dict[str, list[list[Row]]] = {noise: [] for noise in noises}
    for noise, rows in results:
        by_noise[noise].append(rows)
    truth = population.truth()
    return {
        "pool": int(np.count_nonzero(population.share)),
        "seconds": round(seconds, 1),
        "seconds_each": round(seconds * processes / len(tasks), 3),
    } | {noise: summary(estimates, truth) for noise, estimates in by_noise.items()}


# -- what came out ------------------------------------------------------------------------------------------


def tally(rows: list[Row], truth: dict[tuple[str, str, str], float]) -> dict[str, float | int]:
    """Return coverage with its standard error, errors, half-width, surely wrong signs, and refusals."""
    given = [row for row in rows if not row[8]]
    n = max(1, len(given))
    true = np.array([truth[row[0], row[2], row[3]] for row in given])
    value, low, high = (np.array([row[column] for row in given], dtype=float) for column in (5, 6, 7))
    inside = float(((low <= true) & (true <= high)).sum()) / n
    errors = value - true
    return {
        "n": len(given),
        "refused": len(rows) - len(given),
        "coverage": round(inside, 4),
        "coverage_se": round(math.sqrt(inside * (1 - inside) / n), 4),
        "bias": round(float(errors.sum()) / n, 5),
        "bias_se": round(float(errors.std(ddof=1)) / math.sqrt(n), 5) if len(given) > 1 else 0.0,
        "rmse": round(math.sqrt(float((errors**2).sum()) / n), 5),
        "mean_half_width": round(float((high - low).sum()) / 2 / n, 5),
        "surely_wrong_sign": round(
            float((((low > 0) & (true < 0)) | ((high < 0) & (true > 0))).sum()) / n, 4
        ),
    }


def summary(estimates: list[list[Row]], truth: dict[tuple[str, str, str], float]) -> dict[str, Any]:
    """Return per measure and method the tallies of the pair at hand, all pairs and single runs.

    All pairs: the tally over all pairs and repetitions (one repetition's are not independent, so no standard error),
    with the coverage of the worst single pair. The stored true values must be the ones this program knows.
    """
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    known = {measure for measure, *_ in truth}
    for rows in estimates:
        for row in rows:
            if row[0] in known:
                groups[row[0], row[1]].append(row)
    result: dict[str, Any] = {}
    for (measure, method), rows in sorted(groups.items()):
        if method == "true":
            wrong = [row for row in rows if abs(row[5] - truth[row[0], row[2], row[3]]) > 1e-9]
            if wrong:
                raise RuntimeError(f"stored true values differ from the truth, first: {wrong[0]}")
            continue
        pairs = [row for row in rows if row[3]]
        everything = tally(pairs, truth)
        del everything["coverage_se"], everything["bias_se"]
        by_pair = defaultdict(list)
        for row in pairs:
            by_pair[row[2], row[3]].append(row)
        everything["worst_pair_coverage"] = min(
            (tally(rows_of, truth)["coverage"] for rows_of in by_pair.values()), default=0
        )
        result.setdefault(measure, {})[method] = {
            "pair_at_hand": tally([row for row in pairs if row[4]], truth),
            "all_pairs": everything,
            "runs": tally([row for row in rows if not row[3]], truth),
        }
    return result


def main() -> None:
    """Print the coverage of every method as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=400, help="of each noise model")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--noise", nargs="+", choices=NOISES, default=list(NOISES))
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--batches", type=int, default=1, choices=(1, 2))
    parser.add_argument(
        "--learn", action="store_true", help="the second batch from the first one's judgments"
    )
    parser.add_argument("--judged", type=float, default=1.0, help="part judged when estimates are computed")
    options = parser.parse_args()
    if options.learn and options.batches == 1:
        parser.error("--learn needs --batches 2")
    if not 0 < options.judged <= 1:
        parser.error(f"--judged must be within (0, 1], got {options.judged}")
    for name in ("repetitions", "processes"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1, got {getattr(options, name)}")
    from touchstone.processes import stoppable

    stoppable()  # SIGTERM too stops the servers and removes the folder
    plan = Plan(options.batches, options.learn, options.judged)
    results = simulate(options.noise, options.repetitions, options.seed, options.processes, plan)
    facts = {"repetitions": options.repetitions, "seed": options.seed, **asdict(plan)}
    print(json.dumps({**facts, **results}, indent=1))


if __name__ == "__main__":
    main()
