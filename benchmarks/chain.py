"""Measure how often the stored 95 % confidence intervals hold the truth: the product's whole chain on a real
PostgreSQL.

    python benchmarks/chain.py [--repetitions 400] [--seed 1] [--noise popularity class_conditional] [--processes 2]
                               [--batches 2 [--learn]] [--judged 0.8]
                               [--routes [--gold 200] [--audits 2] [--strategy influence]]

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

With --routes every repetition is one campaign by each route instead (parts/two_routes.py): the labels of
one machine as scores, with as many gold judges' labels drawn as --gold says, and the same labels as judgments of the
whole pool, with an audit of as many. Expected: both cover, both have p, Holm's p and ranks, half-widths within 5 %.

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
from parts.chain_tables import Row, by_routes, summary
from parts.synthetic import N_TOPICS, POOL_DEPTH, Population, make_population, write_files
from parts.two_routes import (
    ROUTES,
    Bench,
    Routes,
    import_machine_scores,
    machine_grades,
    told_of,
    walk,
)

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "platform")]

BUDGET, VOTES, AUDITED_EACH_TIME, AUDITED_IN_TOTAL = 500, 2, 100, 200
GOLD_CHECK_RATE, GOLD_CHECK_EXPOSURES = 0.1, 2
NOISES = ("popularity", "class_conditional")
COLLECTION = "Synthetic"


# -- import ------------------------------------------------------------------------------------------------


def import_collection(population: Population, folder: Path, seed: int) -> None:
    """Bring the files in through the product's services; with them the machine's labels as scores."""
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
    for noise in NOISES:
        import_machine_scores(made, population, noise, seed, folder)


# -- one repetition -----------------------------------------------------------------------------------------


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


def repeat_by_route(
    world: World, noise: str, route: str, number: int, seed: int, plan: Routes
) -> tuple[list[Row], dict[str, Any]]:
    """Carry out one campaign by the route; return what it stored, and what it says of the pair at hand."""
    from analytics.services.recomputation import recompute
    from judging.services.campaigns import DEFAULT_GRADES, close_campaign, create_campaign

    rng = np.random.default_rng([seed, NOISES.index(noise), number, ROUTES.index(route)])
    pairs = world.population.pairs()
    pair = pairs[number % len(pairs)]
    campaign = create_campaign(
        collection=world.collection,
        name=f"{noise} {route} {number}",
        user=None,
        grades=DEFAULT_GRADES,
        judgments_per_item=1,
        gold_check_rate=0.0,
        is_simulated=True,
    )
    machine = machine_grades(world.population, noise, seed)
    bench = Bench(campaign, world.population, world.places, machine)
    walk(bench, route, noise, pair, plan, rng)
    computation = recompute(campaign=campaign)
    close_campaign(campaign=campaign, actor=None)
    return read_estimates(computation, pair), told_of(computation, pair)


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


Result = tuple[
    str, list[Row], dict[str, Any]
]  # the noise (by a route, both), its rows, what is told of the pair


def work(
    folder: str, database: str, tasks: list[tuple[str, int]], seed: int, plan: Plan | Routes
) -> list[Result]:
    """Carry out a share of the repetitions on a database of its own."""
    connect(folder, database)
    from django.db import connection, transaction

    world = open_world(make_population(np.random.default_rng(seed)))
    results: list[Result] = []
    for done, (noise, number) in enumerate(tasks, start=1):
        with (
            transaction.atomic()
        ):  # one commit a repetition: 400 times some hundred milliseconds of disk are saved
            if isinstance(plan, Plan):
                results.append((noise, repeat(world, noise, number, seed, plan), {}))
            else:
                for route in ROUTES:
                    rows, told = repeat_by_route(world, noise, route, number, seed, plan)
                    results.append((f"{noise} {route}", rows, told))
        if done in (5, 50) or done % 100 == 0:
            print(f"{database}: {done} of {len(tasks)}", file=sys.stderr, flush=True)
            with connection.cursor() as cursor:  # what autovacuum does in a database that lives longer
                cursor.execute("ANALYZE")
    connection.close()
    return results


@contextmanager
def databases(folder: Path, population: Population, count: int, seed: int) -> Iterator[list[str]]:
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
        import_collection(population, folder / "import", seed)
        connections.close_all()
        names = [embedded.DATABASE, *(f"copy{number}" for number in range(1, count))]
        maintenance = servers.database_url.rpartition("/")[0] + "/postgres"
        with psycopg.connect(maintenance, autocommit=True) as session:
            for name in names[1:]:
                session.execute(f"CREATE DATABASE {name} TEMPLATE {embedded.DATABASE}")
        yield names
    finally:
        servers.stop()


def simulate(
    noises: list[str], repetitions: int, seed: int, processes: int, plan: Plan | Routes
) -> dict[str, Any]:
    """Return the results of all repetitions, and how long they took."""
    tasks = [(noise, number) for number in range(repetitions) for noise in noises]
    population = make_population(np.random.default_rng(seed))
    folder = Path(tempfile.mkdtemp(prefix="touchstone-chain-"))
    # Inherited by the processes: each is one of several and should use one core.
    os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
    try:
        with databases(folder, population, processes, seed) as names:
            started = time.perf_counter()
            shares = [
                (str(folder), name, tasks[place::processes], seed, plan) for place, name in enumerate(names)
            ]
            with get_context("spawn").Pool(processes) as pool:  # ends its processes when this one is stopped
                results = [result for share in pool.starmap(work, shares, 1) for result in share]
            seconds = time.perf_counter() - started
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    by_name: dict[str, list[list[Row]]] = defaultdict(list)
    told: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for name, rows, of_pair in results:
        by_name[name].append(rows)
        told[name].append(of_pair)
    truth = population.truth()
    found = {name: summary(estimates, truth) for name, estimates in by_name.items()}
    facts = {
        "pool": int(np.count_nonzero(population.share)),
        "seconds": round(seconds, 1),
        "seconds_each": round(seconds * processes / len(tasks), 3),
    }
    if isinstance(plan, Plan):
        return facts | found
    return facts | {noise: by_routes(noise, found, told) for noise in noises}


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
    parser.add_argument(
        "--routes", action="store_true", help="by score and by audit, with as many gold labels"
    )
    parser.add_argument("--gold", type=int, default=Routes.gold, help="gold labels that each route expects")
    parser.add_argument("--audits", type=int, default=Routes.audits, help="in which they come by audit")
    parser.add_argument("--strategy", default=Routes.strategy, help="of the audits")
    options = parser.parse_args()
    if options.learn and options.batches == 1:
        parser.error("--learn needs --batches 2")
    if not 0 < options.judged <= 1:
        parser.error(f"--judged must be within (0, 1], got {options.judged}")
    for name in ("repetitions", "processes", "gold", "audits"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1, got {getattr(options, name)}")
    from touchstone.processes import stoppable

    stoppable()  # SIGTERM too stops the servers and removes the folder
    plan: Plan | Routes = Plan(options.batches, options.learn, options.judged)
    if options.routes:
        plan = Routes(options.gold, options.audits, options.strategy)
    results = simulate(options.noise, options.repetitions, options.seed, options.processes, plan)
    facts = {"repetitions": options.repetitions, "seed": options.seed, **asdict(plan)}
    print(json.dumps({**facts, **results}, indent=1))


if __name__ == "__main__":
    main()
