"""Kill the whole PostgreSQL again and again under clients that judge; compare acknowledged with stored."""

import time
from collections import Counter
from pathlib import Path
from typing import Any

import psycopg
from parts.assessors import Client, Ledger, ServiceClient, longest_pauses, run_clients, verdict
from parts.throwaway import assessors_of, kill_tree, make_campaign, migrated

from touchstone import embedded

PAUSE = 1.2  # seconds that a server lives, at least
ITEMS_PER_SECOND = 150  # of which 450 judgments are wanted: more than is done, so that work never ends


def measure_services(
    root: Path, seconds: float, n_kills: int, n_clients: int, *, durable: bool, period: float = 0.0
) -> dict[str, Any]:
    """Judge through the services in threads, with a kill every `period` seconds or as often as the server is up.

    Without durability, judgments must be lost: else we are blind.
    """
    with migrated(root) as servers:
        n_items = int(ITEMS_PER_SECOND * min(seconds, 3 * n_kills)) + 200
        campaign = make_campaign(n_items, n_clients)
        if not durable:
            switch_durability_off(servers)
        setting = synchronous_commit()
        assert setting == ("on" if durable else "off")
        clients: list[Client] = [ServiceClient(one) for one in assessors_of(campaign)]
        ledger, kills = Ledger(), []

        def kill_all() -> None:
            begin = time.monotonic()
            while time.monotonic() < begin + seconds and len(kills) < n_kills:
                time.sleep(max(PAUSE, begin + (len(kills) + 1) * period - time.monotonic()))
                kills.append((time.monotonic(), "postgres"))
                restart_postgres(servers)
            time.sleep(0.5)

        run_clients(clients, ledger, kill_all)
        return {"synchronous_commit": setting, **verdict(ledger), **summary(kills, ledger)}


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
