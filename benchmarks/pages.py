"""Measure every page and every read of the API on a campaign of a million judgments: 100 runs, 500 assessors.

    python benchmarks/pages.py [--judgments 100000] [--requests 20] [--only items] [--keep FOLDER] [--json]

The addresses are those of the resolver, asked as the manager, the researcher and an assessor who may see them, through
the whole product (middleware, session, templates) in one process, PostgreSQL with 1 GB of shared buffers. For each: the
median and the 95th percentile of the answer's wall-clock time, and how many SQL statements it took. Goals: p95 below
300 ms and at most 12 statements. The first answer, which also draws what is kept afterwards, is given beside.

The peer, in the same run, is the same product on a campaign of a hundredth of the judgments: the ratio says whether
the cost of a page grows with the campaign. `--only` asks only addresses whose names contain a word, and `--keep` leaves
the databases in a folder, where the next run finds them made.
"""

import argparse
import json
import math
import pickle
import statistics
import sys
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from parts import throwaway
from parts.rare_values import RARE_WORD

from touchstone import embedded

EACH, ASSESSORS, RUNS, SEED, SMALLER = 4, 500, 100, 1, 100
MEASURES = ["P@10", "DCG@10"]
SHARED_BUFFERS = "1GB"
GOAL_MILLISECONDS, GOAL_STATEMENTS = 300.0, 12
PAGES = {"text/html", "application/json"}  # pages and answers; the rest is files to download
ROLES = ["manager", "researcher", "assessor"]
QUERIES = {"console:pair": {"a": "system000", "b": "system099"}}
# Every filter and order of the lists, with values that most rows have, and with rare ones that few or none have
# (parts/rare_values.py).
FILTERS: dict[str, list[dict[str, str]]] = {
    "topic_id": [{"topic_id": "0001"}, {"topic_id": "no-such-topic"}],
    "doc_id": [{"doc_id": "clueweb09-en0001-00001"}, {"doc_id": "no-such-document"}],
    "q": [{"q": "document"}, {"q": RARE_WORD}, {"q": "nowhere"}],
    "state": [{"state": key} for key in ("open", "partly", "complete", "stuck", "decided")],
    "purpose": [{"purpose": key} for key in ("judge", "check", "audit", "silver", "void")],
    "grade": [{"grade": "0"}, {"grade": "3"}, {"grade": "8"}, {"grade": "9"}],
    "spread": [{"spread": "1"}, {"spread": "2"}, {"spread": "3"}],
    "assessor": [{"assessor": "judge7"}, {"assessor": "judged-once"}, {"assessor": "nobody"}],
    "obstacle": [{"obstacle": "any"}, {"obstacle": "harmful"}, {"obstacle": "language"}],
    "comment": [{"comment": "yes"}],
    "comment_words": [{"comment_words": "hardly"}, {"comment_words": "nowhere"}],
    "since": [{"since": "2026-01-05"}, {"since": "2026-01-12T13:30"}, {"since": "2099-01-01"}],
    "before": [{"before": "2026-01-05"}, {"before": "2026-01-01T00:05"}, {"before": "2020-01-01"}],
    "seconds_below": [{"seconds_below": "30"}, {"seconds_below": "1"}, {"seconds_below": "0.1"}],
    "seconds_above": [{"seconds_above": "5"}, {"seconds_above": "34.76"}, {"seconds_above": "40"}],
    "tier": [{"tier": "bronze"}, {"tier": "gold"}, {"tier": "silver"}],
    "kind": [{"kind": "human"}, {"kind": "machine"}],
}
# Several at once: of two that many rows meet, none may meet both.
TOGETHER: list[dict[str, str]] = [
    {"assessor": "judge7", "grade": "3"},
    {"assessor": "judge7", "grade": "9"},
    {"assessor": "judge7", "obstacle": "harmful"},
    {"grade": "0", "comment": "yes"},
    {"grade": "3", "obstacle": "any"},
    {"grade": "3", "state": "partly"},
    {"grade": "3", "q": "document"},
    {"grade": "3", "q": RARE_WORD},
    {"grade": "3", "spread": "1"},
    {"purpose": "audit", "grade": "3"},
    {"purpose": "check", "state": "open"},
    {"purpose": "judge", "obstacle": "any"},
    {"state": "complete", "spread": "3"},
    {"topic_id": "0250", "grade": "9"},
    {"since": "2026-01-02", "before": "2026-01-03", "grade": "3"},
]
OF_JUDGMENTS: list[dict[str, str]] = [
    {"assessor": "judge7", "order": "seconds"},
    {"topic_id": "0001", "order": "-seconds"},
    {"before": "2026-01-05", "order": "-id"},
    {"before": "2026-01-01T00:05", "order": "-id"},
    {"seconds_below": "2.1", "grade": "3"},
    {"tier": "gold", "grade": "0"},
]
OF_ITEMS: list[dict[str, str]] = [
    *(
        {"order": f"{sign}{key}"}
        for key in ("newest", "spread", "influence", "seconds")
        for sign in ("", "-")
    ),
    *({"order": key, "spread": "3"} for key in ("-newest", "-influence", "-seconds", "topic")),
    {"order": "-newest", "grade": "9"},
    {"order": "-influence", "grade": "3"},
    {"order": "-newest", "q": RARE_WORD},
]
WORDS = [{"q": "document"}, {"q": RARE_WORD}, {"q": "nowhere"}]


