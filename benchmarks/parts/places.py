"""Where judgments are measured: databases with a large campaign each, and two web processes on each of them."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from parts import floor, load
from parts.load import Answer, Script

from touchstone import embedded, rights, roles
from touchstone.processes import Program, answers

PARTS = Path(__file__).resolve().parent
PROGRAM = str(PARTS.parent / "judging.py")
TOPICS, GRADES, JUDGMENTS_PER_ITEM = 50, 4, 3
CHECK_RATE, CHECKS_PER_TOPIC, CHECK_EXPOSURES = 0.1, 12, 20
SPARE_DOCUMENTS = 3000  # of 50 items each: judged items are replaced by unseen ones
DOCUMENT_BYTES = 2000
SERVERS = ("floor", "product")
N_WEB = 2  # web processes of the product
TURNS = ("floor in SQL", "floor", "product")  # the first two are views of one server
POOLED = "product through PgBouncer"
FORMER = "former product"  # of another checkout, on a database of its own
PRODUCT = ("product", POOLED, FORMER)


@dataclass
class Place:
    """A campaign of so many open slots, and the two web processes that work on its database."""

    n_slots: int
    root: Path
    database_url: str
    campaign: str = ""
    callers: list[str] = field(default_factory=list)  # headers of each assessor
    n_items: int = 0
    n_used: int = 0  # slots, since they were last filled up
    programs: dict[str, Program] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)
    checkout: Path | None = None  # whose code it is; none: ours
    former: "Place | None" = None

    @property
    def python(self) -> list[str]:
        """Return the command of the interpreter, begun in the folder of its code."""
        if self.checkout is None:
            return [sys.executable]
        return ["env", "-C", str(self.checkout), str(self.checkout / ".venv/bin/python")]

    @property
    def server_log(self) -> Path:
        return self.root.parent / "servers" / "log" / "postgres.log"

    @property
    def turns(self) -> tuple[str, ...]:
        more = {POOLED: POOLED in self.ports, FORMER: self.former is not None}
        return (*TURNS, *(name for name, is_there in more.items() if is_there))

    def port(self, turn: str) -> int:
        return self.ports[turn if turn in PRODUCT else "floor"]

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.database_url, autocommit=True)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@contextlib.contextmanager
def open_places(
    sizes: list[int], n_assessors: int, is_pooled: bool = False, former: Path | None = None
) -> Iterator[list[Place]]:
    """Start PostgreSQL and Redis in a throw-away folder, and on them a place for each size (and former checkout)."""
    folder = Path(tempfile.mkdtemp(prefix="touchstone-judging-"))
    places: list[Place] = []
    try:
        with embedded.stack(folder / "servers") as servers:
            for n_slots in sizes:
                say(f"making a campaign of {n_slots:,} open slots")
                places.append(make_place(folder / f"judging_{n_slots}", servers, n_slots, n_assessors))
                if former is not None:
                    root = folder / f"former_{n_slots}"
                    places[-1].former = make_place(root, servers, n_slots, n_assessors, former)
            everywhere = [one for place in places for one in (place, place.former) if one is not None]
            try:
                for place in everywhere:
                    start_web(place)
                for place in places:
                    if is_pooled:
                        start_pooled_web(place, servers)
                with psycopg.connect(servers.database_url, autocommit=True) as superuser:
                    superuser.execute("CHECKPOINT")
                yield places
            finally:
                for place in everywhere:
                    for program in place.programs.values():
                        program.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def make_place(
    root: Path, servers: embedded.Servers, n_slots: int, n_assessors: int, checkout: Path | None = None
) -> Place:
    with psycopg.connect(servers.database_url, autocommit=True) as superuser:
        superuser.execute(f"CREATE DATABASE {root.name}".encode())
    url = f"{servers.database_url.rpartition('/')[0]}/{root.name}"
    place = Place(n_slots, root, url, checkout=checkout)
    root.mkdir()
    # The product finds its servers where `manage.py stack` writes them: over loopback, without TLS.
    embedded.announce(root, servers, [])
    state = json.loads((root / "stack.json").read_text())
    (root / "stack.json").write_text(json.dumps({**state, "database_url": place.database_url}))
    # In a process of its own: Django can be set up for one database only.
    program = str(checkout / "benchmarks/judging.py") if checkout else PROGRAM
    command = [*place.python, program, "--fill", str(n_slots), str(n_assessors)]
    child = subprocess.run(command, env=environment(place), stdout=subprocess.PIPE, check=True)
    made = json.loads(child.stdout)
    place.campaign, place.callers = made["campaign"], made["callers"]
    with place.connect() as database:
        open_items(place, database, TOPICS * CHECKS_PER_TOPIC, "check", CHECK_EXPOSURES)
        database.execute(floor.TABLES)
        fill_up(place, database)
        database.execute("VACUUM ANALYZE")
    return place


def environment(place: Place) -> dict[str, str]:
    ours = {"TOUCHSTONE_VAR": str(place.root), "DJANGO_SETTINGS_MODULE": "touchstone.settings"}
    theirs = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "REDIS_URL")}
    return {**theirs, **ours, "LOG_LEVEL": "ERROR", "JUDGING_REQUESTS": "1000000000"}


def start_web(place: Place) -> None:
    """Start the product and the floor with the very options of `manage.py stack`."""
    more = {
        "product": environment(place),
        "floor": {"FLOOR_DATABASE_URL": place.database_url, "PYTHONPATH": str(PARTS)},
    }
    for name in SERVERS:
        port = place.ports[name] = embedded.free_port()
        if name == "floor":
            words = [word.replace("touchstone.wsgi", "floor") for word in web_options()]
            command = [sys.executable, "-m", *words, "--bind", f"127.0.0.1:{port}"]
        else:
            command = [*place.python, "-m", *web_options(place.checkout), "--bind", f"127.0.0.1:{port}"]
        address = f"http://127.0.0.1:{port}/{'livez' if name == 'product' else 'alive'}"
        place.programs[name] = Program(name, command, more[name], ready=answers(address))
        place.programs[name].start(place.root / "log")
    for program in place.programs.values():
        program.ready()


def start_pooled_web(place: Place, servers: embedded.Servers) -> None:
    """Start PgBouncer, and the product behind it as the role that has the settings of a session."""
    from pgbouncer import PgBouncer  # in tests/, where not every benchmark that has places looks

    with place.connect() as database, database.cursor() as cursor:
        roles.make_roles(cursor, servers.passwords)
        cursor.execute(f"GRANT ALL ON ALL TABLES IN SCHEMA public TO {rights.WEB}".encode())
        cursor.execute(f"GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO {rights.WEB}".encode())
    pooler = PgBouncer(place.root / "pgbouncer", servers.postgres_port, servers.passwords)
    place.programs["pgbouncer"] = pooler.program
    pooler.start(place.root.name)
    port = place.ports[POOLED] = embedded.free_port()
    url = pooler.url(f"{servers.url_of(rights.WEB).rpartition('/')[0]}/{place.root.name}")
    state = json.loads((place.root / "stack.json").read_text())
    own = {
        **environment(place),
        "DATABASE_URL": url,
        "POOLER": "transaction",
        "REDIS_URL": state["redis_url"],
        "SECRET_KEY": (place.root / "secrets" / "django").read_text(),
        "HTTPS": "0",
    }
    command = [sys.executable, "-m", *web_options(), "--bind", f"127.0.0.1:{port}"]
    program = Program("pooled", command, own, ready=answers(f"http://127.0.0.1:{port}/livez"))
    place.programs["pooled"] = program
    program.start(place.root / "log")
    program.ready()


def web_options(checkout: Path | None = None) -> list[str]:
    """Return the command of the product's web process; its module needs Django, which cannot be set up here."""
    touchstone = checkout / "platform/touchstone" if checkout else Path(embedded.__file__).parent
    source = (touchstone / "management/commands/stack.py").read_text()
    listed = re.search(r"^WEB = \[(.*?)\]", source, re.MULTILINE | re.DOTALL)
    assert listed
    words = re.findall(r'"(.+?)"', listed[1])
    # Without the front door one master has the workers of both.
    words[words.index("--workers") + 1] = str(N_WEB)
    return words


