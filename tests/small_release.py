"""A small campaign's release, as its file: drawn in part, judged twice with errors, checked and audited."""

import hashlib
import json
import zipfile
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from small_campaign import (
    DEPTH,
    TOPICS,
    give,
    judge_all,
    judge_audit,
    lease,
    make_assessor,
    make_undrawn,
    slots,
    truth_of,
)

from analytics.releases.services.releasing import build, make_release
from analytics.releases.verify import merkle_root
from analytics.services.recomputation import recompute
from judging.label_aggregation import DEFAULT_LABEL_SCORE
from judging.services.campaigns import open_campaign
from sampling.questions import Design
from sampling.services.auditing import audit
from sampling.services.drawing import draw

VERSION = "1.0"


def wrong_now_and_then(slot, place):
    """Ann errs by one grade at every fifth document, Ben at every seventh; never at the same ones."""
    number = int(slot.item.document.doc_id[-2:]) + 3 * TOPICS.index(slot.item.topic.topic_id)
    return (truth_of(slot) + 1) % 4 if number % (5, 7)[place % 2] == 0 else truth_of(slot)


def judged_campaign(
    folder,
    *,
    budget=34,
    selection="poisson",
    kind="pool",
    checks=0.2,
    audited=28,
    complete=True,
    gold=True,
    top_up=0,
    learning=None,
    relevant_grade=1,
    bronze_score=DEFAULT_LABEL_SCORE,
    tier="bronze",
    unfinished=0,
):
    """Return a campaign with estimates: drawn, judged by two of the tier, some of it checked and audited."""
    made = make_undrawn(
        folder,
        gold=gold,
        gold_check_rate=checks,
        gold_check_exposures=4,
        relevant_grade=relevant_grade,
        bronze_score=bronze_score,
    )
    about = {"measure": "DCG@10", "depth": DEPTH, "selection": selection}
    about["method"] = "paper" if selection == "replacement" else "default"
    runs = ("run0", "run2") if kind == "pair" else ()
    draw(campaign=made, design=Design(kind, runs, budget=budget, **about), seed=20)
    open_campaign(campaign=made, actor=None)
    people = [make_assessor(made, name, tier=tier) for name in ("ann", "ben")]
    greta = make_assessor(made, "greta", tier="gold")
    holder = make_assessor(made, "holder") if unfinished else None
    for slot in slots(made, state="open", number=2)[:unfinished]:
        lease(holder, slot)
    judge_all(made, people, grade=wrong_now_and_then)
    if top_up:
        learned = {"prior": "judgments", "learning": learning} if learning else {}
        draw(campaign=made, design=Design(kind, runs, budget=top_up, **about, **learned), seed=20)
        judge_all(made, people, grade=wrong_now_and_then)
    if not complete:
        return made
    for place, slot in enumerate(slots(made, "check", state="open")):
        give(people[place % 2], slot, wrong_now_and_then(slot, place))
    if audited:
        audit(campaign=made, items_each_time=audited, items_in_total=audited, seed=5)
        judge_audit(made, greta)
    return made


def release_of(campaign, *, documents=True, hidden=(), **options):
    """Return the bytes of the release of a campaign; the runs that are not hidden are in it."""
    campaign.collection.runs.exclude(run_id__in=hidden).update(may_publish=True)
    type(campaign.collection).objects.filter(pk=campaign.collection_id).update(
        may_publish_documents=documents
    )
    release = make_release(
        campaign=campaign,
        version=VERSION,
        title="A small release",
        authors="Ann Example",
        licence="CC-BY-4.0",
        includes_documents=documents,
        actor=None,
        by_job=False,
        **options,
    )
    return Path(build(release=release).file.path).read_bytes()


SEEDS: dict[bytes, Any] = {}  # of the bootstrap in the releases below, by their bytes


@cache
def made_once(**options):
    """Return the bytes of a release, made once in a process; the first test that asks must have the database."""
    of_release = {
        name: options.pop(name)
        for name in ("documents", "hidden", "aggregation", "prefers_gold")
        if name in options
    }
    with TemporaryDirectory() as folder:
        campaign = judged_campaign(Path(folder), **options)
        computation = recompute(campaign=campaign)
        content = release_of(campaign, **of_release)
    SEEDS[content] = computation.last_judgment_id
    return content


def unpacked(content, folder):
    """Unpack a release into the folder; return where its files lie."""
    path = Path(folder, "release.zip")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    with zipfile.ZipFile(path) as archive:
        archive.extractall(folder)
        top = archive.namelist()[0].split("/")[0]
    path.unlink()
    return Path(folder, top)


def change_lines(folder, name, change):
    """Change what a file says (`change` takes and gives its JSON lines), and repair manifest and Merkle root."""
    path = folder / name
    text = path.read_text("utf-8")
    if name.endswith(".jsonl"):
        rows = [json.loads(line) for line in text.splitlines()]
        change(rows)
        text = "".join(json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n" for row in rows)
    else:
        value = json.loads(text)
        change(value)
        text = json.dumps(value)
    path.write_text(text, "utf-8")
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    for entry in manifest["files"]:
        if entry["path"] == name:
            content = path.read_bytes()
            entry |= {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    manifest["merkle_root"] = merkle_root((folder / "judgments.jsonl").read_bytes().splitlines())
    (folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")
