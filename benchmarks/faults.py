"""Kill the servers again and again while eight clients judge; then compare what was acknowledged with what is stored.

    python benchmarks/faults.py --seconds 40

Three parts, each on servers of its own in a throw-away folder, each with a ledger that the clients keep:

- "services": claim() and submit() in threads; PostgreSQL, postmaster and all children, is killed every 1.2 s;
- "stack": the HTTP API of the whole product; web, worker, Redis and PostgreSQL are killed in turn;
- "control": "services" with synchronous_commit=off and a WAL writer that sleeps long. It must lose judgments: else
  the harness is blind and the other two prove nothing.

JSON on standard output. Expected: lost, wrong, doubled and phantom 0 in the first two, lost > 0 in the control.
"""

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import psutil
import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "platform"))

from parts.assessors import (
    GRADES,
    JUDGMENTS_PER_ITEM,
    PASSWORD,
    Client,
    Ledger,
    ServiceClient,
    WebClient,
    longest_pauses,
    run_clients,
    verdict,
)

from touchstone import embedded, programs

MANAGE = str(Path(__file__).resolve().parents[1] / "manage.py")
PARTS = {"services": 0.35, "stack": 0.5, "control": 0.15}  # of the seconds
PAUSE = {"services": 1.2, "control": 1.2, "stack": 2.0}  # between two kills


def set_up_django(servers_database_url: str, redis_url: str) -> None:
    os.environ.update(DATABASE_URL=servers_database_url, REDIS_URL=redis_url, SECRET_KEY="of-the-benchmark")
    os.environ.update(DJANGO_SETTINGS_MODULE="touchstone.settings", LOG_LEVEL="CRITICAL")
    import django

    django.setup()


def make_campaign(n_items: int, n_clients: int) -> Any:
    """Make an open campaign of 8 topics with one assessor a client."""
    from django.contrib.auth.hashers import make_password

    from judging.models import Assessor, Collection, Document, Item, Slot, Topic
    from judging.services.campaigns import create_campaign, open_campaign
    from touchstone.models import User

    collection = Collection.objects.create(name="faults")
    topics = [
        Topic.objects.create(collection=collection, topic_id=f"t{n}", title="A topic") for n in range(8)
    ]
    documents = Document.objects.bulk_create(
        Document(collection=collection, doc_id=f"d{n}", text="Text") for n in range(n_items)
    )
    campaign = create_campaign(
        collection=collection,
        name="faults",
        user=None,
        grades=[(grade, f"grade {grade}", float(grade)) for grade in range(GRADES)],
        judgments_per_item=JUDGMENTS_PER_ITEM,
        gold_check_rate=0.0,
    )
    items = Item.objects.bulk_create(
        Item(campaign=campaign, topic=topics[n % 8], document=document)
        for n, document in enumerate(documents)
    )
    numbers = range(1, JUDGMENTS_PER_ITEM + 1)
    Slot.objects.bulk_create(
        Slot(item=item, purpose="judge", number=k, campaign=campaign, topic_id=item.topic_id, position=n)
        for n, item in enumerate(items)
        for k in numbers
    )
    open_campaign(campaign=campaign, actor=None)
    password = make_password(PASSWORD)
    users = User.objects.bulk_create(User(username=f"bob{n}", password=password) for n in range(n_clients))
    Assessor.objects.bulk_create(Assessor(campaign=campaign, user=user) for user in users)
    campaign.refresh_from_db()
    return campaign


def kill_tree(pid: int) -> None:
    """SIGKILL for the process and all below it, the parent first so that it can tidy nothing up."""
    for process in programs.family_of(pid):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


def measure_services(
    root: Path, seconds: float, n_kills: int, n_clients: int, *, durable: bool
) -> dict[str, Any]:
    servers = embedded.Servers(root)
    servers.start()
    try:
        set_up_django(servers.database_url, servers.redis_url)
        from django.core.management import call_command

        from judging.models import Assessor

        call_command("migrate", verbosity=0)
        make_campaign(int(300 * min(seconds, 2 * n_kills)) + 200, n_clients)
        if not durable:
            switch_durability_off(servers)
        setting = synchronous_commit()
        assert setting == ("on" if durable else "off")
        clients: list[Client] = [
            ServiceClient(one) for one in Assessor.objects.select_related("campaign__scale")
        ]
        ledger, kills = Ledger(), []

        def kill_all() -> None:
            end = time.monotonic() + seconds
            while time.monotonic() < end and len(kills) < n_kills:
                time.sleep(PAUSE["services"])
                kills.append((time.monotonic(), "postgres"))
                restart_postgres(servers)
            time.sleep(0.5)

        run_clients(clients, ledger, kill_all)
        return {"synchronous_commit": setting, **verdict(ledger), **summary(kills, ledger)}
    finally:
        servers.stop()


def switch_durability_off(servers: embedded.Servers) -> None:
    """Acknowledge before the disk has it, and let the WAL writer sleep: what every connection of ours asks for wins."""
    from django.conf import settings
    from django.db import connection

    options = settings.DATABASES["default"]["OPTIONS"]
    options["options"] = options["options"].replace("synchronous_commit=on", "synchronous_commit=off")
    with psycopg.connect(servers.database_url, autocommit=True) as superuser:
        superuser.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
        superuser.execute("SELECT pg_reload_conf()")
    connection.close()


