"""How long the seals of many rows take, how much memory, how long `verify_ledger` takes; and what it notices.

    .venv/bin/python benchmarks/ledger.py --rows 1000000 --changes 1000 --output ledger.json

In a database of its own on the embedded server it copies rows of events, seals them, computes the chain anew, then
changes single values as a superuser without triggers, in as many tables and columns as the seals name: how many were
noticed, and how many with the right seal. The control changes nothing and must notice nothing.
"""

import argparse
import json
import os
import random
import resource
import secrets
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "platform"), str(ROOT), str(ROOT / "tests")]
PART = 20_000  # rows copied at once
FEW = 20  # rows of a seal, while values are changed


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000, help="judgments to seal")
    parser.add_argument("--changes", type=int, default=1_000, help="single values to change")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", type=Path, help="write the result as JSON")
    options = parser.parse_args()
    from touchstone.embedded import Servers

    with tempfile.TemporaryDirectory(prefix="touchstone-ledger-") as folder:
        servers = Servers(Path(folder) / "servers")
        servers.start()
        try:
            os.environ |= {
                "DATABASE_URL": servers.database_url,
                "TOUCHSTONE_VAR": folder,
                "SECRET_KEY": secrets.token_hex(32),
            }
            result = measure(options.rows, options.changes, options.seed)
        finally:
            servers.stop()
    text = json.dumps(result, indent=2)
    print(text)
    if options.output:
        options.output.write_text(text + "\n")


def measure(n_rows: int, n_changes: int, seed: int) -> dict[str, Any]:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "touchstone.settings")
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    from ledger_world import drop_rules

    from touchstone.ledger import sealing
    from touchstone.ledger.rows import TABLES
    from touchstone.ledger.verification import chain_faults

    drop_rules()
    usual, sealing.MOST_ROWS = sealing.MOST_ROWS, FEW
    for table in TABLES:
        fill(table, 10 * FEW)
    sealing.seal_new_rows()
    without = len(list(chain_faults()))
    changed = changed_values(n_changes, seed)
    sealing.MOST_ROWS = usual
    fill("judging_judgment", n_rows)
    before = peak()
    began = time.perf_counter()
    made, _ = sealing.seal_new_rows()
    sealed = time.perf_counter() - began
    memory = peak() - before
    began = time.perf_counter()
    faults = list(chain_faults())
    return {
        "rows": n_rows,
        "seals": len(made),
        "seconds to seal": round(sealed, 2),
        "seconds to seal a million rows": round(sealed * 1e6 / n_rows, 1),
        "memory grew by MB": round(memory, 1),
        "seconds to verify": round(time.perf_counter() - began, 2),
        "load of the machine": round(os.getloadavg()[0], 1),
        "control: faults without a change": without + len(faults),
        **changed,
    }


def peak() -> float:
    """Return the most memory that the process has had, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def fill(table: str, n_rows: int) -> None:
    """Write rows without those that they refer to: triggers are off."""
    from django.db import transaction
    from ledger_world import add_rows, run

    for first in range(1, n_rows + 1, PART):
        with transaction.atomic():
            run("SET LOCAL session_replication_role = replica")
            add_rows(table, first, min(n_rows, first + PART - 1))


def changed_values(n_changes: int, seed: int) -> dict[str, Any]:
    """Change single values, one after another, each taken back; return what was noticed."""
    from ledger_world import VALUES, run, superuser

    from touchstone.ledger.rows import TABLES, columns_of
    from touchstone.ledger.verification import table_faults

    chance, noticed, right, touched = random.Random(seed), 0, 0, set()
    targets = [(table, name) for table in TABLES for name in columns_of(table)]
    for number in range(n_changes):
        table, name = targets[number % len(targets)]
        other = VALUES[columns_of(table)[name]][1].format(f'"{name}"')
        [(key,)] = run(f'SELECT id FROM "{table}" ORDER BY id OFFSET {chance.randrange(10 * FEW)} LIMIT 1')  # noqa: S608
        [(until,)] = run(
            'SELECT min(up_to_id) FROM touchstone_seal WHERE "table" = %s AND up_to_id >= %s', table, key
        )
        with superuser():
            run(f'UPDATE "{table}" SET "{name}" = {other} WHERE id = %s', key)  # noqa: S608
            found = list(table_faults(table))
        noticed += bool(found)
        right += len(found) == 1 and f" to {until} of " in found[0]
        touched.add((table, name))
    return {
        "values changed": n_changes,
        "in columns": len(touched),
        "noticed": noticed,
        "with the right seal": right,
    }


if __name__ == "__main__":
    main()
