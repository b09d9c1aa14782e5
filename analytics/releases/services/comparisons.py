"""The comparisons of a release: p of both claims for every tested difference, alone and in the declared family."""

from datetime import datetime
from typing import Any

from analytics.estimation.claims import BASELINE, CLAIMS, RUNS, Claim, Family
from analytics.estimation.comparison import holm
from analytics.methods import REPORTED
from analytics.models import Computation
from analytics.releases.folder import Folder, json_line
from analytics.releases.services.published_runs import PublishedRuns
from analytics.services.comparisons import HOLM, is_older
from analytics.services.families import asked_family

ADJUSTED_OVER = "the pairs of published runs: the other pairs of the family are not in this release"
COLUMNS = {"topics-like-these": "topics_p_value", "these-topics": "p_value"}


def write_comparisons(
    folder: Folder, computation: Computation | None, published: PublishedRuns, until: datetime
) -> int:
    """Write comparisons.json, a pair of runs a line, with the family that was declared by then; return how many.

    The family is that part of it whose runs are published: p is adjusted for these pairs, and the file says so.
    """
    rows: list[dict[str, Any]] = []
    family = None
    if computation is not None and not is_older(computation):
        declared = asked_family(computation.campaign, until=until)
        family = _published_family(declared, published)
        rows = _rows(computation, family, published)
    told: dict[str, Any] | None = None
    if family:
        told = {"name": family.name, "runs": list(family.runs), "baseline": family.baseline}
        if not published.names_all:
            n = len({*declared.runs, *filter(None, [declared.baseline])} & published.hidden.keys())
            told |= {
                "unpublished_runs": n,
                "adjusted_over": ADJUSTED_OVER if n else "all pairs of the family",
            }
    with folder.open("comparisons.json") as stream:
        stream.write(b'{"adjustment":' + json_line(HOLM).rstrip(b"\n") + b",\n")
        stream.write(b'"family":' + json_line(told).rstrip(b"\n") + b',\n"comparisons":[')
        for number, row in enumerate(rows):
            stream.write((b",\n" if number else b"\n") + json_line(row).rstrip(b"\n"))
        stream.write(b"\n]}\n")
    return len(rows)


def _published_family(family: Family, published: PublishedRuns) -> Family:
    """Return what is left of a family where some runs are not published; of a hidden baseline nothing is."""
    name, baseline = family.name, published.name(family.baseline)
    if name.startswith(BASELINE):
        name = BASELINE + baseline
    elif name.startswith(RUNS):
        name = RUNS + ",".join(published.names(family.runs))
    return Family(name, tuple(published.only(family.runs)), baseline)


def _rows(computation: Computation, family: Family, published: PublishedRuns) -> list[dict[str, Any]]:
    """Return the tested pairs of the family in the order of their names; p is null where a claim has no test."""
    names = ("measure", "run__run_id", "run_b__run_id")
    tested = published.estimates(computation.estimates.all()).filter(
        method=REPORTED.key, run_b__isnull=False, p_value__isnull=False
    )
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