def synchronous_commit() -> str:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SHOW synchronous_commit")
        return str(cursor.fetchone()[0])


def restart_postgres(servers: embedded.Servers) -> None:
    """Kill PostgreSQL and start it again, once more if a child of the killed one still holds its shared memory."""
    assert servers.postgres.process is not None
    kill_tree(servers.postgres.process.pid)
    for patience in range(10):
        servers.postgres.process.wait()
        servers.postgres.start(servers.root / "log")
        try:
            return servers.postgres.ready()
        except embedded.StackError:
            if patience == 9:
                raise
            time.sleep(0.2)


def summary(kills: list[tuple[float, str]], ledger: Ledger) -> dict[str, Any]:
    pauses = longest_pauses(kills, ledger.acknowledged_at) if kills and ledger.acknowledged_at else {}
    return {"kills": dict(Counter(kind for _, kind in kills)), "longest_pause_seconds": pauses}


def wait_for_judgment(ledger: Ledger, seconds: float) -> None:
    """Wait until a judgment is acknowledged that came after this call: each kill's pause is its own."""
    before, deadline = len(ledger.acknowledged_at), time.monotonic() + seconds
    while len(ledger.acknowledged_at) < before + 8 and time.monotonic() < deadline:
        time.sleep(0.05)


@contextlib.contextmanager
def product(root: Path) -> Iterator[str]:
    """Run `manage.py stack` on the folder; yield its address."""
    port = embedded.free_port()
    address = f"http://127.0.0.1:{port}/"
    command = [sys.executable, MANAGE, "stack", "--port", str(port)]
    with (root.parent / "stack.log").open("wb") as log:
        process = subprocess.Popen(
            command, env={**os.environ, "TOUCHSTONE_VAR": str(root)}, stdout=log, stderr=log
        )
    try:
        embedded.answers(f"{address}livez")()
        yield address
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def announced(root: Path) -> dict[str, int]:
    """Return the pids of the stack's processes by name: each writes into the log of its name."""
    pids = {}
    for pid, _ in json.loads((root / "stack.json").read_text())["processes"]:
        with contextlib.suppress(FileNotFoundError):
            pids[Path(os.readlink(f"/proc/{pid}/fd/1")).stem] = pid
    return pids


def measure_stack(root: Path, seconds: float, n_kills: int, n_clients: int) -> dict[str, Any]:
    with product(root) as address:
        known = embedded.running_stack(root)
        set_up_django(known["database_url"], known["redis_url"])
        from django.db import connection

        from judging.models import Assessor

        campaign = make_campaign(int(100 * min(seconds, 4 * n_kills)) + 200, n_clients)
        names = list(Assessor.objects.values_list("user__username", flat=True))
        clients: list[Client] = [WebClient(address, campaign, name) for name in names]
        connection.close()
        ledger, kills = Ledger(), []

        def kill_all() -> None:
            turns = cycle(["web", "worker", "redis", "postgres"])
            end = time.monotonic() + seconds
            while time.monotonic() < end and len(kills) < n_kills:
                time.sleep(PAUSE["stack"])
                kind = next(turns)
                pid = announced(root).get(kind)
                if pid is not None and psutil.pid_exists(pid):
                    kills.append((time.monotonic(), kind))
                    kill_tree(pid)
                    wait_for_judgment(ledger, seconds=20)
            time.sleep(PAUSE["stack"])

        run_clients(clients, ledger, kill_all)
        return {**verdict(ledger), **summary(kills, ledger)}


def measure(part: str, seconds: float, n_kills: int, n_clients: int) -> dict[str, Any]:
    folder = Path(tempfile.mkdtemp(prefix="touchstone-faults-"))
    # Before Django reads its settings: never a stack that runs on this machine.
    os.environ["TOUCHSTONE_VAR"] = str(folder / "var")
    (folder / "var").mkdir()
    try:
        if part == "stack":
            return measure_stack(folder / "var", seconds, n_kills, n_clients)
        return measure_services(folder / "servers", seconds, n_kills, n_clients, durable=part == "services")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def in_child(part: str, seconds: float, n_kills: int, n_clients: int) -> dict[str, Any]:
    """Measure in a process of its own: Django can be set up for one database only."""
    options = [f"--part={part}", f"--seconds={seconds}", f"--kills={n_kills}", f"--clients={n_clients}"]
    child = subprocess.run(
        [sys.executable, __file__, *options], stdout=subprocess.PIPE, check=True, timeout=seconds + 180
    )
    result: dict[str, Any] = json.loads(child.stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description="Kill servers while clients judge; compare what is stored.")
    parser.add_argument("--seconds", type=float, default=40, help="of killing, over all parts (default 40)")
    parser.add_argument("--kills", type=int, default=1000, help="at most, in each part")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--part", choices=PARTS, help="only this one, for all the seconds")
    arguments = parser.parse_args()
    if arguments.part:
        result = measure(arguments.part, arguments.seconds, arguments.kills, arguments.clients)
    else:
        result = {
            part: in_child(part, share * arguments.seconds, arguments.kills, arguments.clients)
            for part, share in PARTS.items()
        }
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
