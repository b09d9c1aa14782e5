"""Lose the database under assessors who judge, and restore it to a given second; time a large one.

    python benchmarks/backup.py [--part drill|large] [--seconds 40] [--assessors 8] [--judgments 1000000] [--seed 1]

- `drill`: assessors judge through the services while a backup is made and the log is received. Then the database's
  folder is deleted and restored to a moment drawn from the last third of that time. Missing: judgments acknowledged
  before the moment that are not there. Too late: judgments sent after it that are there. Both must be 0. The control is
  the backup without its log, which lacks what was judged since.
- `large`: a campaign of so many judgments is backed up, checked, restored and checked again, in seconds.

JSON on standard output.
"""

import argparse
import json
import random
import shutil
import subprocess
import sys
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from parts import large_campaign
from parts.assessors import Ledger, ServiceClient, run_clients
from parts.throwaway import assessors_of, folder, make_campaign, migrated

from touchstone import embedded
from touchstone.backups.archive import Archive
from touchstone.backups.checking import faults_of
from touchstone.backups.folder import Backups
from touchstone.backups.making import back_up
from touchstone.backups.restoring import into_folder

TOKENS = "SELECT client_token FROM judging_judgment"


class TimedClient:
    """An assessor whose judgments' times are noted: when each was first sent, and when it was acknowledged."""

    def __init__(self, client: ServiceClient) -> None:
        self.claim, self.client = client.claim, client
        self.sent: dict[uuid.UUID, float] = {}
        self.acknowledged: dict[uuid.UUID, float] = {}

    def submit(self, token: str, client_token: uuid.UUID, grade: int) -> str:
        self.sent.setdefault(client_token, time.time())
        following: str = self.client.submit(token, client_token, grade)
        self.acknowledged.setdefault(client_token, time.time())
        return following


def drill(root: Path, seconds: float, n_assessors: int, seed: int) -> dict[str, Any]:
    backups = Backups(root / "backups")
    backups.root.mkdir()
    with migrated(root / "var") as servers:
        campaign = make_campaign(int(150 * seconds), n_assessors)
        clients = [TimedClient(ServiceClient(one)) for one in assessors_of(campaign)]
        media = root / "var" / "files"

        def one_backup() -> Path:
            return back_up(backups, servers.database_url, media, schema="", heads={})

        archive = Archive(backups, servers.database_url, media, back_up=one_backup, keep=7)

        def keep_backing_up() -> None:
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                archive.step()
                time.sleep(0.2)

        run_clients(clients, Ledger(), keep_backing_up)
        time.sleep(1)
        archive.stop()
    shutil.rmtree(root / "var")
    times = sorted(at for client in clients for at in client.acknowledged.values())
    moment = random.Random(seed).uniform(times[-len(times) // 3], times[-1] - 0.5)
    before = {token for c in clients for token, at in c.acknowledged.items() if at < moment}
    after = {token for c in clients for token, at in c.sent.items() if at > moment}
    (made,) = backups.complete()
    begin = time.perf_counter()
    into_folder(made, root / "again", datetime.fromtimestamp(moment, UTC).isoformat())
    took = time.perf_counter() - begin
    into_folder(made, root / "control")
    restored, control = tokens(root / "again"), tokens(root / "control")
    return {
        "acknowledged": len(times),
        "acknowledged_before": len(before),
        "sent_after": len(after),
        "missing": len(before - restored),
        "too_late": len(after & restored),
        "missing_without_log": len(before - control),
        "restore_seconds": round(took, 1),
    }


def tokens(var: Path) -> set[uuid.UUID]:
    import psycopg

    with embedded.stack(var) as servers, psycopg.connect(servers.database_url) as connection:
        return {token for (token,) in connection.execute(TOKENS)}


def large(root: Path, n_judgments: int, seed: int) -> dict[str, Any]:
    backups = Backups(root / "backups")
    backups.root.mkdir()
    seconds: dict[str, float] = {}

    def timed(name: str, work: Any) -> Any:
        begin = time.perf_counter()
        result = work()
        seconds[name] = round(time.perf_counter() - begin, 1)
        return result

    with migrated(root / "var") as servers:
        large_campaign.make(root, n_items=n_judgments // 5, n_each=5, n_assessors=100, n_runs=100, seed=seed)
        media = root / "var" / "files"
        made = timed("backup", lambda: back_up(backups, servers.database_url, media, schema="", heads={}))
        expected = judgments(servers.database_url)
    assert timed("check", lambda: faults_of(made)) == []
    timed("restore", lambda: into_folder(made, root / "again"))
    with embedded.stack(root / "again") as servers:
        found = judgments(servers.database_url)
    size = sum(path.stat().st_size for path in backups.root.rglob("*") if path.is_file())
    return {"judgments": found, "lost": expected - found, "megabytes": round(size / 1e6), "seconds": seconds}


def judgments(address: str) -> int:
    import psycopg

    with psycopg.connect(address) as connection:
        row = connection.execute("SELECT count(*) FROM judging_judgment").fetchone()
    return int(row[0]) if row else 0


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--assessors", type=int, default=8)
    parser.add_argument("--judgments", type=int, default=1_000_000, help="of the large campaign")
    parser.add_argument(
        "--part", choices=["drill", "large"], help="default: both, each in a process of its own"
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    if options.part is None:
        # Django is set up once a process, for one server.
        command = [sys.executable, *sys.argv, "--part"]
        parts = {
            part: subprocess.run([*command, part], stdout=subprocess.PIPE, check=True)
            for part in ("drill", "large")
        }
        print(json.dumps({part: json.loads(run.stdout) for part, run in parts.items()}, indent=2))
        return
    with folder() as root:
        if options.part == "drill":
            found = drill(root, options.seconds, options.assessors, options.seed)
        else:
            found = large(root, options.judgments, options.seed)
    print(json.dumps(found, indent=2))


if __name__ == "__main__":
    main()
