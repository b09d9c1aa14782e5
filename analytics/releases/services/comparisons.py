"""The comparisons of a release: p of both claims for every tested difference, alone and in the declared family."""

from datetime import datetime
from typing import Any

from analytics.estimation.claims import CLAIMS, Claim, Family
from analytics.estimation.comparison import holm
from analytics.methods import REPORTED
from analytics.models import Computation
from analytics.releases.folder import Folder, json_line
from analytics.services.comparisons import HOLM, is_older
from analytics.services.families import asked_family

COLUMNS = {"topics-like-these": "topics_p_value", "these-topics": "p_value"}


def write_comparisons(folder: Folder, computation: Computation | None, until: datetime) -> int:
    """Write comparisons.json, a pair of runs a line, with the family that was declared by then; return how many."""
    rows: list[dict[str, Any]] = []
    family = None
    if computation is not None and not is_older(computation):
        family = asked_family(computation.campaign, until=until)
        rows = _rows(computation, family)
    told = {"name": family.name, "runs": list(family.runs), "baseline": family.baseline} if family else None
    with folder.open("comparisons.json") as stream:
        stream.write(b'{"adjustment":' + json_line(HOLM).rstrip(b"\n") + b",\n")
        stream.write(b'"family":' + json_line(told).rstrip(b"\n") + b',\n"comparisons":[')
        for number, row in enumerate(rows):
            stream.write((b",\n" if number else b"\n") + json_line(row).rstrip(b"\n"))
        stream.write(b"\n]}\n")
    return len(rows)


def _rows(computation: Computation, family: Family) -> list[dict[str, Any]]:
    """Return the tested pairs of the family in the order of their names; p is null where a claim has no test."""
    names = ("measure", "run__run_id", "run_b__run_id")
    tested = computation.estimates.filter(method=REPORTED.key, run_b__isnull=False, p_value__isnull=False)
    stored = tested.values_list(*names, *(COLUMNS[claim.key] for claim in CLAIMS))
    rows = [
        {
            "measure": row[0],
            "run": row[1],
            "run_b": row[2],
            **{c.key: {"p": p} for c, p in zip(CLAIMS, row[3:], strict=True)},
        }
        for row in sorted(stored, key=lambda row: row[:3])
        if (row[1], row[2]) in family
    ]
    for measure in {row["measure"] for row in rows}:
        for claim in CLAIMS:
            _adjust([row for row in rows if row["measure"] == measure], claim)
    return rows


def _adjust(rows: list[dict[str, Any]], claim: Claim) -> None:
    """Add the p adjusted for all rows that have one; null elsewhere."""
    known = [row[claim.key] for row in rows if row[claim.key]["p"] is not None]
    adjusted = holm([one["p"] for one in known]).tolist() if known else []
    for row in rows:
        row[claim.key]["p_adjusted"] = None
    for one, p in zip(known, adjusted, strict=True):
        one["p_adjusted"] = p