def _prepared(root: Path, n_judgments: int) -> tuple[dict[str, Any], dict[str, int]]:
    """Return the names in a world with so many judgments, computed once, and the keys of the people by their role."""
    import worlds
    from parts import large_campaign, rare_values

    from analytics.services.recomputation import recompute
    from judging.models import Assessor, CollectionMember
    from touchstone.models import WorkerHeartbeat

    (root / "runs").mkdir(exist_ok=True)
    campaign = large_campaign.make(
        root / "runs",
        n_items=n_judgments // EACH,
        n_each=EACH,
        n_assessors=ASSESSORS,
        n_runs=RUNS,
        seed=SEED,
    )
    campaign.collection.is_restricted = True
    campaign.collection.save()
    people = {role: worlds.make_user(role, role) for role in ROLES[:2]}
    for person in people.values():
        CollectionMember.objects.create(collection=campaign.collection, user=person)
    recompute(campaign=campaign, measures=MEASURES)
    assessors = Assessor.objects.filter(campaign=campaign, tier="bronze").select_related(
        "campaign__scale", "user"
    )
    bob = assessors.order_by("pk")[0]
    people["assessor"] = bob.user
    WorkerHeartbeat.objects.get_or_create(name="benchmark", defaults={"seen_at": campaign.created_at})
    world = worlds.World(campaign, worlds.names_of(campaign, people["manager"], bob))
    rare_values.make(campaign, people["manager"])
    return world.names, {role: person.pk for role, person in people.items()}


def _kept(root: Path, n_judgments: int) -> tuple[Any, dict[str, Any]]:
    """Return the world and its people, made by this run or by one before."""
    import worlds

    from judging.models import Campaign
    from touchstone.models import User

    made = root / "world.pickle"
    if not made.exists():
        made.write_bytes(pickle.dumps(_prepared(root, n_judgments)))
    names, people = pickle.loads(made.read_bytes())  # noqa: S301 (this program wrote it)
    world = worlds.World(Campaign.objects.get(pk=names["campaign_id"]), names)
    return world, {role: User.objects.get(pk=pk) for role, pk in people.items()}


def _measure(world: Any, people: dict[str, Any], n_requests: int, only: str) -> list[dict[str, Any]]:
    """Return a row for every address that answers a GET with 200, and the role that asked."""
    import worlds
    from django.test import Client
    from django.urls import reverse

    rows = []
    for role in ROLES:
        client = Client(raise_request_exception=False, SERVER_NAME="localhost")
        client.force_login(people[role])
        for route in worlds.routes():
            if (
                route.name in {row["route"] for row in rows}
                or route.name == "logout"
                or only not in route.name
            ):
                continue
            address = reverse(route.name, kwargs=world.arguments(route))
            for query in [QUERIES.get(route.name, {}), *_variants(route.name)]:
                row = _of_address(client, address, query, n_requests)
                if row is not None:
                    name = route.name + (f"?{urlencode(query)}" if query in _variants(route.name) else "")
                    rows.append({"route": name, "role": role, **row})
    return rows


def _variants(name: str) -> list[dict[str, str]]:
    """Return what else a list is asked for."""
    from judging.judgment_filters import FILTERS as TABLE
    from judging.judgment_filters import ITEMS, JUDGMENTS

    lists = {"items": ITEMS, "api-items": ITEMS, "judgments": JUDGMENTS, "api-judgment-log": JUDGMENTS}
    kind = lists.get(name.removeprefix("console:"))
    if kind is None:
        return WORDS if name in ("console:documents", "console:collection-topics") else []
    asked = [query for one in TABLE if kind in one.lists for query in FILTERS[one.name]]
    return asked + TOGETHER + (OF_ITEMS if kind == ITEMS else OF_JUDGMENTS)