# -- scripts ------------------------------------------------------------------------------------------------


def assessor(campaign: str, headers: str) -> Script:
    """Claim once, then submit and be given the next item, until there is none."""
    api = f"/api/v1/campaigns/{campaign}"
    answer: Answer = yield load.request(f"{api}/claim", b"{}", headers, ends=False)
    n = 0
    while (token := first_token(answer)) is not None:
        n += 1
        body = {
            "client_token": str(uuid.uuid4()),
            "token": token,
            "grade": n % GRADES,
            "active_milliseconds": 1500,
        }
        answer = yield load.request(f"{api}/judgments", json.dumps(body).encode(), headers, ends=True)


def first_token(answer: Answer) -> str | None:
    if answer.status != 200:
        return None
    body = json.loads(answer.body)
    items = body["items"] if "items" in body else [body["item"]]
    return items[0]["token"] if items and items[0] else None


# -- rows ---------------------------------------------------------------------------------------------------

NEW_ITEMS = """
WITH topics AS (SELECT id, row_number() OVER (ORDER BY id) - 1 AS n FROM judging_topic),
documents AS (SELECT id, row_number() OVER (ORDER BY id) - 1 AS n FROM judging_document)
INSERT INTO new_items
SELECT gen_random_uuid(), topics.id, documents.id FROM generate_series(%(first)s::int, %(last)s::int) number
  JOIN topics ON topics.n = number %% %(topics)s JOIN documents ON documents.n = number / %(topics)s
"""
# k slots an item at k random places of its topic, as open_slots() makes them.
NEW_SLOTS = """
INSERT INTO judging_slot (item_id, purpose, number, state, campaign_id, topic_id, position)
SELECT id, %(purpose)s, number, 'open', %(campaign)s, topic_id, (random() * 2147483646)::int
  FROM new_items, generate_series(1, %(each)s::int) number
"""