def _of_address(client: Any, address: str, query: dict[str, str], n_requests: int) -> dict[str, Any] | None:
    from django.db import connection, reset_queries
    from django.test.utils import CaptureQueriesContext

    milliseconds, kind, size = [], "", 0
    for _ in range(n_requests + 1):
        reset_queries()  # the log of statements is as long as it can be after 9,000
        with CaptureQueriesContext(connection) as queries:
            started = time.perf_counter()
            answer = client.get(address, query)
            content = b"".join(answer.streaming_content) if answer.streaming else answer.content
            milliseconds.append(1000 * (time.perf_counter() - started))
        if answer.status_code >= 500:
            raise RuntimeError(f"{address}: {answer.status_code}")
        if answer.status_code != 200:
            return None
        kind, size = answer.headers["Content-Type"].partition(";")[0], len(content)
        if kind not in PAGES and len(milliseconds) == 2:
            break  # a file: its size is what it costs
    first, later = milliseconds[0], sorted(milliseconds[1:])
    return {
        "kind": kind,
        "kilobytes": size / 1000,
        "statements": len(queries),
        "first": first,
        "median": statistics.median(later),
        "p95": later[math.ceil(0.95 * len(later)) - 1],
    }


def _child(n_judgments: int, n_requests: int, only: str, keep: Path | None) -> list[dict[str, Any]]:
    # The servers of a demo have little memory; who judges a million has more (docs/scale.md).
    embedded.POSTGRES_SETTINGS["shared_buffers"] = SHARED_BUFFERS
    with throwaway.folder(keep and keep / str(n_judgments)) as root, throwaway.migrated(root):
        from django.core.management import call_command

        call_command("collectstatic", interactive=False, verbosity=0)
        world, people = _kept(root, n_judgments)
        import touchstone.wsgi  # noqa: F401 (garbage is collected as in the web process)

        return _measure(world, people, n_requests, only)


def _report(n_judgments: int, rows: list[dict[str, Any]], small: list[dict[str, Any]]) -> dict[str, Any]:
    of_small = {row["route"]: row["median"] for row in small}
    for row in rows:
        row["ratio_to_small"] = row["median"] / of_small[row["route"]] if row["route"] in of_small else None
    pages = [row for row in rows if row["kind"] in PAGES]
    ratios = [row["ratio_to_small"] for row in pages if row["ratio_to_small"] is not None]
    return {
        "benchmark": "pages",
        "size": {"judgments": n_judgments, "runs": RUNS, "assessors": ASSESSORS, "seed": SEED},
        "peer": f"the same pages with {n_judgments // SMALLER:,} judgments",
        "median_ratio_to_peer": statistics.median(ratios) if ratios else None,
        "rows": sorted(rows, key=lambda row: -row["p95"]),
        "goals": {
            f"p95 below {GOAL_MILLISECONDS:g} ms": bool(pages)
            and all(row["p95"] < GOAL_MILLISECONDS for row in pages),
            f"at most {GOAL_STATEMENTS} statements": bool(pages)
            and all(row["statements"] <= GOAL_STATEMENTS for row in pages),
        },
    }


def _table(report: dict[str, Any]) -> str:
    lines = [
        f"{'address':34}{'as':12}{'first':>8}{'median':>8}{'p95 ms':>8}{'SQL':>5}{'kB':>7}{'x small':>9}"
    ]
    for row in report["rows"]:
        ratio = "" if row["ratio_to_small"] is None else f"{row['ratio_to_small']:.1f}"
        lines.append(
            f"{row['route']:34}{row['role']:12}{row['first']:8.0f}{row['median']:8.1f}{row['p95']:8.1f}"
            f"{row['statements']:5}{row['kilobytes']:7.0f}{ratio:>9}"
        )
    lines += [f"{goal}: {'yes' if met else 'NO'}" for goal, met in report["goals"].items()]
    return "\n".join(lines)


def main() -> None:
    """Make the data, measure, print a table or JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--judgments", type=int, default=1_000_000)
    parser.add_argument("--requests", type=int, default=20)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--json", action="store_true")
    # Django is set up for one database only: the small campaign has a process of its own.
    for hidden in ("--part", "--seconds"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.part:
        print(json.dumps({"rows": _child(options.judgments, options.requests, options.only, options.keep)}))
        return
    n_small = options.judgments // SMALLER
    asked = [f"--requests={options.requests}", f"--only={options.only}"]
    asked += [f"--keep={options.keep.resolve()}"] if options.keep else []
    rows, small = (
        throwaway.in_child(__file__, "rows", 3600, f"--judgments={n}", *asked)["rows"]
        for n in (options.judgments, n_small)
    )
    report = _report(options.judgments, rows, small)
    print(json.dumps(report, indent=2) if options.json else _table(report))


if __name__ == "__main__":
    main()