def open_items(place: Place, database: psycopg.Connection[Any], n: int, purpose: str, each: int) -> None:
    """Open slots of n unseen items."""
    last = place.n_items + n - 1
    values = {"first": place.n_items, "last": last, "topics": TOPICS, "campaign": place.campaign}
    values |= {"purpose": purpose, "each": each}
    with database.transaction():
        # These rows are right by construction; to have every one of a million proved takes a minute.
        database.execute("SET LOCAL session_replication_role = replica")
        database.execute(
            "CREATE TEMPORARY TABLE new_items (id uuid, topic_id bigint, document_id bigint) ON COMMIT DROP"
        )
        database.execute(NEW_ITEMS, values)
        database.execute(
            "INSERT INTO judging_item (id, campaign_id, topic_id, document_id)"
            " SELECT id, %(campaign)s, topic_id, document_id FROM new_items",
            values,
        )
        database.execute(NEW_SLOTS, values)
        if purpose == "check":
            database.execute(
                "INSERT INTO judging_goldanswer (topic_id, document_id, grade, source, created_at)"
                " SELECT topic_id, document_id, 1, 'benchmark', now() FROM new_items"
            )
    place.n_items += n


def fill_up(place: Place, database: psycopg.Connection[Any]) -> None:
    """Open again as many slots as there should be, for both."""
    count_open = "SELECT count(*) FROM judging_slot WHERE purpose = 'judge' AND state = 'open'"
    missing = place.n_slots - count(database, count_open)
    if missing >= JUDGMENTS_PER_ITEM:
        open_items(place, database, missing // JUDGMENTS_PER_ITEM, "judge", JUDGMENTS_PER_ITEM)
    missing = place.n_slots - count(database, "SELECT count(*) FROM floor_slot WHERE NOT taken")
    database.execute(
        "INSERT INTO floor_slot (taken) SELECT false FROM generate_series(1, %s::int)", [max(missing, 0)]
    )
    place.n_used = 0


def count(database: psycopg.Connection[Any], sql: str) -> int:
    row = database.execute(sql.encode()).fetchone()
    assert row
    return int(row[0])


def fill(n_slots: int, n_assessors: int) -> dict[str, Any]:
    """Make the tables and all but the items, in the child process; return how to call as each assessor."""
    import django

    django.setup()
    from django.core.management import call_command

    from judging.models import Assessor, CampaignTopic, Collection, Document, Topic
    from judging.services.campaigns import create_campaign

    call_command("migrate", verbosity=0)
    collection = Collection.objects.create(name="judging")
    topics = Topic.objects.bulk_create(
        Topic(
            collection=collection,
            topic_id=str(n),
            title=f"Topic number {n}",
            description="What is asked for, in a sentence of some length. " * 2,
            narrative="What is relevant, what is not, and what is in between. " * 8,
        )
        for n in range(TOPICS)
    )
    n_documents = n_slots // JUDGMENTS_PER_ITEM // TOPICS + CHECKS_PER_TOPIC + SPARE_DOCUMENTS
    text = "Some words of a document that somebody reads. " * (DOCUMENT_BYTES // 46)
    Document.objects.bulk_create(
        (
            Document(collection=collection, doc_id=f"d{n}", title=f"Document {n}", text=f"{n} {text}")
            for n in range(n_documents)
        ),
        batch_size=2000,
    )
    grades = [(grade, f"Grade {grade}", float(grade)) for grade in range(GRADES)]
    campaign = create_campaign(
        collection=collection,
        name="judging",
        user=None,
        grades=grades,
        state="open",
        judgments_per_item=JUDGMENTS_PER_ITEM,
        gold_check_rate=CHECK_RATE,
    )
    CampaignTopic.objects.bulk_create(
        CampaignTopic(campaign=campaign, topic=topic, check_rate=CHECK_RATE) for topic in topics
    )
    users = make_users(n_assessors)
    Assessor.objects.bulk_create(Assessor(campaign=campaign, user=user) for user in users)
    return {"campaign": str(campaign.pk), "callers": [headers_of(user) for user in users]}


def make_users(n: int) -> list[Any]:
    from touchstone.models import User

    return User.objects.bulk_create(User(username=f"bob{k}", password="!") for k in range(n))


def headers_of(user: Any) -> str:
    """Return the headers of a browser in which the user has logged in."""
    from django.conf import settings
    from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
    from django.contrib.sessions.backends.db import SessionStore
    from django.utils.crypto import get_random_string

    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    session.save()
    secret = get_random_string(32)
    cookies = f"sessionid={session.session_key}; csrftoken={secret}"
    return (
        f"Cookie: {cookies}\r\nX-CSRFToken: {secret}\r\nContent-Type: application/json\r\n"
        "Accept: application/json\r\nAccept-Language: en\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\n"
    )
